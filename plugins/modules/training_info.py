#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the training jobs on a node, and the state of one of them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_info
short_description: Find the training jobs on a node, and read the state and the checkpoints of one of them
version_added: 1.0.0
description:
  - Runs on a node. With V(jobs) in O(gather), it reads the environment of the node's processes, including those in
    containers and pods, and returns the jobs of M(dml.vsphere.training_job) and of Kubernetes to which they belong. A
    user who is not root sees only their own jobs.
  - With V(job), it runs on the launcher node of a job, and reads its run directory and its processes. If the job died,
    RV(job.why) is the cause in one sentence, with rank and node if the output names them.
  - With V(printed), it reads the rate and the transport that the job printed to its output in O(run_dir).
  - With V(checkpoints), it reads the checkpoints in a folder, also while a job writes them.
options:
  gather:
    description: The parts to read. V(job) and V(printed) need O(run_dir), V(checkpoints) needs O(checkpoints).
    type: list
    elements: str
    choices: [checkpoints, job, jobs, printed]
    default: [jobs]
  run_dir: {description: The run directory on the launcher., type: path}
  records:
    description:
      - The folder of the step records. If O(run_dir) contains no job of M(dml.vsphere.training_job), the job is the
        one whose ranks on this node write into this folder, whatever tool started it. RV(job.launcher) is then the
        outermost process above them that starts ranks, such as C(mpirun). Such a job runs or is V(absent), because its
        exit code is not known.
    type: path
  slurm_job:
    description:
      - The number of a job in Slurm. If O(run_dir) contains no job of M(dml.vsphere.training_job), the job is the one
        whose processes C(scontrol listpids) lists on this node, and RV(job.launcher) is its batch script.
    type: str
  checkpoints: {description: A folder with checkpoints., type: path}
  patterns:
    description: Patterns of the names of checkpoints; by default those with usual names.
    type: list
    elements: str
    default: []
  ranks: {description: "The number of ranks that write a checkpoint, if it is known.", type: int, default: 0}
  output_bytes:
    description:
      - How many bytes of the end of the output RV(job.output) contains; by default it is not returned. The values
        of the secret environment of the job are replaced by V(HIDDEN).
    type: int
    default: 0
  name: {description: "The name of a run, to return only this one.", type: str}
  ignored:
    description: A regular expression; jobs whose names match it from their beginning are not returned.
    type: str
  node:
    description: The name of the node in Kubernetes, returned with the jobs; by default the host name in lower case.
    type: str
  port: {description: A TCP port; the first free one of this and the next 99 ports is returned., type: int}
  manifest: {description: The run directory whose manifest to return as text., type: path}
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.training_job
  - module: dml.vsphere.mpijob_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Find the training jobs that run on the node
  dml.vsphere.training_info:
  register: training
  become: true

- name: Require a node without training jobs
  ansible.builtin.assert:
    that: training.jobs | length == 0
    fail_msg: "{{ training.jobs | map(attribute='title') | join(', ') }}"

