# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that read the nodes of a job from outside."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  nodes:
    description: The nodes of the job.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the node.
        type: str
        required: true
      reach:
        description:
          - The words of a command that runs an appended command on the node, such as V(ssh), its options and the
            address. It must not send keep-alives, which would end the connection during a move.
        type: list
        elements: str
        required: true
  folder:
    description: The folder on the nodes that contains the record files.
    type: str
    required: true
"""
