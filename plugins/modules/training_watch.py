#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: collect the step records of a training job from its nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_watch
short_description: Collect the step records of a training job from all its nodes
version_added: 1.0.0
description:
  - Keeps one connection to each node open, and appends every step record of the nodes to one file on the machine that
    runs the module. Each record gets the key C(seen), its time of arrival on the clock of this machine. Nodes check for
    records twice a second, so C(seen) may be half a second late.
  - A broken connection is opened again; no record is lost or written twice.
  - Only one watch at a time writes a file of records; a second one ends immediately. A watch that continues an earlier
    one reads all records again; records that were written between the two watches have no C(seen), because their time
    of arrival is unknown.
  - A node that does not answer for some seconds is listed in a file next to O(records), until it answers again;
    M(dml.vsphere.training_wait) and M(dml.vsphere.training_follow) show it.
  - The module ends when the file O(stop) appears, when no record arrived for O(silence) seconds, or after O(timeout)
    seconds. Run it on the controller, with C(async) and C(poll) 0, while vMotion moves workers.
options:
  records:
    description: The file on this machine to which records are appended. Only its owner can read it.
    type: path
    required: true
  stop:
    description: A file on this machine whose appearance ends the watch.
    type: path
    required: true
  tail:
    description:
      - Bytes at the end of each file of records that the watch reads at its start, instead of the whole file. V(0)
        reads all of it. A file that appears later is read from its beginning.
    type: int
    default: 0
  view:
    description:
      - Whether the watch also reads two things every five seconds, which M(dml.vsphere.training_follow) shows. One is
        the use of the GPUs of each node that has C(nvidia-smi). The other is the end of the output of the job, without
        the values of its secret environment.
    type: bool
    default: false
  roll:
    description:
      - A file on this machine whose appearance has the watch begin a new file O(records). The file so far is kept with
        the suffix C(.before), in the place of an earlier one, and the watch removes O(roll).
    type: path
  silence:
    description: Seconds without a record after which the watch ends.
    type: float
    default: 600
  timeout:
    description: Seconds after which the watch ends in any case.
    type: float
    default: 86400
  asked_by:
    description:
      - The PID of a process on this machine, such as the C(ansible-playbook) that started the watch. The watch ends
        when this process ends. V(0) means no process.
    type: int
    default: 0
  attended:
    description:
      - A file on this machine that the user of the records keeps locked, such as the journal of a test. The watch ends
        when no process has locked it for O(alone) seconds.
    type: path
  alone:
    description: Seconds that the watch continues after the last process with a lock on O(attended) ended.
    type: float
    default: 600
author:
  - The dml.vsphere contributors (@dml-vsphere)
extends_documentation_fragment:
  - dml.vsphere.attributes.info
  - dml.vsphere.nodes
"""

EXAMPLES = r"""
- name: Watch the training job until the file /tmp/one/stop appears
  dml.vsphere.training_watch:
    nodes:
      - {name: worker-1, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.1]}
      - {name: worker-2, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.2]}
    folder: /var/lib/dml/runs/one/records
    records: /tmp/one/records.jsonl
    stop: /tmp/one/stop
  delegate_to: localhost
  async: 86400
  poll: 0
"""

RETURN = r"""
ended:
  description: The reason of the end, V(stopped), V(silent), V(out of time), V(abandoned) or V(watched already).
  returned: success
  type: str
nodes:
  description:
    - The number of C(lines) of each node, the C(breaks) of its connection, and the last error as C(said).
    - C(noise) is the number of lines that are not messages, such as a greeting at login.
  returned: success
  type: dict
unreadable:
  description: The number of lines that are not records.
  returned: success
  type: int
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.errors import Failed
from ..module_utils.training.guest import supervisor
from ..module_utils.vmotion.watch import link, node_programs, watcher

ARGUMENTS = {
    **node_programs.NODES,
    "records": {"type": "path", "required": True},
    "stop": {"type": "path", "required": True},
    "tail": {"type": "int", "default": 0},
    "view": {"type": "bool", "default": False},
    "roll": {"type": "path"},
    "silence": {"type": "float", "default": 600.0},
    "timeout": {"type": "float", "default": 86400.0},
    "asked_by": {"type": "int", "default": 0},
    "attended": {"type": "path"},
    "alone": {"type": "float", "default": 600.0},
}


def wanted_by(params: dict[str, Any]) -> Callable[[], bool]:
    """Return whether the process that started the watch still runs, and another one holds the attended file locked."""
    asking = supervisor.identity(params["asked_by"]) if params["asked_by"] else None
    attended = watcher.Attended(Path(params["attended"]), params["alone"]) if params["attended"] else None
    return lambda: (asking is None or supervisor.is_alive(asking)) and (attended is None or attended())


def node_result(node: link.Link, state: watcher.WatchState) -> dict[str, Any]:
    """Return the result of one node."""
    lines = state.lines.get(node.name, 0)
    return {"lines": lines, "breaks": node.breaks, "said": node.last_error, "noise": node.noise}


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    options_of_each = {"tail": params["tail"], "has_view": params["view"]}
    links = [link.Link(node["name"], node["reach"], params["folder"], **options_of_each) for node in params["nodes"]]
    files = (Path(params["records"]), Path(params["stop"]))
    roll = Path(params["roll"]) if params["roll"] else None
    options = watcher.WatchOptions(*files, params["silence"], params["timeout"], wanted_by(params), roll)
    try:
        state = watcher.watch(links, options)
    except OSError as error:
        raise Failed(params["records"], "collect the records of the job", str(error.strerror or error)) from error
    nodes = {node.name: node_result(node, state) for node in links}
    unreadable = state.unreadable + sum(node.noise for node in links)
    return {"changed": False, "ended": state.ended, "nodes": nodes, "unreadable": unreadable}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
