"""Kubeflow Trainer and JobSet of the tests' API server: names, labels and owners are those of their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fakes.kubernetes import Cluster

from .mpi_operator import Operator

PLACE = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default"
TRAINJOBS, RUNTIMES = f"{PLACE}/trainjobs", f"{PLACE}/trainingruntimes"
OWNERS = {
    "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/{}": f"uid-of-{TRAINJOBS}/{{}}",
    "/apis/batch/v1/namespaces/default/jobs/{}-launcher-0": "jobset-of-{}",
    "/apis/batch/v1/namespaces/default/jobs/{}-node-0": "jobset-of-{}",
}


HERE = "the working directory"
# torchrun of two nodes, each with one rank, with the variables that Trainer sets.
AGENTS = (
    *("sh", "-c", 'cd "$0"; PET_NODE_RANK=0 "$@" & PET_NODE_RANK=1 "$@"; code=$?; wait $! || exit 1; exit $code'),
    *(HERE, "env", "PET_NNODES=2", "PET_NPROC_PER_NODE=1", "PET_MASTER_ADDR=localhost", "PET_MASTER_PORT=29400"),
)


class Trainer(Operator):
    """Makes the JobSet and the Jobs of a TrainJob, and runs its launcher, or torchrun of its nodes."""

    jobs, worker, launcher, first_host = TRAINJOBS, "node-0-{}-x7k2p", "launcher-0-0-x", "node-0-0"

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        super().__init__(cluster, folder)
        (folder / ".ssh").mkdir()
        (folder / ".ssh" / "id_rsa").write_text("a key\n")

    def templates(self, name: str) -> list[dict[str, Any]]:
        """Return the specs of the pods of a node and of the launcher, and make the objects that own them.

        Without a launcher, that is the pod of rank 0.
        """
        runtime = self._cluster.answers[f"{RUNTIMES}/{name}"]["spec"]["template"]["spec"]
        by_name = {each["name"]: each["template"]["spec"]["template"]["spec"] for each in runtime["replicatedJobs"]}
        for path, owner in OWNERS.items():
            uid = f"jobset-of-{name}" if "jobsets" in path else f"job-of-{name}"
            made = {"metadata": {"uid": uid, "ownerReferences": [{"uid": owner.format(name)}]}, "spec": runtime}
            self._cluster.answers[path.format(name)] = made
        if "launcher" not in by_name:
            affinity = by_name["node"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            self.launcher_node = affinity["nodeSelectorTerms"][-1]["matchFields"][0]["values"][0]
            self.launcher = self.worker.format(0)
        return [by_name["node"], by_name.get("launcher", by_name["node"])]

    def command(self, launcher: dict[str, Any]) -> list[str]:
        """Return the command of the launcher with the keys of ssh in the folder of the test, or that of all nodes."""
        if "--no-python" in launcher["command"]:
            return [*(launcher["workingDir"] if word == HERE else word for word in AGENTS), *launcher["command"]]
        return [word.replace("/root/", f"{self._folder}/") for word in launcher["command"]]

    def status(self, condition: str) -> dict[str, Any]:
        """Return the status of a job; Trainer has no condition for one that runs."""
        kind = {"Succeeded": "Complete", "Failed": "Failed"}.get(condition)
        return {"conditions": [{"type": kind, "status": "True", "reason": "JobSet"}] if kind else []}

    def pod(
        self, job: str, name: str, node: str, state: dict[str, Any], phase: str = "Running", setup: Any = ()
    ) -> dict[str, Any]:
        """Return a pod of a Job with the labels of JobSet."""
        made = super().pod(job, name, node, state, phase, setup)
        role, _zero, index, _end = name.split("-")
        labels = {"jobset.sigs.k8s.io/jobset-name": job, "jobset.sigs.k8s.io/replicatedjob-name": role}
        labels["batch.kubernetes.io/job-completion-index"] = index
        made["metadata"].update(labels=labels, ownerReferences=[{"uid": f"job-of-{job}"}])
        made["spec"]["hostname"] = f"{job}-{role}-0-{index}"
        return made
