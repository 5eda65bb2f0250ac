"""The objects of a run on Kubernetes: variables of the user take precedence over those of the role, as on nodes."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.errors import CollectionError, Refused
from plugins.module_utils.kubernetes.job_kinds import KINDS
from plugins.module_utils.kubernetes.own_mpijob import OwnMpiJob, job_name
from plugins.module_utils.kubernetes.state import state_of
from plugins.module_utils.training.programs.follow import TrainingSite
from plugins.module_utils.training.programs.restart import RestartableRun
from plugins.module_utils.training.programs.train import train
from plugins.module_utils.training.runs import run_source
from plugins.module_utils.training.runs.restartable import SeenCheckpoint
from plugins.module_utils.training.runs.training_run import Prepared
from tests.fakes.deaths import histories
from tests.fakes.kubernetes_objects import Objects, node
from tests.fakes.kubernetes_objects import queue as in_queue
from tests.fakes.training_world import SAVED, Job, TrainingWorld

from .objects import CREATED, LAUNCHER, RUNNING, WORKERS, job, snapshot, stamp

DELETED = {"metadata": {"uid": "7", "deletionTimestamp": stamp(165)}}


def test_a_users_variable_overrides_that_of_the_role() -> None:
    """The documented PYTHONPATH of a folder with src/ is one that the role sets too."""
    given = {"PYTHONPATH": "src", "MASTER_PORT": "4000", "TOKEN": "hf_secret", "LD_LIBRARY_PATH": "/opt/own/lib"}
    world = TrainingWorld(backend="kubernetes", kubernetes={"image": "train:1"}, environment=given)

    secret, job = OwnMpiJob(world, world.run()).objects(Prepared(python="python3", port=29500))

    values = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
    assert values == {**given, "PYTHONPATH": "src:/lib"}
    container = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    named = [each["name"] for each in container["env"]]
    assert "DML_RECORDS" in named and not set(named) & set(given)
    words = [*container.get("command", []), *container.get("args", [])]
    passed = [words[index + 1] for index, word in enumerate(words) if word == "-x"]
    assert set(given) <= set(passed) and len(passed) == len(set(passed))
    assert "hf_secret" not in str(job)


def test_two_runs_never_share_a_job() -> None:
    names = ["one", "One", "one.", "a_b", "a-b", "a.b", "_", "..", "x" * 60, "x" * 61, "20261127T101112-tcp-2"]

    jobs = [job_name(name) for name in names]

    assert len(set(jobs)) == len(names) and jobs[0] == "dml-one" and jobs[4] == "dml-a-b"
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", job) and len(job) <= 48 for job in jobs)


@pytest.mark.parametrize("api", sorted(KINDS))
@pytest.mark.parametrize("name", ["x" * 36, "X" * 33, "x" * 200])
def test_further_attempt_has_a_valid_name(api: str, name: str) -> None:
    """A window has stopped the attempt before."""
    kubernetes = {"image": "train:1", "job": {"api": api}}
    world = TrainingWorld(backend="kubernetes", kubernetes=kubernetes, environment={})
    run = replace(world.run(), name=name, first=name)
    for attempt in (run, run.attempt(2), run.attempt(100)):
        *_others, job = OwnMpiJob(world, attempt).objects(Prepared(python="python3", port=29500))
        longest = KINDS[api].longest_pod(job["metadata"]["name"], 2)
        assert len(longest) <= 63, longest


class PodsWorld(TrainingWorld):
    """A run whose pods Kubernetes has; its jobs by the name of their object."""

    def __init__(self, deaths: Iterable[int] = (), api: str = "v2beta1", queue: str = "", **options: Any) -> None:
        kubernetes = {"image": "train:1", "job": {"api": api, **({"queue": queue} if queue else {})}}
        super().__init__(deaths, backend="kubernetes", kubernetes=kubernetes, **options)
        self.objects, self.is_late = dict[str, dict[str, Any]](), False
        self.cluster = Objects(node("w1"), node("w2"), node("w3"), *in_queue())

    @property
    def site(self) -> TrainingSite:
        return TrainingSite(self, partial(OwnMpiJob, self), "/role/files")

    def _mpijob_info(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"job": self.objects.get(options["name"], {"state": "absent"}), "log": ""}

    def _k8s_info(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return self.cluster.read(options)

    def _k8s(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any] | None:
        if options.get("state") == "patched":
            self.cluster.patch(options)
        elif options.get("state") == "absent" and self.is_late:
            deleted = snapshot({**job(CREATED, RUNNING), **DELETED}, [LAUNCHER, *WORKERS])
            self.objects = {name: dict(state_of(deleted)) for name in self.objects}
            return {"failed": True, "msg": '"MPIJob" "dml-one": Timed out waiting on resource'}
        elif options.get("state") == "absent":
            for each in options["resource_definition"]:
                if self.objects.pop(each["metadata"]["name"], None):
                    assert {"w1", "w2"} <= set(self.cluster.kept), "other jobs would get its nodes"
        elif options["definition"]["kind"] in ("MPIJob", "TrainJob"):
            name = options["definition"]["metadata"]["name"]
            if name in self.objects:
                return {"failed": True, "msg": 'Apply failed with 1 conflict: conflict with "kueue": .spec'}
            self.starts[name] += 1
            assert self.cluster.kept == [], "its pods would find no node"
            self.objects[name] = {"state": "running", "started": self.clock}
        return None


def restartable(world: PodsWorld) -> RestartableRun:
    known = world.kept("one")
    run = replace(world.run(), o=run_source.with_followed(world.o, known))
    return RestartableRun(world.site, run_source.taken_up(run, known), "the window of me")


def trains(**options: Any) -> PodsWorld:
    world = PodsWorld(follow=False, **options)
    train(Program(MemoryJournal(), world), world.site, world.run())
    return world


@pytest.mark.parametrize("api", ["v2beta1", "trainjob"])
def test_window_restarts_a_job_of_pods_as_another_one(api: str) -> None:
    world = trains(api=api)
    assert restartable(world).refusal() == "" and list(world.objects) == ["dml-one"]

    stopped = restartable(world).stop()
    ended = world.kept("one")["end"]["ended"]
    again = restartable(world).stop()
    started = restartable(world).start_again(cast("SeenCheckpoint", {**SAVED, "since": 0.0}))

    assert stopped["state"] == again["state"] == "stopped" and stopped["why"] == "stopped by the window of me"
    assert world.kept("one")["end"]["ended"] == ended, "the end of a deleted job stays as it was"
    assert (started["run"], started["kubernetes"]["name"], list(world.objects)) == ("one-2", "dml-one-2", ["dml-one-2"])


@pytest.mark.parametrize("job", [{"state": "died", "machine": True, "why": "the pods are gone"}, None])
def test_job_whose_pods_the_window_ended_was_stopped(job: dict[str, Any] | None) -> None:
    """A command that follows the run must not try it again because its pods are gone."""
    world = trains(attempts=3)
    restartable(world).stop()
    world.objects.update({"dml-one": job} if job else {})

    looked = OwnMpiJob(world, world.run()).look()["job"]

    assert (looked["state"], looked["why"]) == ("stopped", "stopped by the window of me")


def test_stop_waits_until_no_pod_is_left() -> None:
    world = trains()
    world.jobs["/runs/one"] = Job({"environment": {}}, {"state": "running"}, 0.0)
    with pytest.raises(CollectionError, match="w1: processes of the job run there; w2: processes of the job run there"):
        restartable(world).stop()
    assert world.objects == {} and "end" not in world.kept("one")
    del world.jobs["/runs/one"]
    assert restartable(world).stop()["state"] == "stopped"


def test_second_run_applies_no_job_that_exists() -> None:
    """Kueue has changed the fields of a job that it admitted, so that Kubernetes refuses to apply it again."""
    world = trains()
    OwnMpiJob(world, world.run()).begin(Prepared(python="python3", port=29500))
    assert world.starts["dml-one"] == 1


def test_window_restarts_a_job_whose_deletion_is_late() -> None:
    """Its pods are on a node that does not answer: the stop fails, and the job does not run on."""
    world = trains()
    world.is_late = True
    with pytest.raises(CollectionError, match="Timed out waiting on resource"):
        restartable(world).stop()
    assert restartable(world).state()["state"] == "stopped"
    with pytest.raises(
        CollectionError, match="The training job dml-one was deleted, and waits for the end of its pods"
    ):
        OwnMpiJob(world, world.run()).begin(Prepared(python="python3", port=29500))

    world.is_late = False
    assert restartable(world).stop()["why"] == "stopped by the window of me"
    assert restartable(world).start_again(cast("SeenCheckpoint", {**SAVED, "since": 0.0}))["run"] == "one-2"


def restarted(world: PodsWorld) -> dict[str, Any]:
    """Stop and start a run again with as many controllers as it takes."""
    while True:
        world.is_dead = False
        try:
            assert restartable(world).stop()["state"] == "stopped"
            return restartable(world).start_again(cast("SeenCheckpoint", {**SAVED, "since": 0.0}))
        except CollectionError:
            raise
        except BaseException:  # the controller died
            if not world.is_dead:
                raise


def test_each_death_frees_the_nodes_and_starts_once() -> None:
    def running(deaths: Iterable[int]) -> PodsWorld:
        world = trains(queue="research")
        world.starts.clear()
        world.deaths, world.points = set(deaths), 0
        return world

    for world, started in histories(running, restarted):
        assert started["run"] == "one-2" and list(world.objects) == ["dml-one-2"], world.log
        assert world.cluster.kept == [] and world.starts == {"dml-one-2": 1}, world.log


def test_starts_when_the_nodes_offer_their_gpus_again() -> None:
    world = trains(nccl=True, attempt_wait=60)
    restartable(world).stop()
    world.cluster.found["Node", "w2"]["status"]["allocatable"] = {}

    with pytest.raises(CollectionError, match=r"node w2 offers 0 nvidia\.com/gpu, and a worker needs 1; repair them"):
        restartable(world).start_again(cast("SeenCheckpoint", {**SAVED, "since": 0.0}))

    assert world.objects == {} and world.cluster.kept == ["w1", "w2"]


@pytest.mark.parametrize("ends", ["withdraw", "by owner"])
def test_run_that_goes_on_frees_its_nodes(ends: str) -> None:
    world = trains(queue="research")
    restartable(world).stop()
    if ends == "withdraw":
        restartable(world).withdraw()
    else:
        world.here_files["/results/two/manifest.json"] = {**world.kept("one"), "name": "two", "resumed_from": "one"}
        assert restartable(world).start_again(cast("SeenCheckpoint", {**SAVED, "since": 0.0})) == {"by_owner": "two"}

    assert world.cluster.kept == []


def test_refuses_busy_queues_and_signals_to_pods() -> None:
    world = trains(queue="research")
    with pytest.raises(Refused, match="its ranks run in pods, which get no signal; wait for its next regular"):
        restartable(world).ask_for_checkpoint("TERM", 60.0)
    assert restartable(world).refusal() == ""
    world.cluster.found["ClusterQueue", "gpus"]["status"]["pendingWorkloads"] = 2
    assert "2 jobs wait in its queue, and would get its nodes before its next" in restartable(world).refusal()
