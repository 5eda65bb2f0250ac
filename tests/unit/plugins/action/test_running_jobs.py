"""The job around which hosts are changed: a running one, or that of a window which a killed controller left."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.core import observer_clock
from plugins.module_utils.errors import CollectionError
from plugins.plugin_utils import running_jobs
from plugins.plugin_utils.running_jobs import ARGUMENTS, JobSearch
from tests.fakes.training_world import TrainingWorld

SETTINGS: dict[str, Any] = {
    "cluster": "gpu",
    "launcher": "w1",
    "user": "",
    "run_dir": "/runs/one",
    "records": "/runs/one",
    "nodes": [],
    "kubernetes": {},
    "window": {"hosts": ["esx1"]},
}

RUNNING = {"run_dir": "/runs/one", "asked_by": "anna", "user": "", "started": 7.0}


def search(folder: Path, *, settings: dict[str, Any], **more: Any) -> JobSearch:
    """Return a search for the job of a cluster with one idle worker and an unfinished run in a folder."""
    journal = folder / "gpu-one" / "journal.jsonl"
    journal.parent.mkdir(mode=0o700)
    entries = [{"at": 1.0, "key": key, "value": value} for key, value in {"start": settings, **more}.items()]
    journal.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    journal.chmod(0o600)
    given = {name: option.get("default") for name, option in ARGUMENTS.items()}
    given = {**given, "cluster": "gpu", "under_training": True, "windows": str(folder)}
    hosts = {"w1": {"training_started": {"why": "none runs", "asked": {"w1": {"jobs": []}}}}}
    variables = {"hostvars": hosts, "groups": {"workers": ["w1"]}, "inventory_hostname": "gpu"}
    return JobSearch(TrainingWorld(), given, variables)


def test_an_unfinished_window_needs_no_running_job(tmp_path: Path) -> None:
    job = search(tmp_path, settings=SETTINGS).job()

    assert (job["run_dir"], job["launcher"]) == ("/runs/one", "w1")


def test_unfinished_window_knows_the_next_attempt_of_its_job(tmp_path: Path) -> None:
    started = {"started again": {"run_dir": "/runs/two", "launcher": "w2", "kubernetes": {}}}

    job = search(tmp_path, settings=SETTINGS, **started).job()

    assert (job["run_dir"], job["launcher"]) == ("/runs/two", "w2")


@pytest.mark.parametrize(
    ("job", "number", "launcher"),
    [("7", 7, "w1"), ("7", 8, None), ("7_2", 7, "w1"), ("7_2", "7_2", "w1"), ("7_2", "7_1", None)],
)
def test_unfinished_window_knows_the_place_of_its_slurm_job(
    job: str, number: object, launcher: str | None, tmp_path: Path
) -> None:
    unfinished = search(tmp_path, settings={**SETTINGS, "slurm": {"job": job, "login": "w1"}})
    unfinished._given["around"] = {"slurm": {"job": number}}

    unfinished.place(None)  # type: ignore[arg-type]  # no action is asked

    assert unfinished.job().get("launcher") == launcher
    assert unfinished._given["ignored"] == ("one$" if launcher else "$")


def test_unfinished_run_of_another_kind_replaces_no_job(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match="no job was found, because none runs"):
        search(tmp_path, settings={**SETTINGS, "window": {}}).job()


class SetClock(TrainingWorld):
    """A controller whose clock is set forward by an hour at the first pause; the job ends after two questions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.monkeypatch, self.questions = monkeypatch, 0

    def now(self) -> float:
        return observer_clock.now()

    def pause(self) -> None:
        later = time.time() + 3600.0
        self.monkeypatch.setattr(observer_clock.time, "time", lambda: later)

    def on_each(self, _module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        self.questions += 1
        return {name: {"jobs": [RUNNING] if self.questions <= 2 else []} for name in options}


def test_setting_the_clock_does_not_end_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = search(tmp_path, settings=SETTINGS)
    waiting._calls, waiting._given["wait"] = SetClock(monkeypatch), 60

    assert waiting._after_waiting({"w1": {"jobs": [RUNNING]}}) == ""


class Booting(TrainingWorld):
    """A worker that answers at some login after its power-on; vCenter takes it for one that boots for 60 s."""

    def __init__(self, answers_at: int, jobs: list[dict[str, Any]]) -> None:
        super().__init__()
        self.logins, self.answers_at, self.jobs_then, self.waited = 0, answers_at, jobs, 0.0

    def now(self) -> float:
        return self.waited

    def pause(self) -> None:
        self.waited += 2.0

    def on_each(self, _module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        self.logins += 1
        lost = {"failed": True, "unreachable": True, "msg": "Connection refused"}
        return {name: {"jobs": self.jobs_then} if self.logins >= self.answers_at else lost for name in options}

    def here(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        assert module == "worker_vm_info"
        silent = [name for name, answer in options["jobs"].items() if "jobs" not in answer]
        unread = [
            {"name": name, "reason": "Connection refused", "boots": max(0.0, 60.0 - self.waited)} for name in silent
        ]
        return {"unread": unread, "unread_error": f"unknown: {silent}" if silent else ""}


def booting(tmp_path: Path, world: Booting, **given: Any) -> JobSearch:
    found = search(tmp_path, settings=SETTINGS)
    found._calls, found._given = world, {**found._given, "under_training": False, **given}
    found._hosts = {"w1": {"ansible_host": "10.0.1.11"}}
    return found


@pytest.mark.parametrize(("answers_at", "logins", "waited"), [(1, 1, 0.0), (3, 3, 2.0), (99, 32, 60.0)])
def test_run_waits_for_a_booting_guest(tmp_path: Path, answers_at: int, logins: int, waited: float) -> None:
    world = Booting(answers_at, [])
    found = booting(tmp_path, world)

    answers = found.answers()

    assert (world.logins, world.waited, found.unread(answers) == "") == (logins, waited, answers_at < 99)
    assert sum("waits at most 60 s for guests that boot: w1" in line for line in world.lines) == (answers_at > 1)


def test_change_refuses_a_job_on_a_booted_guest(tmp_path: Path) -> None:
    with pytest.raises(
        CollectionError, match="w1: the training job one of anna since 1970-01-01 00:00 UTC runs on this worker"
    ):
        booting(tmp_path, Booting(3, [RUNNING])).answers()


@pytest.mark.parametrize("given", [{"unread_is_idle": True}, {"around": {"launcher": "w1"}}, {"cluster": ""}])
def test_run_skips_the_wait_without_required_jobs(tmp_path: Path, given: dict[str, Any]) -> None:
    world = Booting(99, [])
    found = booting(tmp_path, world, **given)
    found._vars["ansible_play_hosts_all"] = ["w1"]

    found.answers()

    assert world.logins == 1


def job_check(*, interrupt: bool) -> dict[str, Any]:
    """Return how the start of a rollout has the jobs read again."""
    options = {"cluster": "gpu", "interrupt": interrupt, "remedies": ["interrupt"]}
    variables = {"hostvars": {}, "groups": {}, "inventory_hostname": "gpu"}
    action: Any = None
    found = running_jobs.run(action, variables, options, is_check=True)
    return dict(found["job_check"])


def read_again(world: Booting, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    hosts = {"w1": {"ansible_host": "10.0.1.11"}}
    variables = {"hostvars": hosts, "groups": {"workers": ["w1"]}, "inventory_hostname": "gpu"}
    modules: Any = SimpleNamespace(task=(None, variables))
    monkeypatch.setattr(running_jobs, "NodeWorld", lambda *_arguments: world)
    return running_jobs.again(modules, job_check(interrupt=False))


def test_later_job_is_refused_with_the_same_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = booting(tmp_path, Booting(1, [RUNNING]), remedies=["interrupt"])
    with pytest.raises(CollectionError) as refused:
        first.answers()

    assert read_again(Booting(1, [RUNNING]), monkeypatch) == {"failed": True, "msg": str(refused.value)}


@pytest.mark.parametrize(("answers_at", "unread"), [(1, ""), (2, "unknown: ['w1']")])
def test_jobs_read_again_name_unknown_workers(answers_at: int, unread: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = Booting(answers_at, [])

    assert read_again(world, monkeypatch) == {"unread": unread}
    assert (world.logins, world.waited, world.lines) == (1, 0.0, [])


def test_permitted_interruption_reads_no_jobs_again() -> None:
    assert job_check(interrupt=True) == {}


@pytest.mark.parametrize("named", [{}, {"maintenance_job": {"run_dir": "/runs/two"}}])
def test_refuses_one_job_in_several_clusters_at_once(named: dict[str, Any], tmp_path: Path) -> None:
    unfinished = search(tmp_path, settings=SETTINGS)
    unfinished._vars["ansible_play_hosts_all"] = ["gpu", "more"]
    unfinished._hosts.update({"gpu": {}, "more": named})  # type: ignore[attr-defined]  # of the fake

    if named:
        assert unfinished.job()["run_dir"] == "/runs/one"
    else:
        with pytest.raises(CollectionError, match="--limit gpu,workers, then --limit more,workers"):
            unfinished.job()


@pytest.mark.parametrize(("workers", "found"), [(["w1"], {"w1": "Connection refused"}), ([], {})])
def test_unread_workers_need_workers_in_the_inventory(
    workers: list[str], found: dict[str, str], tmp_path: Path
) -> None:
    asking = booting(tmp_path, Booting(99, []))
    asking._vars["groups"]["workers"] = workers

    assert asking.unread_workers(asking.replies()) == found
