#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the moves of workers since a given time, from any user."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vmotion_info
short_description: Read the moves of workers since a time, with the users who started them
version_added: 1.0.0
description:
  - Reads vCenter's events of the workers. They show every move, including those by DRS or a user, and every power-off,
    reset and boot of a worker.
  - A vMotion test uses this module to find the moves of others.
options:
  cluster: {description: The cluster of the workers., type: str, required: true}
  workers: {description: Names of the workers. The default is all workers of the cluster., type: list, elements: str}
  guests:
    description:
      - Host names of guests that may be workers of other clusters of this vCenter, as of a job over several clusters.
        Their moves are returned too, under these names. A name that no worker has, or several workers have, is ignored.
    type: list
    elements: str
    default: []
  since:
    description: The time, in seconds since the epoch on the clock of the machine that runs the module.
    type: float
    required: true
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.vmotion
  - module: dml.vsphere.continuity_verdict
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read the moves of the last hour
  dml.vsphere.vmotion_info:
    cluster: gpu
    since: "{{ now().timestamp() - 3600 }}"
  register: history

- name: Show the users who moved workers
  ansible.builtin.debug:
    msg: "{{ history.moves | map(attribute='by') | list }}"
"""

RETURN = r"""
moves:
  description:
    - The moves in their order, in the form of the C(move) of M(dml.vsphere.vmotion), with the values from events only.
      C(completed) is null for a move in progress.
  returned: success
  type: list
  elements: dict
places:
  description:
    - The current state of each worker. C(host), C(gpus) as HOST/ADDRESS, C(power), C(powered_on), the time of the last
      power-on, and C(encryption) of its moves.
  returned: success
  type: dict
power:
  description: "Power cycles of workers and boots of their guests: C(worker), C(at), C(by) and C(what)."
  returned: success
  type: list
  elements: dict
clock_offset_s:
  description: The server's clock minus the local clock in seconds, with which the times of events were converted.
  returned: success
  type: float
"""


from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.moves.move import move_watch
from ..module_utils.vsphere import session

ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "workers": {"type": "list", "elements": "str"},
    "guests": {"type": "list", "elements": "str", "default": []},
    "since": {"type": "float", "required": True},
}


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    with session.session(params) as opened:
        refs = move_watch.chosen(opened, params["cluster"], params["workers"], params["guests"])
        moves = move_watch.moves_since(opened, refs, params["since"])
    return {"changed": False, **moves}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
