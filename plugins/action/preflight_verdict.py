# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges a cluster on the controller: a module would be packed and compiled for a computation of a moment."""

from __future__ import annotations

from typing import Any

from ..module_utils.errors import CollectionError
from ..module_utils.hosts.preflight import host_preflight
from ..plugin_utils.computing import ComputingAction

ARGUMENTS = {
    "cluster": {"type": "dict", "required": True},
    "hosts": {"type": "dict", "required": True},
    "plan": {"type": "dict", "required": True},
    "emptying": {"type": "list", "elements": "dict", "default": []},
    "profile": {"type": "dict", "default": {}},
    "host_profiles": {"type": "dict", "default": {}},
    "gpu": {"type": "raw", "default": ""},
    "vgpu": {"type": "str", "default": ""},
    "rdma_protocol": {"type": "str", "default": ""},
    "rdma_class": {"type": "str", "default": ""},
    "device_classes": {"type": "list", "elements": "str", "default": []},
    "acceptance": {"type": "dict", "default": {}},
    "accepted": {"type": "list", "elements": "str", "default": []},
}


class ActionModule(ComputingAction):
    """Returns the verdict on what other modules read."""

    OPTIONS = ARGUMENTS

    def result_of(self, given: dict[str, Any], _host: str) -> dict[str, Any]:
        """Return all findings, those that stop the work, the lines to show, and the error."""
        return answer(given)


def answer(given: dict[str, Any]) -> dict[str, Any]:
    """Return the result of the task."""
    try:
        return {"changed": False, **host_preflight.verdict(given, given["accepted"])}
    except CollectionError as error:
        return {"failed": True, "msg": str(error)}
