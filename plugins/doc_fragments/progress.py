# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that tell what they do while they do it."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  progress:
    description: Whether to show what happens while it happens.
    type: bool
    default: true
  progress_file:
    description: A file to which events are appended. It is made and followed by the action plugin; do not set it.
    type: path
"""
