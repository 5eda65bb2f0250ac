#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the folder and the settings of a vMotion test, which the action of the same name carries out."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vmotion_test
short_description: Move every worker in turn while a job trains, and judge whether the job continued
version_added: 1.0.0
description:
  - Plans the moves, watches the job, moves one worker after another, or several at once (O(max_moves)), and judges the
    job after each move. It fails unless the job is continuous and every move took place. The role
    P(dml.vsphere.vmotion_test#role) sets the options.
  - The module writes all observations to a journal in the folder of the test, C(journal.jsonl), which determines the
    next step. If the controller was killed, the next run continues the test with its original settings. It looks up on
    the server a move that was started, and never starts a move twice.
  - The job is read on O(launcher) as O(user); everything else runs on the controller.
  - In check mode, the module shows the plan of the moves and writes nothing.
extends_documentation_fragment:
  - dml.vsphere.roles.vmotion_test
  - dml.vsphere.connection
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.esxi_window
  - module: dml.vsphere.observe
  - module: dml.vsphere.continuity_verdict
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Show the moves of a test of cluster gpu
  dml.vsphere.vmotion_test:
    cluster: gpu
    dir: /var/lib/dml/vmotion_test
  check_mode: true

- name: Test cluster gpu
  dml.vsphere.vmotion_test:
    cluster: gpu
    dir: /var/lib/dml/vmotion_test
    launcher: worker01
    run_dir: /var/lib/dml/runs/one
    records: /var/lib/dml/runs/one
    nodes:
      - {name: worker01, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.1]}
      - {name: worker02, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.2]}
"""

RETURN = r"""
folder: {description: The folder of the test., returned: when it was carried out, type: str}
verdict: {description: "V(continuous), V(broken) or V(inconclusive).", returned: when the job was judged, type: str}
moved:
  description: Whether V(all), V(some) or V(none) of the moves took place.
  returned: when the job was judged
  type: str
moves: {description: The moves that are planned., returned: in check mode, type: list, elements: dict}
"""
