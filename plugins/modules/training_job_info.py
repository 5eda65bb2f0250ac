#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what became of a training job."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_job_info
short_description: Read what became of a training job
version_added: 1.0.0
description:
  - Runs on the launcher node and reads the run directory of M(dml.vsphere.training_job) and the processes.
  - Says of a job that died why, in one sentence that names rank and node where its output tells them.
options:
  run_dir:
    description: The run directory on the launcher.
    type: path
    required: true
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.training_job
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Look at the job
  dml.vsphere.training_job_info:
    run_dir: /var/lib/dml/runs/2026-01-02
  register: looked

- name: Say why it died
  ansible.builtin.fail:
    msg: "{{ looked.job.why }}"
  when: looked.job.state == 'died'
"""

RETURN = r"""
job:
  description: The job.
  returned: success
  type: dict
  contains:
    state: {description: "V(absent), V(running), V(finished), V(died) or V(stopped).", type: str, sample: died}
    run_id: {description: What marks the processes of this job as C(DML_RUN_ID) in their environment., type: str}
    launcher: {description: "Host, process, its start in kernel ticks and boot id of C(mpirun).", type: dict}
    job: {description: MPI's namespace of the job., type: str, sample: "422313985"}
    nodes_of_ranks: {description: The node of each rank., type: list, elements: str}
    mpirun_command: {description: The whole command., type: list, elements: str}
    started: {description: "When it began, in seconds since 1970.", type: float}
    ended: {description: When it ended., type: float}
    exit_code: {description: Exit code of C(mpirun)., type: int}
    why: {description: "Why it died, in one sentence.", type: str, sample: "the launcher lost the node n3"}
    rank: {description: The rank at fault., type: int}
    node: {description: The node at fault., type: str}
    last_lines: {description: The last lines of its output., type: list, elements: str}
    left: {description: "Nodes where processes may be left, with the reason.", type: dict}
    script_sha256: {description: Checksum of the training script., type: str}
    script_git: {description: Commit that the folder of the script was at., type: str}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.guest.job import job_state

ARGUMENTS = {"run_dir": {"type": "path", "required": True}}


def body(module: AnsibleModule) -> dict[str, Any]:
    return {"changed": False, "job": job_state(module.params["run_dir"])}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
