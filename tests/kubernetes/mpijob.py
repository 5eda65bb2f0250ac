"""MPIJobs in the hands of a test of the lab: as small as one can be, so that what fails is the lab."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.kubernetes.cluster import Cluster
from lab.kubernetes.images import OPENMPI

NAMES = "training.kubeflow.org/job-name"
ROLE = "training.kubeflow.org/job-role"
JOB_SECONDS = 180
BY_TCP = ("--mca", "pml", "ob1", "--mca", "btl", "self,tcp")
MPIRUN = ("mpirun", "--allow-run-as-root", "--bind-to", "none", "--map-by", "slot", *BY_TCP)


def mpijob(
    name: str,
    workers: int,
    command: Sequence[str],
    image: str = OPENMPI,
    limits: Mapping[str, int] | None = None,
    mounted: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A job with one worker on each node; its launcher runs ``command`` over all, who see ConfigMaps ``mounted``."""
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {NAMES: name, ROLE: "worker"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    launcher = {"name": "launcher", "image": image, "command": [*MPIRUN, "-np", str(workers), *command]}
    maps = dict(mounted or {})
    mounts = [{"name": one, "mountPath": there} for one, there in maps.items()]
    worker = {"name": "worker", "image": image, "resources": {"limits": dict(limits or {})}, "volumeMounts": mounts}
    volumes = [{"name": one, "configMap": {"name": one}} for one in maps]
    pod = {"affinity": affinity, "containers": [worker], "volumes": volumes}
    replicas = {
        "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {"containers": [launcher]}}},
        "Worker": {"replicas": workers, "restartPolicy": "Never", "template": {"spec": pod}},
    }
    spec = {
        "slotsPerWorker": 1,
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": {"cleanPodPolicy": "None", "backoffLimit": 1},
        "mpiReplicaSpecs": replicas,
    }
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": spec}


class Jobs:
    """The jobs of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @classmethod
    def without_any(cls, cluster: Cluster) -> Jobs:
        """The jobs, after those that a test before this one left are removed."""
        made = cls(cluster)
        for job in cluster.get("mpijobs")["items"]:
            made.remove(job["metadata"]["name"])
        return made

    def begin(self, job: dict[str, Any], *more: dict[str, Any]) -> str:
        """Hand a job over, with what it needs; its name."""
        together = {"apiVersion": "v1", "kind": "List", "items": [*more, job]}
        self.cluster.kubectl("apply", "--server-side", "--filename", "-", text=json.dumps(together))
        return str(job["metadata"]["name"])

    def conditions(self, name: str) -> dict[str, str]:
        """Return what the operator says of a job."""
        result = self.cluster.get("mpijob", name).get("status", {}).get("conditions", [])
        return {one["type"]: one["status"] for one in result}

    def ended(self, name: str, seconds: float = JOB_SECONDS) -> str:
        """Wait for the end of a job, which must be good; what its launcher said."""
        self.until(lambda: {"Succeeded", "Failed"} & set(self.conditions(name)), f"{name} ends", seconds)
        result = self.log(name)
        assert self.conditions(name).get("Succeeded") == "True", f"{self.conditions(name)} {result}"
        return result

    def log(self, name: str) -> str:
        """Return what the launcher of a job has said."""
        return self.cluster.kubectl("logs", f"job/{name}-launcher", "--tail=-1")

    def pods(self, name: str, role: str = "worker") -> list[dict[str, Any]]:
        """The pods of a job that have a role."""
        return list(self.cluster.get("pods", "--selector", f"{NAMES}={name},{ROLE}={role}")["items"])

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of what is called so."""
        return list(self.cluster.get("events", "--field-selector", f"involvedObject.name={name}")["items"])

    def remove(self, name: str) -> None:
        """Take a job away, and return when its pods are gone."""
        self.cluster.kubectl("delete", "mpijob", name, "--ignore-not-found", "--wait")
        self.until(lambda: not self.pods(name) and not self.pods(name, "launcher"), f"the pods of {name} are gone")

    def until(self, true: Callable[[], object], what: str, seconds: float = JOB_SECONDS) -> None:
        """Wait for something to be true; where it does not come, all pods and events say why."""
        deadline = time.monotonic() + seconds
        while not true():
            if time.monotonic() > deadline:
                pods = self.cluster.kubectl("get", "pods", "--all-namespaces", "--output", "wide")
                events = self.cluster.kubectl("get", "events", "--sort-by", ".lastTimestamp")
                raise AssertionError(f"not within {seconds} s: {what}\n{pods}\n{events}")
            time.sleep(0.3)
