"""The kinds of jobs of Kubeflow: their APIs, and the labels and names that their operators give to pods."""

from __future__ import annotations

from typing import NamedTuple

from .object_fields import Object, part

V2BETA1, TRAINJOB = "v2beta1", "trainjob"
LAUNCHER, WORKER = "launcher", "worker"
# The name of the workers' Job in a TrainJob, and of each container that Trainer gives the keys of ssh.
NODE = "node"


class JobKind(NamedTuple):
    """A kind of jobs. ``operator`` runs them, and ``install`` is how to install it; ``host`` is part of a host name."""

    group: str
    version: str
    kind: str
    plural: str
    operator: str
    install: str
    job_label: str
    role_label: str
    worker_role: str
    index_label: str
    host: str
    # The suffixes that the operator adds to a job's name for its launcher, and to a host name for its pod.
    launcher: str
    longest_end: str

    @property
    def propagation(self) -> str:
        """Return the way in which a job is deleted: with its pods, if its controller permits that.

        While a TrainJob is deleted with what it owns, Trainer makes its JobSet again from the runtime; without the
        runtime, Trainer's webhook refuses the end of the deletion.
        """
        return "Background" if self.group == _TRAINER else "Foreground"

    @property
    def api_version(self) -> str:
        """Return the ``apiVersion`` of its objects."""
        return f"{self.group}/{self.version}"

    def host_of(self, job: str, index: int) -> str:
        """Return the host name of a worker's pod."""
        return f"{job}-{self.host}-{index}"

    def longest_pod(self, job: str, workers: int) -> str:
        names = (f"{self.host_of(job, max(1, workers) - 1)}{self.longest_end}", f"{job}{self.launcher}")
        return max(names, key=len)

    def worker_labels(self, job: str) -> dict[str, str]:
        """Return the labels that the operator gives to a job's workers."""
        return {self.job_label: job, self.role_label: self.worker_role}


_KUBEFLOW, _TRAINER, _JOBSET = "training.kubeflow.org", "trainer.kubeflow.org", "jobset.sigs.k8s.io"
_OPERATOR = ("the MPI Operator", "with the role dml.vsphere.mpi_operator or manually")
KINDS = {
    V2BETA1: JobKind(
        *("kubeflow.org", V2BETA1, "MPIJob", "mpijobs", *_OPERATOR),
        *(f"{_KUBEFLOW}/job-name", f"{_KUBEFLOW}/job-role", WORKER, f"{_KUBEFLOW}/replica-index", WORKER, "", ""),
    ),
    # Trainer makes a JobSet of the same name, whose Jobs are NAME-node-0 and NAME-launcher-0.
    TRAINJOB: JobKind(
        *(
            _TRAINER,
            "v1alpha1",
            "TrainJob",
            "trainjobs",
            "Kubeflow Trainer",
            "with its Helm chart, which brings JobSet",
        ),
        *(f"{_JOBSET}/jobset-name", f"{_JOBSET}/replicatedjob-name", NODE, "batch.kubernetes.io/job-completion-index"),
        *(f"{NODE}-0", f"-{LAUNCHER}-0-0-abcde", "-abcde"),
    ),
}
APIS = tuple(KINDS)


def kind_of(job: Object | None) -> JobKind:
    """Return the kind of a job of the API, by its ``kind``; that of MPIJob without one."""
    return KINDS[TRAINJOB] if job is not None and job.get("kind") == KINDS[TRAINJOB].kind else KINDS[V2BETA1]


def trainer_of(job: Object | None) -> Object:
    """Return the part of a TrainJob with its command and its number of nodes."""
    return part(part(job, "spec"), "trainer")
