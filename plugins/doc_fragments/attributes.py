# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes of all modules that change something."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
attributes:
  check_mode:
    description: Can run in check mode and predict changes without making them.
    support: full
  diff_mode:
    description: Returns what would change or has changed, in diff mode.
    support: full
  idempotent:
    description: A second run with the same options changes nothing.
    support: full
"""

    INFO = r"""
attributes:
  check_mode:
    description: Only reads, so check mode makes no difference.
    support: full
  diff_mode:
    description: Changes nothing, so there is no diff.
    support: N/A
  idempotent:
    description: Changes nothing.
    support: full
"""
