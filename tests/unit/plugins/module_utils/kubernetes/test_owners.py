"""Objects with the labels and the name of a job that belong to an earlier job or to another tenant."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.kubernetes.causes import why_waiting
from plugins.module_utils.kubernetes.seen import events_of, owners_of, pods_of

from .objects import BEGAN, CREATED, LAUNCHER, LAUNCHER_JOB, NAME, UID, WORKERS, event, job, pod, snapshot

QUOTA = 'pods "t2-worker-2" is forbidden: exceeded quota: team'
UIDS = {UID, "c5b1", *(worker["metadata"]["uid"] for worker in WORKERS)}


def about(uid: str | None, *given: Any, **more: Any) -> dict[str, Any]:
    made = event(*given, **more)
    if uid is not None:
        made["involvedObject"]["uid"] = uid
    return made


def test_the_launchers_job_belongs_to_the_mpijob() -> None:
    assert owners_of(job(), [LAUNCHER_JOB]) == {UID, "c5b1"}
    of_another = {"metadata": {"name": "t2-launcher", "uid": "f00", "ownerReferences": [{"uid": "other"}]}}
    assert owners_of(job(), [of_another]) == {UID}
    assert owners_of(None, [LAUNCHER_JOB]) == frozenset()


def test_a_pod_belongs_only_to_its_owner() -> None:
    strange = pod("launcher", node="k4")
    strange["metadata"].update(name="evil", ownerReferences=[{"kind": "MPIJob", "uid": "other"}])
    without = pod("worker", 3)
    del without["metadata"]["ownerReferences"]
    owners = owners_of(job(), [LAUNCHER_JOB])
    assert pods_of(NAME, [strange, LAUNCHER, without, *WORKERS], owners) == pods_of(NAME, [LAUNCHER, *WORKERS])
    assert pods_of(NAME, [LAUNCHER, *WORKERS], owners_of(None, ())) == []


def test_ignores_events_of_an_earlier_namesake_job() -> None:
    earlier = [
        about("old", "MPIJob", NAME, "ValidationError", "no", after=-90),
        about("old", "Pod", "t2-worker-0", "TaintManagerEviction", "Marking for deletion Pod", after=-80),
        about(None, "Pod", "t2-worker-0", "TaintManagerEviction", "Marking for deletion Pod", after=-80),
        about("other", "MPIJob", NAME, "MPIJobFailed", "by another tenant", after=5),
    ]
    mine = [
        about(UID, "MPIJob", NAME, "MPIJobCreated", "MPIJob is created", after=0),
        about("gone", "Pod", "t2-worker-1", "NodeNotReady", "Node is not ready", after=30),
    ]
    assert events_of(NAME, [*earlier, *mine], UIDS, BEGAN) == events_of(NAME, mine)


def test_ignores_a_quota_once_all_pods_exist() -> None:
    refused = [event("MPIJob", NAME, "MPIJobFailed", f"worker pod created failed: {QUOTA}", after=1)]
    creating = {"waiting": {"reason": "ContainerCreating"}}
    starting = [pod("worker", index, phase="Pending", state=creating) for index in (0, 1)]
    assert "exceeded quota: team" in why_waiting(snapshot(job(CREATED), starting, refused))
    third, waits = pod("worker", 2, phase="Pending", state=creating), pod("launcher", phase="Pending", state=creating)
    assert "quota" not in why_waiting(snapshot(job(CREATED), [*starting, third, waits], refused))
    made = event("Job", "t2-launcher", "SuccessfulCreate", "Created pod: t2-launcher-j5h2j", after=9, kind_of="Normal")
    assert "quota" not in why_waiting(snapshot(job(CREATED), starting, [*refused, made]))
