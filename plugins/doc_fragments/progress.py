# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that show their progress."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  progress: {description: Whether to show the progress of the module., type: bool, default: true}
  progress_file:
    description: A file for the events. The action plugin creates and reads it; do not set it.
    type: path
"""
