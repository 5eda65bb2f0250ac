"""Before each host, a maintenance window reads again what users and the site may have changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.trials.evidence.facts import Facts
from plugins.module_utils.trials.evidence.verdict_input import with_left
from tests.unit.plugins.module_utils.trials.programs.test_other_jobs import BERT, Beside
from tests.unit.simulation.world import HOSTS, WINDOW, Window, World, changed

DAY = 86_400.0
ACKNOWLEDGED = {**WINDOW, "requires_ack": True}


def acknowledged(world: Window, at: float) -> Window:
    """Return a window whose owner has acknowledged it at a time; 0 means never."""
    file = {"exists": at > 0.0, "mtime": at}
    return changed(world, stat=lambda options: {"stat": {**file, "path": options["path"]}})  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        (0.0, "the owner of the job has not acknowledged the window: touch /run/one/window-ack on the launcher"),
        (110_000.0, "within the last day: its last acknowledgement is of 1970-01-02 06:33:20 UTC: touch /run/one"),
        (290_000.0, "the acknowledgement of the owner of the job is dated in the future, 1970-01-04 08:33:20 UTC"),
        (199_940.0, ""),
    ],
)
def test_a_missing_acknowledgement_is_refused_before_the_lock(at: float, reason: str) -> None:
    world = acknowledged(Window(window=ACKNOWLEDGED), at)
    world.start_at(200_000.0)

    if reason:
        with pytest.raises(CollectionError, match=f"Cluster gpu: no window is opened: .*{reason}"):
            world.carry_out()
    else:
        world.carry_out()

    assert bool(world.boots) == (not reason) and world.is_clean
    assert not reason or not world.calls.keys() & {"cluster_lock", "worker_rules", "wait_for_steps"}


@pytest.mark.parametrize(("began", "is_refused"), [(199_950.0, True), (199_930.0, False)])
def test_an_acknowledgement_counts_for_one_window(began: float, is_refused: bool) -> None:
    world = acknowledged(Window(window=ACKNOWLEDGED), 199_940.0)
    world.start_at(200_000.0)
    world.earlier_windows = [{"host": "esx9", "began": began, "back_at": began + 5.0}]

    if is_refused:
        with pytest.raises(CollectionError, match=r"1970-01-03 07:32:20 UTC, was for a window that has changed hosts"):
            world.carry_out()
    else:
        world.carry_out()

    assert bool(world.boots) is not is_refused and world.is_clean


def test_past_end_is_refused_before_the_lock() -> None:
    world = Window(window={**WINDOW, "not_after": "1970-01-01T00:00:10Z"})

    with pytest.raises(
        CollectionError, match=r"no window is opened: its end, 1970-01-01 00:00 UTC \(window_not_after\)"
    ):
        world.carry_out()

    assert not world.calls["cluster_lock"]


def starts_a_job(world: Window) -> None:
    changed(world, jobs_on_workers=lambda _settings: {"jobs": [{**BERT, "launcher": ""}], "unread": ""})


def withdraws(world: Window) -> None:
    acknowledged(world, 0.0)


def ages(world: Window) -> None:
    """A pause lasts three days."""
    world.trial.resumed = world.site.clock + 3 * DAY


def removes_a_worker(world: Window) -> None:
    world.site.delete("w2")


def is_unread(world: Window) -> None:
    changed(world, jobs_on_workers=lambda _settings: {"jobs": [], "unread": "gpu: the training jobs of w9 are unknown"})


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (starts_a_job, "the next host would move workers of other training jobs: bert of anna since 2026-01-01 10:00"),
        (withdraws, "the owner of the job has not acknowledged the window: touch"),
        (ages, "within the last day: its last acknowledgement is of"),
        (removes_a_worker, "w2: removed or built again since the window began"),
        (is_unread, "gpu: the training jobs of w9 are unknown"),
    ],
)
def test_change_by_another_user_keeps_hosts_in_service(act: Callable[[Window], None], reason: str) -> None:
    world = acknowledged(Window(window=ACKNOWLEDGED), 1000.0)
    world.before["reboot esx3"] = lambda: act(world)
    world.carry_out()

    assert world.boots == {"esx3": 1} and world.is_in_service and world.is_clean
    assert reason in world.outcome and not world.moved, world.outcome


def test_window_goes_on_beside_jobs_that_stay() -> None:
    """The job starts on a worker that has moved already: the last host moves the other one."""
    world = acknowledged(Window(window=ACKNOWLEDGED), 1000.0)
    read = {"jobs": [{**BERT, "nodes": ["w1"], "launcher": ""}], "unread": ""}
    world.before["reboot esx1"] = lambda: changed(world, jobs_on_workers=lambda _settings: read)

    world.carry_out()

    assert world.boots == dict.fromkeys(HOSTS, 1) and world.is_clean


def asks_to_end(world: Window) -> None:
    world.waiting_requests = ["end"] * 3


class Killed(Window):
    """The first controller dies when it has started its second host, and something changes before the next one."""

    act: Callable[[Window], None] = staticmethod(starts_a_job)

    def must_be_attended(self) -> None:
        if self.controllers == 1 and "begin of esx1" in self.values:
            self.is_dead = True
        super().must_be_attended()

    def carry_out(self) -> Facts:
        if self.controllers == 1:
            self.act(self)
        return super().carry_out()


@pytest.mark.parametrize("act", [starts_a_job, withdraws, removes_a_worker, is_unread, asks_to_end])
def test_the_next_controller_starts_no_host_without_permission(act: Callable[[Window], None]) -> None:
    world = acknowledged(Killed(window=ACKNOWLEDGED), 1000.0)
    world.act = act  # type: ignore[attr-defined]

    world.to_the_end()

    assert world.controllers == 2 and world.boots == {"esx3": 1} and not world.site.moves and world.is_clean, (
        world.outcome
    )
    assert (
        "1 of 3 hosts are changed, 2 left (esx1, esx2)" in world.outcome
        or "w9" in world.outcome
        or "w2: removed" in world.outcome
    )


def test_window_watches_accepted_jobs_that_start_meanwhile() -> None:
    world = Beside((), BERT)
    world.settings["window"]["other_jobs"] = world.jobs_beside = []

    def starts() -> None:
        world.settings["window"]["other_jobs"] = world.jobs_beside = [BERT]

    world.before["reboot esx3"] = starts
    world.carry_out()

    assert world.outcome == "" and world.boots == dict.fromkeys(HOSTS, 1) and world.is_clean
    assert [(job["title"], job["verdict"]) for job in world.others] == [(BERT["title"], "continuous")]


@pytest.mark.parametrize("windows", [True, False], ids=["window", "test"])
def test_a_worker_that_others_destroy_fails_the_test(windows: bool) -> None:
    world = Window() if windows else World()
    last, beginning = len(HOSTS) if windows else 2, world.write_facts

    def write_facts(facts: Facts) -> None:
        if len(facts.moves) == 2 and (not windows or len(facts.host_changes) == last):
            world.build_again("w2")
        beginning(facts)

    world.write_facts = write_facts  # type: ignore[method-assign]
    facts = world.carry_out()

    assert facts.lost == ["w2"] and "Cluster gpu: w2: removed or built again by others" in world.outcome
    judged = with_left({"moved": "all", "notes": []}, facts)
    assert (judged["moved"], judged["not_made"]) == ("some", ["w2: removed or built again by others"])
