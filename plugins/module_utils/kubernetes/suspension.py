"""An MPIJob or a TrainJob of another tool, which a maintenance window suspends at a checkpoint and resumes; pure.

Its object stays, so that its command finds the newest checkpoint by itself. A job in a queue of Kueue is suspended by
its Workload: Kueue would resume the job itself at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..durable.calls import ReachedNode, Result, required
from ..durable.program import MemoryJournal, Program
from ..errors import NotFound, Refused, TimedOut
from ..training.ending.job_state import JobState
from ..training.programs import restart_commands
from ..training.runs.any_job import RunPlace
from ..training.runs.controller_site import TrainingCalls
from ..training.runs.restartable import Checkpoints, NamedJob, SeenCheckpoint
from ..training.runs.run_watch import RunWatch
from ..training.runs.training_run import PLACE
from .job_kinds import KINDS, TRAINJOB, V2BETA1, WORKER
from .kept_nodes import KUEUE, JobPlace, objects_of, patch, patient
from .manifests import QUEUE
from .mpijob import INFO
from .object_fields import Object, is_deleted, labels, part, quantity, several

# The annotation of a job that a window has suspended, with the window.
STOPPED_BY = "dml.vsphere/stopped-by"
JOB_UID = "kueue.x-k8s.io/job-uid"
# Kubernetes gives pods 30 s to end; images may have to be pulled before they run again.
STOP_SECONDS, READY_SECONDS, START_SECONDS = 120.0, 600.0, 600.0


class SuspendableJob:
    """A job with its place in Kubernetes; ``by`` is the window. Its checkpoints are in a folder of its ``launcher``."""

    def __init__(self, calls: TrainingCalls, job: NamedJob, by: str) -> None:
        self._calls, self._here, self._job, self._by = calls, patient(calls), job, by
        self._named = job["kubernetes"]
        self._kind = KINDS[str(self._named.get("api") or V2BETA1)]
        self._access = {key: self._named[key] for key in PLACE if key in self._named and key != "namespace"}
        self._namespace = str(self._named.get("namespace") or "default")
        self._run = str(self._named["name"])
        self.name = f"{self._kind.kind} {self._run}"

    def refusal(self) -> str:
        """Return nothing: a job that exists can be suspended, if its queue exists too."""
        self._place(self._object()).pending()
        return ""

    def by_owner(self) -> str:
        """Return nothing: it has no other attempt, and runs if its owner has resumed it."""
        return ""

    def state(self) -> JobState:
        """Return the state of the job; one that this window has suspended is stopped, also in a queue."""
        read: JobState = self._read()
        by = part(part(self._object(), "metadata"), "annotations").get(STOPPED_BY)
        is_stopped = bool(by) and read["state"] in ("waiting", "stopped")
        return {**read, "state": "stopped", "why": f"stopped by {by}"} if is_stopped else read

    def stopped_by_owner(self) -> str:
        """Return that another user has deleted the job, or suspended it: it has no mark of a window."""
        found = self._found()
        if not found or is_deleted(found[0]):
            return "deleted by another user"
        is_marked = part(part(self._object(), "metadata"), "annotations").get(STOPPED_BY)
        return "suspended by another user" if self._read()["state"] == "stopped" and not is_marked else ""

    def checkpoints(self) -> Checkpoints:
        """Return the checkpoints in their folder."""
        return restart_commands.checkpoints_in(self._calls, self._job)

    def ask_for_checkpoint(self, signal: str, seconds: float) -> None:
        """Refuse to send a signal."""
        del seconds
        cause = f"its ranks run in pods, which do not get {signal}"
        raise Refused(self.name, "ask for a checkpoint", cause, "wait for its next regular checkpoint")

    def withdraw(self) -> None:
        """Let the job go on, and other jobs have its place when it ends."""
        job = self._object()
        if part(part(job, "metadata"), "annotations").get(STOPPED_BY):
            self._suspend(job, None)
        self.free_nodes()

    def free_nodes(self) -> None:
        """Let other jobs have its place, also if it was deleted, and nothing names its queue any more."""
        found = self._found()
        self._place(found[0] if found else {}).free(every_queue=not found)

    def stop(self) -> JobState:
        """Keep its place, suspend the job, and wait until none of its workers' pods is left."""
        read, job = self.state(), self._object()
        if read["state"] in ("running", "waiting"):
            self._place(job).keep()
            self._suspend(job, self._by)
        if read["state"] in ("running", "waiting", "stopped"):
            if not self._wait(lambda: not self._workers(), STOP_SECONDS):
                cause = f"its pods {', '.join(self._workers())} are left after {STOP_SECONDS:.0f} s"
                raise TimedOut(self.name, "suspend it", cause, "check their nodes, and run again")
            read = self.state()
        return read

    def start_again(self, checkpoint: SeenCheckpoint, down: Mapping[str, object] | None = None) -> RunPlace:
        """Resume the job when its nodes can run it; its program takes the newest checkpoint."""
        del checkpoint, down
        job = self._object()
        place = self._place(job)
        if not self._wait(lambda: not place.why_not_ready(), READY_SECONDS):
            raise TimedOut(self.name, "resume it", place.why_not_ready(), "repair them, and run again")
        # In this order, it is in the queue before others can be admitted.
        self._suspend(job, None)
        place.free()
        if not self._wait(lambda: self._read()["state"] == "running", START_SECONDS):
            read = self._read()
            cause = f"it is {read['state']} after {START_SECONDS:.0f} s: {read.get('why') or '-'}"
            raise TimedOut(self.name, "resume it", cause, "correct the cause: the job is not suspended any more")
        read = self._read()
        return {
            "run": self._run,
            "launcher": self._job["launcher"],
            "kubernetes": self._named,
            "user": self._job.get("user") or "",
            "run_dir": self._job["run_dir"],
            "nodes": read.get("workers") or [],
        }

    def watch(self) -> RunWatch:
        """Return the watch of the records in its pods."""
        return restart_commands.watch_of(self._calls, self._job, self._run, self._read().get("workers") or [])

    def judged(self) -> Result:
        """Return no verdict: the object of the job is the same, but another tool keeps its code and its data."""
        return restart_commands.unjudged(self.name)

    def machines(self) -> list[ReachedNode]:
        """Return nothing: nodes that are ready and offer their GPUs are enough."""
        return []

    def _read(self) -> Any:
        return required(self._here(INFO, dict(self._named)))["job"]

    def _workers(self) -> list[str]:
        return [name for name, pod in (self._read().get("pods") or {}).items() if pod["role"] == WORKER]

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        return Program(MemoryJournal(), self._calls).wait(condition, seconds)

    def _object(self) -> Object:
        """Return the object of the job."""
        found = self._found()
        if not found:
            cause = f"the namespace {self._namespace} has no such job"
            raise NotFound(self.name, "restart it", cause, "correct kubernetes in maintenance_job")
        return found[0]

    def _found(self) -> list[Object]:
        return self._find(self._kind.api_version, self._kind.kind, name=self._run)

    def _find(self, api: str, kind: str, **which: object) -> list[Object]:
        options = {"api_version": api, "kind": kind, "namespace": self._namespace, **which, **self._access}
        return objects_of(self._here, options)

    def _place(self, job: Object) -> JobPlace:
        """Return the nodes of its pods, or those that are kept for it if it has no pods."""
        pods = (self._read().get("pods") or {}).values()
        nodes = sorted({pod["node"] for pod in pods if pod["role"] == WORKER and pod["node"]})
        queue = (self._namespace, str(labels(job).get(QUEUE) or ""))
        name = f"{self._namespace}/{self._run}"
        return JobPlace(self._here, self._access, name, nodes, queue, _needs(job))

    def _suspend(self, job: Object, by: str | None) -> None:
        """Suspend the job for a window, or resume it."""
        workload = self._workload(job)
        flags = {"suspend": by is not None}
        spec = {} if workload else flags if self._kind is KINDS[TRAINJOB] else {"runPolicy": flags}
        metadata = {"name": self._run, "namespace": self._namespace, "annotations": {STOPPED_BY: by}}
        mark = {"apiVersion": self._kind.api_version, "kind": self._kind.kind, "metadata": metadata, "spec": spec}
        active = {"apiVersion": KUEUE, "kind": "Workload", "spec": {"active": by is None}}
        place = {"name": part(workload, "metadata").get("name"), "namespace": self._namespace}
        changes = [mark, {**active, "metadata": place}] if workload else [mark]
        # A job that is marked and runs goes on; one that is suspended without a mark would be left.
        for each in changes if by else reversed(changes):
            patch(self._here, self._access, each)

    def _workload(self, job: Object) -> Object:
        """Return the Workload of a job in a queue of Kueue; empty without one."""
        if not labels(job).get(QUEUE):
            return {}
        uid = part(job, "metadata").get("uid")
        found = self._find(KUEUE, "Workload", label_selectors=[f"{JOB_UID}={uid}"])
        if not found:
            cause = "Kueue has no Workload for it"
            raise NotFound(self.name, "suspend it", cause, "check that Kueue manages jobs of this kind")
        return found[0]


def _needs(job: Object) -> dict[str, int]:
    """Return the extended resources of a worker, whose names have a domain, from the template of an MPIJob."""
    template = part(part(part(part(job, "spec"), "mpiReplicaSpecs"), "Worker"), "template")
    trainer = part(part(job, "spec"), "trainer")
    requests = [part(each, "resources") for each in several(part(template, "spec"), "containers")]
    found: dict[str, int] = {}
    for limits in (part(each, "limits") for each in (*requests, part(trainer, "resourcesPerNode"))):
        for name, count in limits.items():
            if "/" in name and quantity(count):
                found[name] = found.get(name, 0) + (quantity(count) or 0)
    return found


def lacking(job: Mapping[str, object]) -> str:
    """Return why a job on Kubernetes that the user names cannot be restarted; empty if it can."""
    missing = [name for name in ("launcher", "checkpoints") if not job.get(name)]
    needed = "launcher, a host of the inventory, and checkpoints, the folder there that its pods mount"
    return f"maintenance_job needs {needed}, for a restart: it lacks {', '.join(missing)}." if missing else ""
