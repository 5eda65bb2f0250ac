#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: a training job on its launcher node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_job
short_description: Start or stop a training job on its launcher node
version_added: 1.0.0
description:
  - Runs on the launcher, the node from which C(mpirun) reaches the other nodes with ssh. The launcher needs only Python
    and Open MPI 4.
  - Starts C(mpirun) in a separate session, under a small supervisor that continues to run if the connection or the
    controller fails. A I(run directory) contains exactly one job and all data to check the job later. Running
    the same task again finds the running or finished job, and changes nothing.
  - When the job ends, the supervisor finds and ends the remaining processes of this job on every node.
options:
  run_dir:
    description:
      - The run directory on the launcher. The ranks write their records to a directory of this name on their nodes.
    type: path
    required: true
  state:
    description: V(started) for a job that runs or has finished, V(stopped) for a job that does not run.
    type: str
    choices: [started, stopped]
    default: started
  command:
    description: The program of each rank and its arguments. Required for O(state=started).
    type: list
    elements: str
    default: []
  hosts:
    description:
      - The nodes, in the order of their ranks. Required for O(state=started).
    type: list
    elements: dict
    default: []
    suboptions:
      name: {description: The name or address with which the launcher reaches the node., type: str, required: true}
      slots: {description: "The number of ranks of the node, one for each GPU.", type: int, default: 1}
  ranks: {description: The number of ranks of the job; by default the sum of all slots., type: int}
  environment: {description: Environment variables of every rank., type: dict, default: {}}
  secret_environment:
    description:
      - Additional environment variables of every rank, such as a token. Their values do not occur in logs or results.
        They have precedence over O(environment).
      - Values shorter than eight characters are not masked, because they would match unrelated text.
    type: dict
    default: {}
  transport: {description: "The transport of the job, only for the record.", type: str}
  stack: {description: "The software versions of the job, only for the record.", type: raw}
  script: {description: The training script; its checksum and commit are recorded., type: path}
  mpirun: {description: The C(mpirun) to run., type: str, default: mpirun}
  mpirun_arguments: {description: Additional arguments of C(mpirun)., type: list, elements: str, default: []}
  daemon_ports:
    description:
      - Ports for the daemons of C(mpirun), as FIRST-LAST. The job uses 16 of them that are free on the launcher, so
        several jobs can run on the same nodes. Without it, the parameters of Open MPI on the nodes apply.
    type: str
  remote_shell:
    description: The command, with its options, with which the launcher reaches the other nodes without a prompt.
    type: str
    default: ssh -o BatchMode=yes
  daemon_shell:
    description:
      - The command with which C(mpirun) starts its daemons on the other nodes, if it differs from O(remote_shell), as
        for a job in containers.
    type: str
  remote_python:
    description: The Python interpreter, 3.8 or later, on the other nodes, to find left-over processes.
    type: str
    default: python3
  queued:
    description:
      - Whether a batch system starts the job. The module then only prepares the run directory, whose C(supervisor.py)
        the batch script runs in an allocation of O(hosts) in this order. Until then, the job is V(waiting).
    type: bool
    default: false
  by:
    description:
      - Who stops the job, as C(user@controller), for O(state=stopped). It becomes the cause of the end of the job.
    type: str
    default: ""
  start_timeout: {description: Seconds to wait until C(mpirun) runs., type: int, default: 30}
  stop_timeout:
    description: Seconds to wait until the job is stopped and none of its processes is left.
    type: int
    default: 120
extends_documentation_fragment:
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.training_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Train on two nodes with one GPU each
  dml.vsphere.training_job:
    run_dir: /var/lib/dml/runs/2026-01-02
    command: [/opt/dml/horovod/bin/python, /opt/dml/training/dml_benchmark_tensorflow.py, --batch-size, "32"]
    hosts: [{name: worker01}, {name: worker02}]

- name: Stop the training job
  dml.vsphere.training_job:
    run_dir: /var/lib/dml/runs/2026-01-02
    state: stopped
"""

RETURN = r"""
state:
  description: V(absent), V(waiting), V(running), V(finished), V(died) or V(stopped).
  returned: success
  type: dict
  contains:
    state: {description: The state of the job., type: str, sample: running}
job: {description: "The job, in the form of M(dml.vsphere.training_info).", returned: success, type: dict}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.training.guest import job_output
from ..module_utils.training.guest.job import TrainingJob

try:
    from ansible.module_utils.secrets import register_secrets
except ImportError:  # before ansible-core 2.22
    register_secrets = None

ARGUMENTS: dict[str, dict[str, Any]] = {
    "run_dir": {"type": "path", "required": True},
    "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
    "command": {"type": "list", "elements": "str", "default": []},
    "hosts": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"name": {"type": "str", "required": True}, "slots": {"type": "int", "default": 1}},
    },
    "ranks": {"type": "int"},
    "environment": {"type": "dict", "default": {}},
    "secret_environment": {"type": "dict", "default": {}, "no_log": True},
    "transport": {"type": "str"},
    "stack": {"type": "raw"},
    "script": {"type": "path"},
    "mpirun": {"type": "str", "default": "mpirun"},
    "mpirun_arguments": {"type": "list", "elements": "str", "default": []},
    "daemon_ports": {"type": "str"},
    "remote_shell": {"type": "str", "default": "ssh -o BatchMode=yes"},
    "daemon_shell": {"type": "str"},
    "remote_python": {"type": "str", "default": "python3"},
    "queued": {"type": "bool", "default": False},
    "by": {"type": "str", "default": ""},
    "start_timeout": {"type": "int", "default": 30},
    "stop_timeout": {"type": "int", "default": 120},
}


def hide(module: AnsibleModule) -> None:
    """Let Ansible mask only the long secret values: a value such as 1 or lo would also be masked in other words."""
    environment = module.params["secret_environment"]
    if register_secrets:
        register_secrets(job_output.values(environment))
    else:
        module.no_log_values = set(job_output.values(environment))
    module.params["secret_environment"] = dict.fromkeys(environment, job_output.HIDDEN)


def body(module: AnsibleModule) -> runner.Result:
    job = TrainingJob(dict(module.params))
    hide(module)
    return {**runner.converge_one(module, job), "job": job.read()}


def main() -> None:
    # From 2.22, Ansible masks each value of a no_log option. Without one, it must not log the options.
    secret = {**ARGUMENTS["secret_environment"], "no_log": register_secrets is None}
    module = AnsibleModule(
        argument_spec={**ARGUMENTS, "secret_environment": secret},
        supports_check_mode=True,
        no_log=register_secrets is not None,
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
