#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the state of a training job."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_job_info
short_description: Read the state of a training job
version_added: 1.0.0
description:
  - Runs on the launcher node, and reads the run directory of M(dml.vsphere.training_job) and the processes.
  - If the job died, RV(job.why) is the cause in one sentence, with rank and node if the output names them.
options:
  run_dir:
    description: The run directory on the launcher.
    type: path
    required: true
  records:
    description:
      - The folder of the step records. If O(run_dir) contains no job of M(dml.vsphere.training_job), the job is that of
        the ranks on this node that write into this folder, whatever tool started it. RV(job.launcher) is then the
        outermost process above them that starts ranks, such as C(mpirun). Such a job runs or is V(absent), because its
        exit code is not known.
    type: path
  output_bytes:
    description:
      - How many bytes of the end of the output RV(job.output) contains; by default it is not returned. The values
        of the secret environment of the job are replaced by V(HIDDEN).
    type: int
    default: 0
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.training_job
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read the state of the training job
  dml.vsphere.training_job_info:
    run_dir: /var/lib/dml/runs/2026-01-02
  register: training

- name: Fail because the training job died
  ansible.builtin.fail:
    msg: "{{ training.job.why }}"
  when: training.job.state == 'died'
"""

RETURN = r"""
job:
  description: The job.
  returned: success
  type: dict
  contains:
    state: {description: "V(absent), V(running), V(finished), V(died) or V(stopped).", type: str, sample: died}
    run_id: {description: The value of C(DML_RUN_ID) in the environment of the processes of the job., type: str}
    launcher: {description: "The process of C(mpirun): host, number, start in kernel ticks, and boot id.", type: dict}
    job: {description: The MPI namespace of the job., type: str, sample: "422313985"}
    nodes_of_ranks: {description: The node of each rank., type: list, elements: str}
    mpirun_command: {description: The command of C(mpirun) with its arguments., type: list, elements: str}
    steps_by:
      description: The source of the step records, from C(DML_STEPS_BY); V(none) if the job reports no steps.
      type: str
    started: {description: "The time of the start, in seconds since 1970.", type: float}
    ended: {description: "The time of the end, in seconds since 1970.", type: float}
    exit_code: {description: Exit code of C(mpirun)., type: int}
    why:
      description: The cause of its end, or with O(records) of its absence, in one sentence.
      type: str
      sample: the launcher lost the node n3
    rank: {description: The rank at fault., type: int}
    node: {description: The node at fault., type: str}
    machine:
      description: Whether a lost node or signal 9 ended the job, not its program.
      type: bool
    last_lines: {description: The last lines of the output., type: list, elements: str}
    output: {description: "The end of the output, if requested.", type: str}
    left: {description: "Nodes on which processes may remain, with the reason.", type: dict}
    script_sha256: {description: Checksum of the training script., type: str}
    script_git: {description: The git commit of the folder of the script. The files may differ from it., type: str}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.training.guest import others_job
from ..module_utils.training.guest.job import job_state
from ..module_utils.training.guest.job_output import shown_output

ARGUMENTS = {
    "run_dir": {"type": "path", "required": True},
    "records": {"type": "path"},
    "output_bytes": {"type": "int", "default": 0},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    run_dir, limit = module.params["run_dir"], module.params["output_bytes"]
    job = job_state(run_dir)
    if job["state"] == "absent" and module.params["records"]:
        job = others_job.state_of(module.params["records"])
    return {"changed": False, "job": {**job, "output": shown_output(run_dir, limit)} if limit > 0 else job}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
