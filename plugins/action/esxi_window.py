# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a maintenance window, and shows what happens."""

from __future__ import annotations

from typing import Any, ClassVar

from ..plugin_utils.trial import WINDOW, TrialAction, options_of


class ActionModule(TrialAction):
    """Changes hosts around a running job, or ends a window that no run continues."""

    kind = WINDOW
    options: ClassVar[dict[str, Any]] = {**options_of("observe"), "ending": {"type": "str", "default": ""}}
