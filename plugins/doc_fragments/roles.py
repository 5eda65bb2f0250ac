# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that modules share with the role that sets them, from its argument specification."""

from __future__ import annotations

import json

from ..plugin_utils import role_options

_TEXT = "Whether options that the task does not name have the values of the role P(dml.vsphere.vmotion_test#role)."


def _of_trial(*left_out: str) -> str:
    options = role_options.documentation(role_options.of_trial(*left_out))
    return json.dumps({"options": {"of_role": {"description": _TEXT, "type": "bool", "default": False}, **options}})


class ModuleDocFragment:
    # With types, because ansible-test reads each plain assignment as a text.
    VMOTION_TEST: str = _of_trial("window", "observe")
    OBSERVE: str = _of_trial("window")
    ESXI_WINDOW: str = _of_trial("observe")
    ESXI_HOST: str = json.dumps({"options": role_options.documentation(role_options.of_esxi_rollout())})