- name: Read the state of a training job
  dml.vsphere.training_info:
    gather: [job]
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
  returned: with V(job) in O(gather)
  type: dict
  contains:
    state: {description: "V(absent), V(running), V(finished), V(died) or V(stopped).", type: str, sample: died}
    run_id: {description: The value of C(DML_RUN_ID) in the environment of the processes of the job., type: str}
    launcher: {description: "The process of C(mpirun): host, number, start in kernel ticks, and boot id.", type: dict}
    job: {description: The MPI namespace of the job., type: str, sample: "422313985"}
    records: {description: "With O(slurm_job), the folder of the step records; empty if unknown.", type: str}
    nodes_of_ranks: {description: The node of each rank., type: list, elements: str}
    mpirun_command: {description: The command of C(mpirun) with its arguments., type: list, elements: str}
    steps_by:
      description: The source of the step records, from C(DML_STEPS_BY); V(none) if the job reports no steps.
      type: str
    started: {description: "The time of the start, in seconds since 1970.", type: float}
    ended: {description: "The time of the end, in seconds since 1970.", type: float}
    exit_code: {description: Exit code of C(mpirun)., type: int}
    why:
      description: The cause of the job's end, or with O(records) of its absence, in one sentence.
      type: str
      sample: the launcher lost the node n3
    full: {description: "If a scheduler has not started the job, the full file system of its folder.", type: str}
    rank: {description: The rank at fault., type: int}
    node: {description: The node at fault., type: str}
    machine: {description: "Whether a lost node or signal 9 ended the job, and not its program.", type: bool}
    last_lines: {description: The last lines of the output., type: list, elements: str}
    output: {description: "The end of the output, if requested.", type: str}
    left: {description: "Nodes on which processes may remain, with the reason.", type: dict}
    script_sha256: {description: Checksum of the training script., type: str}
    script_git: {description: The git commit of the folder of the script. The files may differ from it., type: str}
jobs:
  description: The jobs that run on the node.
  returned: with V(jobs) in O(gather)
  type: list
  elements: dict
  contains:
    name: {description: The name of the run., type: str}
    run_dir: {description: The run directory., type: str}
    run_id: {description: "The value of C(DML_RUN_ID) of its processes, empty on Kubernetes.", type: str}
    user: {description: The user of its processes., type: str}
    asked_by: {description: "Who started the run, as C(user@controller), empty if unknown.", type: str}
    started: {description: "The start of its first process on the node, in seconds since 1970.", type: float}
    step: {description: "The last step of the ranks on the node, V(null) if unknown.", type: int}
    launched_here: {description: Whether the node is the launcher., type: bool}
    title: {description: The job in words., type: str, sample: "long1 of anna since 2026-01-02 04:16 UTC (step 2127)"}
    processes:
      description: Its processes on the node.
      type: list
      elements: dict
      contains:
        pid: {description: The number of the process., type: int}
        start: {description: The start of the process in kernel ticks since boot., type: int}
free_port: {description: "The first free TCP port, starting with O(port).", returned: with O(port), type: int}
node:
  description: The name of the node in Kubernetes, if the node is a node of Kubernetes.
  returned: with V(jobs) in O(gather)
  type: str
manifest:
  description: The text of the manifest; empty if it is missing or too large.
  returned: if O(manifest)
  type: str
checkpoints:
  description: The newest complete checkpoint in O(checkpoints), after newer ones that are not complete.
  returned: with V(checkpoints) in O(gather)
  type: dict
  contains:
    seen:
      description: The checkpoints, the newest first.
      type: list
      elements: dict
      contains:
        path: {description: "Its path in the folder.", type: str, sample: checkpoint-500}
        kind: {description: "Its format, or V(a file).", type: str}
        why: {description: "Why it is not complete; empty if it is.", type: str}
        step: {description: "Its step; V(null) if neither its content nor its name has one.", type: int}
        age: {description: "The seconds since its last file was written, by the clock of the node.", type: float}
        parts: {description: The number of its files., type: int}
        bytes: {description: The size of its files., type: int}
        optimizer: {description: "Whether it has the optimizer; V(null) if that is unknown.", type: bool}
    interval: {description: "The usual seconds between two checkpoints, V(null) if there is only one.", type: float}
    bytes: {description: The size of all files in the folder., type: int}
printed:
  description: The figures in the output of the job.
  returned: with V(printed) in O(gather)
  type: dict
  contains:
    total: {description: The images/s of all ranks at the end of a benchmark; V(null) if unknown., type: float}
    ways:
      description: The connections between the ranks in NCCL's log, such as V(NET/Socket).
      type: list
      elements: str
    has_nccl: {description: Whether the output contains messages of NCCL., type: bool}
