"""The MPI Operator and the kubelets of the tests' API server: launchers of jobs are real mpiruns on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.fakes.kubernetes import Cluster

CORE = "/api/v1/namespaces/default"
JOBS = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs"
RUNNING = {"running": {"startedAt": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}}
KUBECTL = """#!/bin/sh
# Runs here what stands behind the two dashes, if there is such a pod.
while [ "$1" != exec ]; do shift; done
if ! ls "$(dirname "$0")"/pods/*/"$2" >/dev/null 2>&1; then
  echo "Error from server (NotFound): pods $2 not found" >&2; exit 1
fi
while [ "$1" != -- ]; do shift; done; shift
exec "$@"
"""
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


class Operator:
    """Runs the launcher of each job as a process, one job after the other, and reports it as operator and kubelets do.

    The scheduler places the workers on the nodes in reverse order.
    """

    jobs, worker, launcher, first_host = JOBS, "worker-{}", "launcher-x", "worker-0"
    launcher_node = "any"

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._processes: dict[str, subprocess.Popen[str]] = {}
        cluster.operator = self.look

    def look(self, cluster: Cluster) -> None:
        """Take up a new job, and end a deleted or suspended one."""
        jobs = {
            path.rpartition("/")[2]: job for path, job in cluster.answers.items() if path.startswith(f"{self.jobs}/")
        }
        suspended = {name for name, job in jobs.items() if _is_suspended(job["spec"])}
        for name in set(self._processes) - (set(jobs) - suspended):
            end(self._processes.pop(name))
            shutil.rmtree(self._folder / "pods" / name, ignore_errors=True)
            cluster.answers[f"{CORE}/pods"] = []
        for name in set(jobs) - set(self._processes) - suspended:
            self._take_up(name)
        for name in suspended:
            jobs[name]["status"] = self.status("Suspended")

    def _take_up(self, name: str) -> None:
        worker, launcher = self.templates(name)
        terms = worker["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        nodes = [one["matchFields"][0]["values"][0] for one in terms["nodeSelectorTerms"]][::-1]
        known = {one["metadata"]["name"]: one for one in self._cluster.answers["/api/v1/nodes"]}
        if any(known.get(node, {}).get("spec", {}).get("unschedulable") for node in nodes):
            return
        made = [{"metadata": {"name": node}, "status": READY} for node in nodes if node not in known]
        self._cluster.answers["/api/v1/nodes"] += [{"apiVersion": "v1", "kind": "Node", **node} for node in made]
        failed = [_setup_error(container) for container in worker.get("initContainers", []) for _node in nodes[:1]]
        if any(failed):
            states = [{"name": "setup", "state": {"terminated": {"exitCode": 1, "message": failed[0]}}}]
            self._report(name, "Created", [self.pod(name, self.worker.format(0), nodes[0], {}, "Failed", states)])
            return
        self._cluster.answers[f"{CORE}/events"] = [
            _scheduled(f"{name}-{self.worker.format(number)}", node) for number, node in enumerate(nodes)
        ]
        self._start(name, launcher["containers"][0], len(nodes))
        workers = [self.pod(name, self.worker.format(number), node, RUNNING) for number, node in enumerate(nodes)]
        self._report(name, "Running", [self.pod(name, self.launcher, nodes[0], RUNNING), *workers])

    def templates(self, name: str) -> list[dict[str, Any]]:
        """Return the specs of the pods of a worker and of the launcher."""
        replicas = self._cluster.answers[f"{self.jobs}/{name}"]["spec"]["mpiReplicaSpecs"]
        return [replicas[role]["template"]["spec"] for role in ("Worker", "Launcher")]

    def command(self, launcher: dict[str, Any]) -> list[str]:
        """Return the command of the launcher on this machine."""
        return list(launcher["command"])

    def _start(self, name: str, launcher: dict[str, Any], workers: int) -> None:
        hosts = self._folder / f"hostfile-{name}"
        hosts.write_text(f"localhost slots={workers}\n")
        # The name service of Kubernetes resolves the name of rank 0.
        addresses = {f"{name}-{self.first_host}.{name}": "localhost"}
        given = {one["name"]: addresses.get(one["value"], one["value"]) for one in launcher.get("env", [])}
        environment = {**os.environ, **given, "OMPI_MCA_orte_default_hostfile": str(hosts)}
        process = self._processes[name] = subprocess.Popen(
            self.command(launcher),
            env=environment,
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._wait, args=(name, process), daemon=True).start()

    def _wait(self, name: str, process: subprocess.Popen[str]) -> None:
        output, _none = process.communicate()
        if f"{self.jobs}/{name}" not in self._cluster.answers:
            return
        code = process.returncode
        ended = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
        phase = "Failed" if code else "Succeeded"
        self._cluster.answers[f"{CORE}/pods/{name}-{self.launcher}/log"] = output
        self._report(name, phase, [self.pod(name, self.launcher, self.launcher_node, ended, phase)])

    def _report(self, name: str, condition: str, pods: list[dict[str, Any]]) -> None:
        self._cluster.answers[f"{self.jobs}/{name}"]["status"] = self.status(condition)
        folder = self._folder / "pods" / name
        folder.mkdir(parents=True, exist_ok=True)
        for pod in pods:
            (folder / pod["metadata"]["name"]).touch()
        others = [pod for pod in self._cluster.answers[f"{CORE}/pods"] if not pod["metadata"]["name"].startswith(name)]
        self._cluster.answers[f"{CORE}/pods"] = others + pods

    def status(self, condition: str) -> dict[str, Any]:
        """Return the status of a job that is running, has succeeded or has failed."""
        kinds = ("Created", condition)
        return {"conditions": [{"type": kind, "status": "True", "reason": f"MPIJob{kind}"} for kind in kinds]}

    def pod(
        self, job: str, name: str, node: str, state: dict[str, Any], phase: str = "Running", setup: Any = ()
    ) -> dict[str, Any]:
        """Return a pod of a job with the labels of the operator."""
        made = _pod(job, name, node, state, phase, setup)
        labels = {"training.kubeflow.org/job-name": job, "training.kubeflow.org/job-role": name.partition("-")[0]}
        made["metadata"].update(labels=labels, ownerReferences=[{"uid": f"uid-of-{self.jobs}/{job}"}])
        return made

    def close(self) -> None:
        """End what still runs."""
        for process in self._processes.values():
            end(process)


def _is_suspended(spec: dict[str, Any]) -> bool:
    return bool(spec.get("suspend") or spec.get("runPolicy", {}).get("suspend"))


def _scheduled(pod: str, node: str) -> dict[str, Any]:
    about = {"kind": "Pod", "name": pod, "namespace": "default"}
    return {"involvedObject": about, "reason": "Scheduled", "message": f"Successfully assigned default/{pod} to {node}"}


def _setup_error(container: dict[str, Any]) -> str:
    """Run an init container here; return the end of its output if it fails."""
    given = {one["name"]: one["value"] for one in container.get("env", [])}
    run = {"env": {**os.environ, **given}, "capture_output": True, "text": True}
    done = subprocess.run(container["command"], check=False, **run)  # type: ignore[call-overload]
    return str(done.stderr)[-2048:] if done.returncode else ""


def end(process: subprocess.Popen[str]) -> None:
    """End a launcher with its ranks."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        process.wait()


def _pod(
    job: str, name: str, node: str, state: dict[str, Any], phase: str = "Running", setup: Any = ()
) -> dict[str, Any]:
    metadata = {"name": f"{job}-{name}", "uid": f"{job}-{name}"}
    states = [{"restartCount": 0, "state": state}]
    status = {"phase": phase, "containerStatuses": states, "initContainerStatuses": list(setup)}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}
