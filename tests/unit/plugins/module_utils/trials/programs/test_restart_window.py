"""A maintenance window by restart: the job stops at a checkpoint, hosts are changed, and it goes on from there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from plugins.module_utils.errors import WholeError
from plugins.module_utils.training.ending.job_state import JobState
from plugins.module_utils.training.runs.any_job import JobOnNodes
from plugins.module_utils.training.runs.restartable import Checkpoints, SeenCheckpoint
from plugins.module_utils.trials.evidence import restart_lines
from plugins.module_utils.trials.evidence.outcome import last_verdict, passed
from plugins.module_utils.trials.steps import stopping
from plugins.module_utils.trials.steps.window_end import WindowPaused, paused
from tests.fakes.deaths import Killed, histories
from tests.unit.simulation import attempts
from tests.unit.simulation.attempts import RestartableJob, seen
from tests.unit.simulation.job import STEP_SECONDS
from tests.unit.simulation.world import HOSTS, WINDOW, Window, changed

BESIDE = {"title": "llama", "nodes": ["w2"], "run_dir": "/run/llama", "launcher": "w2"}
BY_RESTART = {**WINDOW, "by": "restart", "checkpoint_wait": 600, "max_out_of_service": 2}


class Restart(Window):
    """A window by restart on a cluster without a spare host."""

    def __init__(self, deaths: Iterable[int] = (), **window: Any) -> None:
        super().__init__(deaths, window={**BY_RESTART, **window})
        self.site.most = 2

    @property
    def is_running_once(self) -> bool:
        return is_running_once(self)


def is_running_once(world: Window) -> bool:
    """Return whether one attempt runs, and all workers are on."""
    attempts = {**world.site.attempts, "last": world.site.job}.values()
    return len({id(one) for one in attempts if one and one.is_running}) == 1 and not world.site.off


def test_job_stops_at_its_next_checkpoint_and_resumes() -> None:
    world = Restart()

    facts = world.carry_out()

    assert world.outcome == "" and world.is_clean and world.is_in_service and world.is_running_once
    assert world.boots == dict.fromkeys(HOSTS, 1) and world.most_out == 2
    assert facts.restart["stop"]["checkpoint"]["step"] == 25 and world.site.attempts["/run/one"].step <= 26
    assert [name for name, _seconds in facts.restart["parts"]] == ["workers off", "hosts", "workers on"]
    assert world.files["restart"]["verdict"]["verdict"] == last_verdict(facts)["verdict"] == "resumed"
    assert passed(facts, "/test") == "Every host is changed; the job is resumed; the evidence is in /test."
    facts.restart["verdict"]["verdict"] = "broken"
    assert last_verdict(facts)["verdict"] == "broken", "which fails a window that was asked to end too"


def test_window_ends_the_same_after_any_death() -> None:
    for world, facts in histories(Restart, Restart.to_the_end, pairs=20):
        assert world.outcome == "" and world.is_clean and world.is_in_service and world.is_running_once, world.log
        assert world.boots == dict.fromkeys(HOSTS, 1) and world.most_out == 2, world.log
        assert len(world.site.attempts) == 2 and [world.log.count(f"power {to} w1") for to in ("off", "on")] == [1, 1]
        assert len(facts.host_changes) == 3, facts.host_changes


class KeepsItsName(RestartableJob):
    """A job whose next attempt has the run directory of the one before, as a job in Slurm has."""

    def start_again(self, checkpoint: SeenCheckpoint, _down: Any = None) -> dict[str, Any]:
        self._reach()
        if not self._job.is_running:
            self._calls.effect("start the job", lambda: self._start(self._dir, checkpoint))
        return {"run": "one", "run_dir": self._dir, "launcher": "w1", "user": "", "nodes": [], "kubernetes": {}}


class RestartInPlace(Restart):
    """A window by restart around such a job."""

    def restartable(self, _known: Any) -> Any:
        return KeepsItsName(self, "/run/one")


def test_death_stops_no_job_that_was_started() -> None:
    for world, facts in histories(RestartInPlace, RestartInPlace.to_the_end):
        assert world.outcome == "" and world.site.job and world.site.job.is_running, (world.outcome, world.log)
        assert facts.restart["started"]["run"] == "one" and world.log.count("start the job") == 1, world.log


def untouched(world: Window, boots: Mapping[str, int] | None = None) -> bool:
    """Return whether nothing was stopped, shut down or changed but by these boots."""
    is_touched = {"signal", "stop the job", "power off w1"} & set(world.log)
    return not is_touched and world.boots == (boots or {}) and world.is_clean


CALLED_OFF: list[tuple[dict[str, Any], str]] = [
    ({"checkpoint_wait": 60}, "no new checkpoint was complete within 60 s, and it has no complete checkpoint"),
    ({"checkpoint_wait": 0, "accept_repeat_s": 30}, "it has no complete checkpoint"),
    (
        {"checkpoint_wait": 60, "checkpoint_signal": "USR1"},
        "could not send USR1 to its ranks: it has no complete checkpoint, so it could not start again if it ended",
    ),
    (
        {"max_minutes": 12},
        "(window_max_minutes). The next run begins with the remaining hosts. the job in /run/one was not",
    ),
    ({"max_stall_s": 60}, "and window_max_stall_s is 60. the job in /run/one was not stopped."),
]


@pytest.mark.parametrize(("window", "reported"), CALLED_OFF)
def test_window_without_checkpoint_or_time_stops_nothing(window: dict[str, Any], reported: str) -> None:
    for world, _facts in histories(lambda deaths: Restart(deaths, **window), Restart.to_the_end):
        assert reported in world.outcome and untouched(world), (world.outcome, world.log)
        assert world.site.job and world.site.job.run_dir == "/run/one" and world.site.job.is_running


def saved_before(world: Restart, steps: int) -> Restart:
    """Let the job save its only checkpoint, and make some steps."""
    job = world.site.job
    assert job
    job.every = 10_000
    world.site.pass_time(STEP_SECONDS * steps)
    job.saved = [(1, job.step_times[0])]
    return world


def test_accepted_repetition_uses_an_older_checkpoint() -> None:
    world = saved_before(Restart(checkpoint_wait=10, accept_repeat_s=200), 10)
    facts = world.carry_out()
    assert world.outcome == "" and facts.restart["stop"]["checkpoint"]["step"] == 1 and world.is_running_once

    world = saved_before(Restart(checkpoint_wait=10, accept_repeat_s=60), 10)
    world.carry_out()
    assert "its checkpoint checkpoint-1 (step 1) is" in world.outcome and untouched(world)


@pytest.mark.parametrize(("at_signal", "boots"), [("save", 3), ("save and end", 3), ("end", 0)])
def test_signal_without_a_checkpoint_restarts_the_job_unchanged(at_signal: str, boots: int) -> None:
    def make(deaths: Iterable[int]) -> Restart:
        world = saved_before(Restart(deaths, checkpoint_wait=60, checkpoint_signal="TERM"), 5)
        world.site.job.at_signal = at_signal  # type: ignore[union-attr]  # it has a job
        return world

    for world, _facts in histories(make, Restart.to_the_end):
        assert sum(world.boots.values()) == boots and world.is_running_once and world.is_in_service, world.log
        assert ("it ended after the signal TERM without a new checkpoint" in world.outcome) == (not boots), (
            world.outcome
        )
        assert len(world.site.attempts) == 2 and world.is_clean, world.outcome


class SavesAtItsStop(RestartableJob):
    """A job whose last checkpoint becomes complete while it is stopped."""

    def stop(self) -> JobState:
        job = self._job
        if job.is_running:
            job.saved.append((job.step, self._site.clock))
        return super().stop()


def test_stopped_job_resumes_from_a_checkpoint_just_written(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Restart()
    monkeypatch.setattr(world, "restartable", lambda known: SavesAtItsStop(world, known.get("run") or "/run/one"))

    facts = world.carry_out()

    assert world.outcome == "" and facts.restart["stop"]["checkpoint"]["step"] == world.site.attempts["/run/one"].step
    assert world.is_running_once and world.is_clean


def test_job_that_saved_in_the_last_moment_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "SETTLED_SECONDS", 3 * STEP_SECONDS)
    monkeypatch.setattr(stopping, "SETTLED_AT_MOST", 6 * STEP_SECONDS)
    world = saved_before(Restart(checkpoint_wait=STEP_SECONDS, checkpoint_signal="TERM"), 5)
    world.site.job.at_signal = "save and end"  # type: ignore[union-attr]  # it has a job

    facts = world.carry_out()

    assert world.outcome == "" and world.is_running_once
    assert facts.restart["stop"]["checkpoint"]["step"] == world.site.attempts["/run/one"].step, facts.restart


def test_checkpoint_without_its_optimizer_stops_no_job() -> None:
    for seconds, reported in ((600, ""), (60, "its checkpoint checkpoint-25 (step 25) has no state of the optimizer")):
        world = Restart(checkpoint_wait=seconds)
        assert world.site.job
        world.site.pass_time(STEP_SECONDS * 25)
        world.site.job.without_optimizer = {25}

        facts = world.carry_out()

        assert reported in world.outcome and untouched(world) is bool(reported), world.outcome
        assert reported or facts.restart["stop"]["checkpoint"]["step"] == 50


def test_names_a_job_that_ended_at_the_signal() -> None:
    world = saved_before(Restart(checkpoint_wait=60, checkpoint_signal="TERM"), 5)
    world.site.job.at_signal = "end"  # type: ignore[union-attr]  # it has a job
    world.before["signal"] = lambda: setattr(world.site.hosts["esx1"], "is_lost", True)

    with pytest.raises(WholeError, match=r"w1 did not respond.*the job may be stopped.*window_action=end, powers on"):
        world.carry_out()
    world.site.hosts["esx1"].is_lost = False
    world.carry_out()

    assert world.is_running_once and world.is_clean and len(world.site.attempts) == 2 and not world.boots


@pytest.mark.parametrize("state", ["died", "stopped", "finished"])
def test_job_that_ended_by_itself_is_not_started(state: str) -> None:
    world = Restart()
    world.before["checkpoints"] = lambda: world.ends(state)

    world.carry_out()

    assert list(world.site.attempts) == ["/run/one"] and not world.site.off and world.is_clean
    assert world.boots == (dict.fromkeys(HOSTS, 1) if state == "finished" else {})
    assert world.outcome == (
        "" if state == "finished" else f"the job in /run/one does not run any more, it is {state}."
    )


def test_job_that_finishes_while_it_is_stopped_is_withdrawn() -> None:
    world = Restart()
    world.before["stop the job"] = lambda: world.ends("finished")

    world.carry_out()

    assert world.outcome == "" and "withdraw" in world.log and "start the job" not in world.log, world.log


def test_end_after_any_kill_brings_all_back() -> None:
    for point in range(10, 330, 3):
        world = Restart([point])
        with suppress(Killed):
            world.carry_out()
        was_stopped = "stop the job" in world.log
        world.site.go_on()
        world.ending = "The window was ended, as requested."

        world.carry_out()

        assert world.is_running_once and world.is_in_service and world.is_clean, (point, world.outcome)
        assert was_stopped or "stop the job" not in world.log, "the end of a window stops no job"


def test_lost_host_keeps_the_window_open_until_repaired() -> None:
    world = Restart(max_out_of_service=1)
    world.before["wait for esx1"] = lambda: setattr(world.site.hosts["esx1"], "is_lost", True)

    with pytest.raises(WholeError) as raised:
        world.carry_out()
    reported = str(raised.value)
    assert "esx1: could not reboot" in reported and "w1 on esx1: could not power them on" in reported
    assert "the job is stopped at the checkpoint checkpoint-25 (step 25), w1, w2 may be off" in reported
    assert world.site.off == {"w1"} and "start the job" not in world.log
    assert "esx1" in restart_lines.taken(world.facts) or "w1" in restart_lines.taken(world.facts)

    world.site.hosts["esx1"].is_lost = False
    world.site.go_on()
    facts = world.carry_out()
    assert world.is_running_once and world.boots == {"esx1": 1} and world.is_in_service, world.log
    assert "2 left (esx2, esx3): a host failed at first" in world.outcome and facts.finished_changes


def test_window_ends_after_the_owner_resumed_elsewhere() -> None:
    world = Restart(max_out_of_service=1)
    world.before["wait for esx1"] = lambda: setattr(world.site.hosts["esx1"], "is_lost", True)
    with pytest.raises(WholeError, match="if one stays lost, resume the job on other workers first"):
        world.carry_out()
    world.site.resumed_by_owner = "one-anna"
    world.site.go_on()

    world.carry_out()

    assert "w1 on esx1 stays off: one-anna continues the job on other workers" in " ".join(world.lines)
    assert "esx1: could not reboot" in world.outcome and "start the job" not in world.log
    assert world.site.off == {"w1"} and not world.site.holder and not world.left
    assert "free the nodes" in world.log, "they would stay cordoned"


def test_sick_gpu_after_the_boot_keeps_the_job_stopped() -> None:
    world = Restart(checkpoint_wait=600)
    sick = {"severity": "stop", "rule": "gpu_xid", "object": "w1", "text": "w1: GPU 0 has fallen off the bus."}
    world.answers["read_gpus"] = {"findings": [sick]}

    with pytest.raises(WholeError, match=r"ready within 600 s: w1: GPU 0 has.*the job is stopped at .*checkpoint-25"):
        world.carry_out()
    assert world.is_in_service and not world.site.off and "start the job" not in world.log
    del world.answers["read_gpus"]
    world.carry_out()

    assert world.outcome == "" and world.is_running_once and world.boots == dict.fromkeys(HOSTS, 1)


def test_gpus_are_read_where_no_process_has_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings may reach the nodes through pods, which end with the job."""
    reads: list[Any] = []
    monkeypatch.setattr(Restart, "read_gpus", lambda _world, options: reads.append(options) or {"findings": []})
    world = Restart()

    world.carry_out()

    machines = [{"name": worker, "reach": ["ssh", worker]} for worker in ("w1", "w2")]
    assert [options["nodes"] for options in reads] == [machines] and world.settings["nodes"] != machines


