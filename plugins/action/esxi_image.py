# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows the progress lines of esxi_image while the module runs."""

from __future__ import annotations

from ..plugin_utils.follow import FollowingAction


class ActionModule(FollowingAction):
    """Runs esxi_image and shows its events."""
