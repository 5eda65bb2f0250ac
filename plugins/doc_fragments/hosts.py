# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that choose ESXi hosts."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  hosts:
    description:
      - Names of ESXi hosts as vCenter shows them. Exactly one of O(hosts) and O(cluster) is required.
    type: list
    elements: str
  cluster: {description: "Name of a cluster, which selects all its hosts.", type: str}
"""
