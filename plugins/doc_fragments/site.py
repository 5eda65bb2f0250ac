# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that select the objects of a site for all readers."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  vms:
    description: Names of virtual machines. Their settings, hosts, tasks and events are read.
    type: list
    elements: str
    default: []
  tag_category: {description: "A tag category. With it, the tags of O(vms) are read.", type: str, default: ""}
  switch:
    description:
      - Name of the distributed switch that carries RDMA, which must exist.
      - Without it, the switch V(rdma) is read if it exists.
    type: str
  days: {description: The number of days before now for which the events of O(vms) are read., type: float, default: 7.0}
"""
