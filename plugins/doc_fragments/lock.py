# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option of modules that change a cluster under its lock."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  force_unlock:
    description:
      - Whether the lock of the cluster is taken from another run. Use this only if that run has certainly ended.
      - The module takes the lock before its first write and releases it at its end, unless its playbook holds the lock.
    type: bool
    default: false
"""
