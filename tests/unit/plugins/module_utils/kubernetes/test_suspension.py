"""An MPIJob or a TrainJob of another tool that a window suspends and resumes, with a death at each point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.jobs.running_job import restart_of
from plugins.module_utils.kubernetes.suspension import STOPPED_BY, SuspendableJob
from plugins.module_utils.training.runs.restartable import SeenCheckpoint
from tests.fakes.deaths import histories
from tests.fakes.kubernetes_objects import Objects, node, queue
from tests.fakes.training_world import SAVED, TrainingWorld

BY = "the window of me"
SEEN = cast("SeenCheckpoint", {**SAVED, "since": 0.0})
KINDS = {"v2beta1": "MPIJob", "trainjob": "TrainJob"}
LIMITS = {"limits": {"nvidia.com/gpu": "1", "cpu": "4"}}
NEEDS = {
    "v2beta1": {"mpiReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"resources": LIMITS}]}}}}},
    "trainjob": {"trainer": {"resourcesPerNode": LIMITS}},
}
PODS = {f"bert-worker-{number}": {"role": "worker", "node": f"w{number}"} for number in (1, 2)}
# kubernetes.core reports it so, as long as the pod of an operator starts.
REFUSED = (
    "ClusterQueue gpus: Failed to patch object: Internal error occurred: failed calling webhook "
    '"vclusterqueue.kb.io": failed to call webhook: Post "https://kueue-webhook-service.kueue-system.svc:443/'
    'validate-kueue-x-k8s-io-v1beta2-clusterqueue?timeout=10s": no endpoints available for service '
    '"kueue-webhook-service"'
)


class PodsWorld(TrainingWorld):
    """A job on two of three nodes; its operator ends and starts pods as the object of the job asks."""

    def __init__(self, deaths: Iterable[int] = (), api: str = "v2beta1", in_queue: bool = False) -> None:
        super().__init__(deaths)
        self.api, self.in_queue, self.changes = api, in_queue, list[bool]()
        labels = {"kueue.x-k8s.io/queue-name": "research"} if in_queue else {}
        job = {"kind": KINDS[api], "metadata": {"name": "bert", "uid": "7", "labels": labels}, "spec": NEEDS[api]}
        workload = {"kind": "Workload", "metadata": {"name": "job-bert"}, "spec": {"active": True}}
        self.cluster = Objects(node("w1"), node("w2"), node("w3"), *queue(pending=2), job, workload)
        self.end: dict[str, Any] = {}
        self.silent_for = 0

    @property
    def job(self) -> SuspendableJob:
        named = {"name": "bert", "namespace": "research", "api": self.api}
        job = {
            "kubernetes": named,
            "run_dir": "/records",
            "launcher": "w1",
            "checkpoints": "/data",
            "results": "/results",
        }
        return SuspendableJob(self, job, BY)

    @property
    def is_suspended(self) -> bool:
        if (KINDS[self.api], "bert") not in self.cluster.found:
            return True
        spec = self.cluster.spec(KINDS[self.api], "bert")
        if self.in_queue:
            return not self.cluster.spec("Workload", "job-bert")["active"]
        return bool((spec if self.api == "trainjob" else spec.get("runPolicy", {})).get("suspend"))

    def _mpijob_info(self, _host: str, _options: Mapping[str, Any]) -> dict[str, Any]:
        suspended = {"state": "waiting" if self.in_queue else "stopped", "pods": {}}
        running = {"state": "running", "pods": PODS, "workers": [{"name": "w1", "reach": ["kubectl", "exec"]}]}
        return {"job": self.end or (suspended if self.is_suspended else running)}

    def _k8s_info(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return self.cluster.read(options)

    def _k8s(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any] | None:
        if self.silent_for:
            self.silent_for -= 1
            return {"failed": True, "msg": REFUSED}
        before = self.is_suspended
        self.cluster.patch(options)
        if self.is_suspended is not before:
            assert {"w1", "w2"} <= set(self.cluster.kept), "other jobs would get its nodes"
            assert not self.in_queue or "gpus" in self.cluster.kept, "others would be admitted"
            self.changes.append(self.is_suspended)
        return None


def restarted(world: PodsWorld) -> dict[str, Any]:
    """Stop and start the job as a window does, with as many controllers as it takes."""
    while True:
        world.is_dead = False
        try:
            if world.changes == [True, False]:
                world.job.withdraw()
                return {"run": "bert"}
            assert world.job.stop()["state"] == "stopped"
            return world.job.start_again(SEEN)
        except CollectionError:
            raise
        except BaseException:  # the controller died
            if not world.is_dead:
                raise


@pytest.mark.parametrize("in_queue", [False, True])
@pytest.mark.parametrize("api", sorted(KINDS))
def test_each_death_suspends_and_resumes_the_job_once(api: str, in_queue: bool) -> None:
    for world, started in histories(lambda deaths: PodsWorld(deaths, api, in_queue), restarted):
        assert started["run"] == "bert" and world.changes == [True, False], world.log
        assert world.cluster.kept == [] and not world.is_suspended, world.log
        annotations = world.cluster.found[KINDS[api], "bert"]["metadata"].get("annotations") or {}
        assert STOPPED_BY not in annotations, world.log


@pytest.mark.parametrize("in_queue", [False, True])
def test_resumes_once_the_webhooks_of_operators_answer(in_queue: bool) -> None:
    world = PodsWorld(in_queue=in_queue)
    world.job.stop()
    world.silent_for = 3

    world.job.start_again(SEEN)

    assert world.changes == [True, False] and world.cluster.kept == []


@pytest.mark.parametrize("in_queue", [False, True])
def test_job_that_the_window_suspended_has_not_failed(in_queue: bool) -> None:
    world = PodsWorld(in_queue=in_queue)
    world.job.stop()

    assert (world.job.state()["state"], world.job.state()["why"]) == ("stopped", f"stopped by {BY}")
    assert world.cluster.kept == (["gpus"] if in_queue else []) + ["w1", "w2"]


def test_suspension_without_a_mark_is_that_of_the_owner() -> None:
    world = PodsWorld()
    world.cluster.found[KINDS[world.api], "bert"]["spec"] = {**NEEDS[world.api], "runPolicy": {"suspend": True}}
    assert world.job.stop()["state"] == "stopped" and world.changes == []
    assert world.job.stopped_by_owner() == "suspended by another user"

    world = PodsWorld()
    assert world.job.stopped_by_owner() == ""
    world.job.stop()
    assert world.job.stopped_by_owner() == ""


@pytest.mark.parametrize("in_queue", [False, True])
def test_deleted_job_gives_its_nodes_back(in_queue: bool) -> None:
    world = PodsWorld(in_queue=in_queue)
    world.job.stop()
    del world.cluster.found[KINDS[world.api], "bert"]
    world.end = {"state": "absent"}

    assert world.job.stopped_by_owner() == "deleted by another user"
    world.job.free_nodes()

    assert world.cluster.kept == [], world.log


def test_job_is_deleted_while_its_pods_end() -> None:
    world = PodsWorld()
    world.job.stop()
    world.cluster.found[KINDS[world.api], "bert"]["metadata"]["deletionTimestamp"] = "2026-07-03T14:59:17Z"
    assert world.job.stopped_by_owner() == "deleted by another user"


@pytest.mark.parametrize("unknown", ["MPIJob", "Workload"])
def test_job_is_unread_while_the_api_server_starts(unknown: str) -> None:
    """It answers 503 for the kinds of operators, and kubernetes.core reports that as no objects."""
    world = PodsWorld(in_queue=True)
    world.job.stop()
    world.cluster.unknown = {unknown}

    read = world.job.stopped_by_owner if unknown == "MPIJob" else world.job.withdraw
    with pytest.raises(CollectionError, match=f"Kubernetes: could not read {unknown}: Failed to find API for resource"):
        read()
    assert world.cluster.kept == ["gpus", "w1", "w2"] and world.is_suspended, "the job keeps its place"

    world.cluster.unknown = set()
    assert world.job.stopped_by_owner() == ""


def test_deleted_job_needs_no_kueue_for_nodes() -> None:
    world = PodsWorld()
    world.job.stop()
    del world.cluster.found[KINDS[world.api], "bert"]
    world.end, world.cluster.unknown = {"state": "absent"}, {"ClusterQueue"}

    world.job.free_nodes()

    assert world.cluster.kept == []


def test_withdrawn_stop_lets_the_job_go_on() -> None:
    world = PodsWorld(in_queue=True)
    world.job.stop()
    world.job.withdraw()

    assert world.changes == [True, False] and world.cluster.kept == []


def test_resumes_nothing_before_the_nodes_offer_their_gpus() -> None:
    world = PodsWorld()
    world.job.stop()
    world.cluster.found["Node", "w1"]["status"]["allocatable"] = {}

    with pytest.raises(CollectionError, match=r"MPIJob bert: could not resume it: node w1 offers 0 nvidia.com/gpu"):
        world.job.start_again(SEEN)

    assert world.changes == [True] and world.job.state()["state"] == "stopped"


def test_finished_job_is_neither_suspended_nor_resumed() -> None:
    world = PodsWorld()
    world.end = {"state": "died", "why": "pod bert-worker-1 was evicted", "pods": {}}

    assert (world.job.stop()["state"], world.cluster.writes) == ("died", [])
    world.end, world.cluster.found = {"state": "running", "pods": {}}, {}
    assert "MPIJob bert: could not restart it: the namespace research has no such job" in refusal(world)


def refusal(world: PodsWorld) -> str:
    with pytest.raises(CollectionError) as refused:
        world.job.refusal()
    return str(refused.value)


def test_named_job_needs_its_checkpoints_on_a_host() -> None:
    named = {"kubernetes": {"name": "bert"}, "run_dir": "/records"}
    complete = {**named, "launcher": "w1", "checkpoints": "/data"}

    assert "it lacks launcher, checkpoints." in restart_of(named, "/results")["why"]
    assert restart_of(complete, "/results") == {"run": "bert", "job": {**complete, "results": "/results"}}
    in_slurm = {"slurm": {"job": 7}, "run_dir": "/run/a"}
    assert "it lacks checkpoints." in restart_of(in_slurm, "/results")["why"]
