#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the settings of an observation, which the action of the same name carries out."""

from __future__ import annotations

DOCUMENTATION = r"""
module: observe
short_description: Judge a running job while others move its workers
version_added: 1.1.0
description:
  - Finds each move and power event of others in the events of vCenter, and judges the job after them, for O(duration)
    seconds or until the job ends. It writes nothing to vCenter and takes no lock. The playbook C(observe) sets the
    options.
  - If the controller is killed, the observation ends with its report.
  - In check mode, the module shows the moves that a test would make.
extends_documentation_fragment:
  - dml.vsphere.roles.observe
  - dml.vsphere.connection
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.vmotion_test
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Judge a job for a day
  dml.vsphere.observe:
    cluster: gpu
    dir: /var/lib/dml/vmotion_test
    launcher: worker01
    run_dir: /var/lib/dml/runs/one
    records: /var/lib/dml/runs/one
    nodes:
      - {name: worker01, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.1]}
    canary: ""
    drs_override: ""
    duration: 86400
    observe: {seconds: 60}
"""

RETURN = r"""
folder: {description: The folder of the run., returned: when it was carried out, type: str}
verdict: {description: "V(continuous), V(broken) or V(inconclusive).", returned: when the job was judged, type: str}
"""
