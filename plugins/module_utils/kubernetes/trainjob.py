"""The TrainJob of a training job, and the TrainingRuntime with its pod templates, for Kubeflow Trainer.

Trainer makes a JobSet of both. Its MPI plug-in mounts the keys of ssh into the containers with the name ``node``, and
writes the host file of mpirun; the launcher starts when sshd answers on each node. Its plug-in for PyTorch sets the
variables of torchrun (``PET_*``) in these containers, and the job has no launcher.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import pod_templates
from .job_kinds import KINDS, LAUNCHER, NODE, TRAINJOB
from .job_spec import TORCHRUN, JobSpec

KIND = KINDS[TRAINJOB]
RUNTIME = "TrainingRuntime"
# The annotation of a TrainJob with the SHA-256 of its runtime, which Kubernetes does not compare with the job.
RUNTIME_HASH = "dml.vsphere/runtime-sha256"
ANCESTOR = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
SSH, PORT = "/root/.ssh", 22
OWN_KEY = "/root/.dml-key"
# Trainer mounts the private key with the mode 0640, and ssh refuses a key that others than its owner can read.
_WITH_KEY = f'umask 077 && cp {SSH}/id_rsa {OWN_KEY} && exec "$@"'
# Trainer sets these arguments, without a key, in a variable; those of the command line have precedence.
SSH_ARGUMENTS = ("--mca", "plm_rsh_args", f"-o ConnectionAttempts=10 -i {OWN_KEY}")


def runtime(job: JobSpec) -> dict[str, Any]:
    """Return the runtime, without its metadata: the pod templates of the nodes, and of a launcher with mpirun."""
    has_launcher = job.launcher != TORCHRUN
    jobs = [{"name": NODE, "template": {"spec": _node_job(job)}}, _launcher(job)] if has_launcher else [_agents(job)]
    spec = {
        "network": {"publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": [LAUNCHER if has_launcher else NODE]},
        "replicatedJobs": jobs,
    }
    mpi = {"numProcPerNode": job.slots, "mpiImplementation": "OpenMPI", "sshAuthMountPath": SSH}
    plugin = {"mpi": {**mpi, "runLauncherAsNode": False}} if has_launcher else {"torch": {}}
    # Trainer runs as many launchers as the runtime has nodes. The TrainJob has the number of nodes.
    policy = {"numNodes": 1, **plugin}
    return {"apiVersion": KIND.api_version, "kind": RUNTIME, "spec": {"mlPolicy": policy, "template": {"spec": spec}}}


def trainjob(job: JobSpec, made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the TrainJob without its metadata; ``made`` is its runtime."""
    command = _words(_command(job)) if job.launcher != TORCHRUN else pod_templates.torchrun_command(job)
    trainer = {"numNodes": job.workers, "numProcPerNode": job.slots, "command": command}
    reference = {"apiGroup": KIND.group, "kind": RUNTIME, "name": made["metadata"]["name"]}
    spec = {"runtimeRef": reference, "trainer": trainer, **({"suspend": True} if job.suspend else {})}
    return {"apiVersion": KIND.api_version, "kind": KIND.kind, "spec": spec}


def hash_of(made: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a runtime's spec."""
    return hashlib.sha256(json.dumps(made["spec"], sort_keys=True).encode()).hexdigest()


def _node_job(job: JobSpec) -> dict[str, Any]:
    template = _with_restart(pod_templates.worker(job))
    container = template["spec"]["containers"][0]
    probe = {"tcpSocket": {"port": PORT}, "initialDelaySeconds": 1, "periodSeconds": 2}
    container.update(name=NODE, command=_words(["/usr/sbin/sshd", "-De"]), readinessProbe=probe)
    return {"template": template}


def _launcher(job: JobSpec) -> dict[str, Any]:
    template = _with_restart(pod_templates.launcher(job))
    container = template["spec"]["containers"][0]
    container.update(name=NODE, command=_words(_command(job)))
    return {
        "name": LAUNCHER,
        "dependsOn": [{"name": NODE, "status": "Ready"}],
        "template": {
            "metadata": {"labels": dict(ANCESTOR)},
            "spec": {"backoffLimit": job.backoff_limit, "template": template},
        },
    }


def _agents(job: JobSpec) -> dict[str, Any]:
    """Return the job of the nodes with torchrun; its agents do not admit a pod that replaces a failed one."""
    template = _with_restart(pod_templates.worker(job))
    container = template["spec"]["containers"][0]
    container.update(name=NODE, command=pod_templates.torchrun_command(job), **pod_templates.torchrun_environment(job))
    spec = {"backoffLimit": 0, "template": template}
    return {"name": NODE, "template": {"metadata": {"labels": dict(ANCESTOR)}, "spec": spec}}


def _with_restart(template: dict[str, Any]) -> dict[str, Any]:
    """Return a pod template whose containers do not restart in place, so that their output remains as evidence."""
    return {"spec": {**template["spec"], "restartPolicy": "Never"}}


def _command(job: JobSpec) -> list[str]:
    program, *words = pod_templates.mpirun_command(job)
    return [program, *SSH_ARGUMENTS, *words]


def _words(command: Sequence[str]) -> list[str]:
    return ["sh", "-c", _WITH_KEY, "sh", *command]
