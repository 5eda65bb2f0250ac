#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the settings of a maintenance window, which the action of the same name carries out."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_window
short_description: Change hosts one after another around a running job, and judge whether the job continued
version_added: 1.1.0
description:
  - Moves the workers of a host away, changes and reboots the host, returns it to service and judges the job, host
    after host, as O(window) describes. With C(by) of O(window) as V(restart), the job stops at a checkpoint instead and
    starts again after the change of its hosts. The playbook C(hosts) with C(under_training=true) sets the options.
  - If the controller was killed, the next run continues the window, as for M(dml.vsphere.vmotion_test).
  - In check mode, the module shows both ways through the window and writes nothing.
  - M(dml.vsphere.maintenance_window) shows a window, and asks it to pause, to resume or to end.
options:
  ending:
    description:
      - The reason for which the unfinished window in O(folder) ends now instead of continuing. The job is judged, and
        the lock, the DRS settings and the watch are released. A host out of service stays so.
    type: str
    default: ""
extends_documentation_fragment:
  - dml.vsphere.roles.esxi_window
  - dml.vsphere.connection
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.vmotion_test
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: End the window in a folder that no run continues
  dml.vsphere.esxi_window:
    cluster: gpu
    dir: /var/lib/dml/vmotion_test
    folder: /var/lib/dml/vmotion_test/gpu-7aa_z1h4
    ending: The host needs a new motherboard.
"""

RETURN = r"""
folder: {description: The folder of the run., returned: when it was carried out, type: str}
verdict:
  description: V(continuous), V(broken) or V(inconclusive), or V(resumed) after a restart.
  returned: when the job was judged
  type: str
moved:
  description: Whether V(all), V(some) or V(none) of the moves took place.
  returned: when the job was judged
  type: str
other_jobs:
  description:
    - The other training jobs of a maintenance window whose workers moved, each with C(title), C(nodes), the nodes that
      were to move as C(moving), and C(verdict), C(breaches), C(unproven), C(longest_gap_s) and C(state), or C(why) the
      job was not judged.
  returned: if workers of other training jobs moved
  type: list
  elements: dict
"""
