# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The profile of a host and the groups of esxi_info, from the documentation of the modules of its parts."""

from __future__ import annotations

import json

from ..plugin_utils import profile_options


class ModuleDocFragment:
    # With types, because ansible-test reads each plain assignment as a text.
    DOCUMENTATION: str = json.dumps({"options": profile_options.profile()})
    GATHER: str = json.dumps({"options": profile_options.gather()})
