"""playbooks/hosts.yml around an MPIJob: the vGPU manager of five hosts is upgraded while pods on four nodes train."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_vmotion import TAGGED
from tests.kubernetes.conftest import READY_SECONDS
from tests.kubernetes.mpijob import Jobs, mpijob
from tests.kubernetes.test_vmotion import hand_over, inventory, values, variables
from tests.lab.conftest import laboratory
from tests.lab.moves.test_window import DEPOTS, HOSTS, VERSIONS, Upgrade
from tests.lab.places import Place, desired
from tests.lab.trial import PROGRAMS, WORKERS

START_SECONDS = 900


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Four members of Kubernetes on five hosts."""
    with laboratory(tmp_path_factory.mktemp("window"), TAGGED + DEPOTS, "windowpods", kubernetes=True) as made:
        built = made.ansible.module("worker_vm", **desired(made))
        assert built.rc == 0, built.out
        made.lab.kubernetes.wait_for(WORKERS, READY_SECONDS)
        made.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": 2})
        hand_over(made)
        yield made


@pytest.fixture
def jobs(place: Place) -> Jobs:
    """The jobs of the cluster; a test begins without any."""
    return Jobs.without_any(place.lab.kubernetes)


class Seen:
    """Each change of nodes and pods from the beginning on: a watch misses none, however short it is."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.paths = {kind: folder / f"{kind}.json" for kind in ("nodes", "pods")}
        watch = ["--watch", "--output-watch-events", "--output=json", "--request-timeout=0"]
        cluster = place.lab.kubernetes
        environment = {**os.environ, "NO_PROXY": "*", **cluster.environment}
        self.running = []
        for kind, path in self.paths.items():
            with path.open("w") as file:
                command = [*cluster.command, "get", kind, *watch]
                self.running.append(subprocess.Popen(command, stdout=file, env=environment))

    def end(self) -> list[int | None]:
        """End the watch, and return the exit codes of what had ended before."""
        ended = [each.poll() for each in self.running]
        for each in self.running:
            each.terminate()
            each.wait()
        return ended

    def events(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Return the changes of nodes or pods, each with the object after it."""
        text, decoder, at = self.paths[kind].read_text().strip(), json.JSONDecoder(), 0
        while at < len(text):
            event, at = decoder.raw_decode(text, at)
            yield event["type"], event["object"]
            at += len(text[at:]) - len(text[at:].lstrip())


class PodUpgrade(Upgrade):
    """The upgrade of the hosts around an MPIJob, which the playbook train has started."""

    def __init__(self, place: Place, folder: Path, version: str) -> None:
        super().__init__(place, folder, version, inventory(place, folder))
        self.job = variables(place, folder)
        given = json.dumps({**self.job, "training_follow": False})
        command = ("playbooks/train.yml", "-i", str(self.inventory), "-e", given)
        started = place.ansible.playbook(*command, timeout=START_SECONDS)
        assert started.rc == 0, started.out[-6000:]

    def variables(self) -> dict[str, Any]:
        return {**super().variables(), **self.job}


class ForeignUpgrade(Upgrade):
    """The upgrade of the hosts around an MPIJob, of which the playbook is given only the name and the folder."""

    def variables(self) -> dict[str, Any]:
        environment = self.place.lab.environment
        where = {"kubectl": environment["LAB_KUBECTL"], "kubeconfig": environment["KUBECONFIG"]}
        job = {"run_dir": "/records", "kubernetes": {"name": "theirs", "namespace": "default", **where}}
        return {**super().variables(), "maintenance_job": job}


def pods(place: Place) -> dict[str, tuple[str, list[int]]]:
    """Return the UID, and the number of restarts of each container, of every pod."""
    return {pod["metadata"]["name"]: identity(pod) for pod in place.lab.kubernetes.get("pods")["items"]}


def identity(pod: Mapping[str, Any]) -> tuple[str, list[int]]:
    containers = pod["status"].get("containerStatuses", [])
    return str(pod["metadata"]["uid"]), [one["restartCount"] for one in containers]


def check_seen(seen: Seen, before: Mapping[str, tuple[str, list[int]]]) -> None:
    """No node was cordoned or drained, and no pod of the job was deleted, restarted or replaced."""
    nodes = list(seen.events("nodes"))
    assert {one["metadata"]["name"] for _event, one in nodes} == set(WORKERS)
    assert not [one for _event, one in nodes if one["spec"].get("unschedulable")], "a node was cordoned"
    assert {event for event, _one in nodes} <= {"ADDED", "MODIFIED"}
    changes = list(seen.events("pods"))
    assert {event for event, _one in changes} <= {"ADDED", "MODIFIED"}, "a pod was deleted"
    assert not [one for _event, one in changes if one["metadata"].get("deletionTimestamp")], "a pod was evicted"
    assert {one["metadata"]["name"]: identity(one) for _event, one in changes} == before


def check_window(upgrade: Upgrade) -> None:
    """Show the plan, upgrade and reboot every host, and find nothing to do afterwards."""
    place, control = upgrade.place, upgrade.place.lab.control
    control.clear()
    shown = upgrade.run("--check")
    assert shown.rc == 0 and control.writes() == [], shown.out[-6000:]
    assert all(worker in shown.out for worker in WORKERS)
    before, seen = pods(place), Seen(place, upgrade.folder)
    try:
        done = upgrade.run()
    finally:
        ended = seen.end()
    assert done.rc == 0, done.out[-6000:]
    assert ended == [None, None], "the watch of nodes and pods has a gap"
    upgrade.check()
    check_seen(seen, before)
    assert pods(place) == before and len(before) == len(WORKERS) + 1
    (evidence,) = (upgrade.folder / "tests").iterdir()
    requested = [entry for entry in values(evidence, "request ") if "findings" in entry]
    assert requested and not [one for entry in requested for one in entry["findings"] if one["severity"] == "stop"]
    free = place.ansible.module("cluster_lock", check=True, cluster="gpu", state="free", run="a test")
    assert free.rc == 0 and not free.changed, "the lock is still held"
    control.clear()
    again = upgrade.run()
    assert again.rc == 0 and control.writes() == [], again.out[-6000:]


def test_upgrades_every_host_while_the_pods_train(place: Place, jobs: Jobs, tmp_path: Path) -> None:
    assert len(HOSTS) == len(WORKERS) + 1
    check_window(PodUpgrade(place, tmp_path, VERSIONS[0]))


def test_upgrades_every_host_around_a_foreign_job(place: Place, jobs: Jobs, tmp_path: Path) -> None:
    data = {program.name: program.read_text() for program in PROGRAMS}
    programs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "programs"}, "data": data}
    train = ["env", "DML_RECORDS=/records", "PYTHONPATH=/programs", "python3", "/programs/train.py", "--seconds", "0.2"]
    name = jobs.begin(mpijob("theirs", len(WORKERS), train, mounted={"programs": "/programs"}), programs)
    jobs.until(lambda: jobs.conditions(name).get("Running") == "True", "the job runs", START_SECONDS)
    check_window(ForeignUpgrade(place, tmp_path, VERSIONS[1], inventory(place, tmp_path)))