def torn(job: RestartableJob) -> Checkpoints:
    part: SeenCheckpoint = {**seen(26, 0.0, True), "why": "the part of rank 1 is missing"}
    return {"folder": job.name, "newest": None, "torn": part, "interval": None, "why": "it has no complete checkpoint"}


@pytest.mark.parametrize(
    ("name", "method", "reported"),
    [
        ("checkpoints", torn, "checkpoint-26 is not complete: the part of rank 1 is missing, and it has no complete"),
        ("refusal", lambda _job: "the training run one: its data has changed.", "its data has changed."),
    ],
)
def test_torn_checkpoint_or_changed_data_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, method: Any, reported: str
) -> None:
    monkeypatch.setattr(RestartableJob, name, method)
    world = Restart(checkpoint_wait=60)

    world.carry_out()

    assert reported in world.outcome and untouched(world), world.outcome


def test_workers_with_the_control_plane_stay_on(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "w1: the API server of this Kubernetes runs there: the API does not answer while this node does not"
    found = [{"severity": "stop", "rule": rule, "object": "w1", "text": text} for rule in ("control_plane", "node")]
    reads: list[Any] = []
    monkeypatch.setattr(JobOnNodes, "checked", lambda _job, *moved: reads.append(moved) or found)
    world = Restart()

    world.carry_out()

    assert world.outcome == f"{text}." and untouched(world), world.outcome
    assert reads == [(["w1", "w2"], 0.0, [])], "as if all of them were silent at once"


def test_request_to_end_is_obeyed_before_each_group() -> None:
    world = Restart()
    world.waiting_requests = ["end"]
    world.carry_out()
    assert "requested the end" in world.outcome and untouched(world)

    world = Restart(max_out_of_service=1)
    world.before["return esx1"] = lambda: world.waiting_requests.append("end")
    world.carry_out()
    assert world.boots == {"esx1": 1} and world.is_running_once and "bob@ops requested the end" in world.outcome


def test_interruption_pauses_the_window_and_names_its_job() -> None:
    for event in ("checkpoints", "return esx1"):
        world = Restart(max_out_of_service=1)
        world.before[event] = partial(setattr, world, "pauses", True)
        with pytest.raises(WindowPaused):
            world.carry_out()
        is_stopped = event != "checkpoints"
        assert not world.site.holder and world.site.off == ({"w1", "w2"} if is_stopped else set())
        assert ("the job is stopped at" in paused(world.trial.facts)) == is_stopped
        world.pauses = False

        world.carry_out()

        assert world.outcome == "" and world.is_running_once and world.boots == dict.fromkeys(HOSTS, 1)


@pytest.mark.parametrize(
    ("answers", "reported"),
    [
        (
            {"jobs_on_workers": {"jobs": [BESIDE], "unread": ""}},
            "the window restarts the job in /run/one, and would shut down workers of other training jobs: llama on w2",
        ),
        ({"jobs_on_workers": {"jobs": [], "unread": "w2 cannot be read"}}, "w2 cannot be read"),
    ],
)
def test_other_jobs_on_workers_refuse_the_window(answers: dict[str, Any], reported: str) -> None:
    world = Restart()
    changed(world, **{name: lambda _settings, answer=answer: answer for name, answer in answers.items()})

    world.carry_out()

    assert reported in world.outcome and untouched(world)