"""

import os
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.errors import Failed, Refused
from ..module_utils.guests import supervisor
from ..module_utils.training.guest import daemon_ports, others_job, slurm_processes
from ..module_utils.training.guest.job import job_state
from ..module_utils.training.guest.job_output import shown_output
from ..module_utils.training.launch.mpirun import LaunchError
from ..module_utils.training.output import log
from ..module_utils.training.results import checkpoint_reader, manifest
from ..module_utils.training.running import busy
from ..module_utils.watch import jobs_program

PARTS = ["checkpoints", "job", "jobs", "printed"]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "gather": {"type": "list", "elements": "str", "choices": PARTS, "default": ["jobs"]},
    "run_dir": {"type": "path"},
    "records": {"type": "path"},
    "slurm_job": {"type": "str"},
    "checkpoints": {"type": "path"},
    "patterns": {"type": "list", "elements": "str", "default": []},
    "ranks": {"type": "int", "default": 0},
    "output_bytes": {"type": "int", "default": 0},
    "name": {"type": "str"},
    "ignored": {"type": "str"},
    "node": {"type": "str"},
    "port": {"type": "int"},
    "manifest": {"type": "path"},
}


def job_of(module: AnsibleModule) -> runner.Result:
    """Return the job in a run directory, or that of the processes in Slurm, or of the ranks that write records."""
    params = module.params
    run_dir, limit = params["run_dir"], params["output_bytes"]
    job = job_state(run_dir)
    if job["state"] == "absent" and params["slurm_job"]:
        output, failure = slurm_processes.listed(params["slurm_job"], module.run_command)
        job = slurm_processes.state_of(params["slurm_job"], output, failure, params["records"] or "")
    elif job["state"] == "absent" and params["records"]:
        job = others_job.state_of(params["records"])
    return {**job, "output": shown_output(run_dir, limit)} if limit > 0 else {**job}


def figures_of(run_dir: str) -> runner.Result:
    """Return the figures in the output of a job."""
    try:
        output = Path(run_dir, supervisor.OUTPUT).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Refused(run_dir, "read the output of the job", str(error), "specify the directory of a job") from error
    return dict(log.figures(output))


def free_port(first: int | None) -> runner.Result:
    """Return the first free port; empty if none is asked for."""
    try:
        return {"free_port": daemon_ports.first_free(first)} if first else {}
    except LaunchError as error:
        raise Refused("the node", "find a free port", str(error), "set another training_port") from error


def jobs_of(params: runner.Params) -> runner.Result:
    try:
        found = jobs_program.node_jobs()
    except OSError as error:
        raise Failed("the node", f"read {error.filename}", str(error.strerror)) from error
    jobs = busy.selected(found, params["name"] or "", params["ignored"] or "")
    node, run_dir = params["node"] or os.uname().nodename.lower(), params["manifest"]
    return {
        "jobs": [{**job, "title": busy.title(job)} for job in jobs],
        "node": node,
        **free_port(params["port"]),
        **({"manifest": jobs_program.manifest_in(os.path.join(run_dir, manifest.FILE))} if run_dir else {}),
    }


def checkpoints_of(params: runner.Params) -> runner.Result:
    """Return the checkpoints in a folder, which need not exist yet."""
    return checkpoint_reader.read(Path(params["checkpoints"]), params["patterns"], params["ranks"], time.time())


def body(module: AnsibleModule) -> runner.Result:
    params, gather = module.params, module.params["gather"]
    if params["run_dir"] is None and {"job", "printed"} & set(gather):
        raise Refused("the node", "read a job", "the option run_dir is missing", "name the run directory of the job")
    if params["checkpoints"] is None and "checkpoints" in gather:
        raise Refused("the node", "read checkpoints", "the option checkpoints is missing", "name their folder")
    return {
        "changed": False,
        **(jobs_of(params) if "jobs" in gather else {}),
        **({"job": job_of(module)} if "job" in gather else {}),
        **({"printed": figures_of(params["run_dir"])} if "printed" in gather else {}),
        **({"checkpoints": checkpoints_of(params)} if "checkpoints" in gather else {}),
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
