# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that modules share with the role that sets them, from its argument specification."""

from __future__ import annotations

import json

from ..module_utils.durable.calls import Arguments
from ..plugin_utils import role_options


def _documentation(role: str, options: Arguments) -> str:
    text = f"Whether options that the task does not name have the values of the role P(dml.vsphere.{role}#role)."
    of_role = {"description": text, "type": "bool", "default": False}
    return json.dumps({"options": {"of_role": of_role, **role_options.documentation(options)}})


def _of_trial(*left_out: str) -> str:
    return _documentation(role_options.ROLE_OF_TRIALS, role_options.of_trial(*left_out))


class ModuleDocFragment:
    # With types, because ansible-test reads each plain assignment as a text.
    VMOTION_TEST: str = _of_trial("window", "observe")
    OBSERVE: str = _of_trial("window")
    ESXI_WINDOW: str = _of_trial("observe")
    ESXI_HOST: str = _documentation(role_options.ROLE_OF_HOSTS, role_options.of_esxi_rollout())
