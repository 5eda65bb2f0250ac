# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs an observation, and shows what happens."""

from __future__ import annotations

from typing import Any, ClassVar

from ..plugin_utils.trial import OBSERVATION, TrialAction, options_of


class ActionModule(TrialAction):
    """Judges a job while others move its workers."""

    kind = OBSERVATION
    options: ClassVar[dict[str, Any]] = options_of("window")
