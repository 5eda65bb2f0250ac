"""A maintenance window ends at its limits, obeys requests, notifies people and requires the owner's agreement."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import count
from typing import Any

import pytest

from plugins.module_utils.durable.program import Program
from plugins.module_utils.errors import Refused
from plugins.module_utils.trials.evidence.facts import Facts
from plugins.module_utils.trials.evidence.verdict_input import with_left
from plugins.module_utils.trials.steps.trial import Trial
from plugins.module_utils.trials.steps.window_end import WindowPaused, deadline, reason_to_end
from tests.fakes.deaths import Killed, MortalJournal, MortalWorld
from tests.unit.simulation.world import BROKEN, HOSTS, WINDOW, Window, changed

OTHER = {
    "title": "bert of anna since 2026-01-01 10:00 UTC",
    "nodes": ["w2.lab", "w9"],
    "launcher": "",
    "run_dir": "/bert",
}


@pytest.mark.parametrize("accepted", [False, True])
def test_refuses_to_move_another_job_unless_accepted(accepted: bool) -> None:
    world = Window(window={**WINDOW, "other_jobs": [OTHER], "accept_other_jobs": accepted})
    world.carry_out()
    message = "bert of anna since 2026-01-01 10:00 UTC on w2.lab"
    assert bool(world.boots) == accepted and bool(world.site.moves) == accepted and world.is_clean
    if accepted:
        assert world.outcome == "" and any(message in line for line in world.lines)
    else:
        assert message in world.outcome and "accept that with accept_other_jobs=true" in world.outcome


def test_accepts_a_job_on_workers_that_stay() -> None:
    world = Window(window={**WINDOW, "hosts": ["esx1", "esx3"], "other_jobs": [{**OTHER, "nodes": ["w2"]}]})
    world.carry_out()
    assert world.outcome == "" and world.boots.keys() == {"esx1", "esx3"}


def test_job_with_unknown_nodes_counts_for_any_worker() -> None:
    world = Window(window={**WINDOW, "other_jobs": [{**OTHER, "nodes": ["10.0.0.7"]}]})
    world.carry_out()
    assert "on 10.0.0.7. Wait until they end" in world.outcome and not world.boots


def test_names_the_hosts_without_time_left() -> None:
    world = Window(window={**WINDOW, "max_minutes": 20})
    world.carry_out()
    # Without an earlier window, a host with a reboot takes 18 minutes; the measured ones take seconds.
    assert world.outcome == "" and world.boots == dict.fromkeys(HOSTS, 1)
    short = Window(window={**WINDOW, "max_minutes": 17})
    facts = short.carry_out()
    assert not short.boots and not short.moved and short.is_clean
    assert "0 of 3 hosts are changed, 3 left (esx1, esx2, esx3): esx3 needs about 18 min" in short.outcome
    assert "(window_max_minutes). The next run begins with the remaining hosts" in short.outcome
    assert facts.judged is not None and facts.judged["verdict"] == "continuous"


def test_sum_of_stalls_ends_the_window_between_hosts() -> None:
    world = Window(window={**WINDOW, "max_stall_s": 30})
    world.verdict["cost"] = {"stalled_s": 31.0, "goodput": 0.9}
    facts = world.carry_out()
    assert world.boots == {"esx3": 1} and world.is_in_service and world.is_clean
    message = "1 of 3 hosts are changed, 2 left (esx1, esx2): the job stood still for 31 s"
    assert message in world.outcome and "window_max_stall_s is 30" in world.outcome
    (note,) = with_left({"moved": "all", "notes": [], "cost": world.verdict["cost"]}, facts)["notes"]
    assert note.startswith("Expected: 3 hosts in") and "the job stands still for 31 s in all" in note


def test_paused_window_waits_and_ends_on_request() -> None:
    world = Window()
    world.waiting_requests = ["", "pause", "pause", "", "end"]
    facts = world.carry_out()
    assert world.boots.keys() == {"esx3", "esx1"} and world.is_in_service and world.is_clean
    assert "2 of 3 hosts are changed, 1 left (esx2): bob@ops requested the end" in world.outcome
    lines = [line for line in world.lines if "requested a pause" in line or "goes on" in line]
    assert lines == ["bob@ops requested a pause: the window waits for resume or end", "the window goes on"]
    assert facts.judged is not None


def test_request_between_two_controllers_starts_no_host() -> None:
    for point in count(10):
        world = Window([point])
        with suppress(Killed):
            world.carry_out()
        if "maintenance esx3" in world.log:
            break
        world.site.go_on()
        world.waiting_requests = ["end"] * 20

        world.carry_out()

        assert not world.boots and not world.moved and "requested the end" in world.outcome, (point, world.log)
    assert point > 20


def test_interrupted_window_finishes_its_host_and_is_continued() -> None:
    world = Window(window={**WINDOW, "notify": [{"command": ["hang"]}]})
    world.before["reboot esx3"] = lambda: setattr(world, "pauses", True)
    with pytest.raises(WindowPaused):
        world.carry_out()
    assert world.boots == {"esx3": 1} and world.is_in_service and world.is_clean
    world.pauses = False
    world.carry_out()
    assert world.outcome == "" and world.boots == dict.fromkeys(HOSTS, 1) and world.is_clean


def test_hooks_get_each_event_once_despite_one_hanging() -> None:
    hooks = [{"command": ["hang"]}, {"url": "https://chat.lab", "events": ["end"]}]
    world, broken = (Window(window={**WINDOW, "notify": hooks}) for _window in range(2))
    world.carry_out()
    assert [notice["event"] for notice in world.notices] == ["start", "host", "host", "host", "end", "end"]
    assert world.notices[-1]["done"] == ["esx3", "esx1", "esx2"] and world.notices[-1]["verdict"] == "continuous"
    assert world.outcome == "" and "window_notify 1: the hook hangs" in world.lines
    broken.before["reboot esx3"] = lambda: broken.verdict.update(BROKEN)
    broken.carry_out()
    assert [notice["event"] for notice in broken.notices] == ["start", "host", "breach", "end", "end"]


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A controller whose clocks are set on the last Sundays of March and October, at 01:00 UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("started", "text", "ends"),
    [
        ("2026-10-24T23:00+02:00", "06:00", "2026-10-25T06:00+01:00"),
        ("2027-03-27T23:00+01:00", "06:00", "2027-03-28T06:00+02:00"),
        ("2026-10-25T02:40+02:00", "02:30", "2026-10-25T02:30+01:00"),
        ("2026-10-25T02:10+01:00", "02:30", "2026-10-25T02:30+01:00"),
        ("2027-03-28T01:45+01:00", "02:30", "2027-03-28T03:30+02:00"),
        ("2026-11-01T22:00+01:00", "22:00", "2026-11-02T22:00+01:00"),
    ],
)
@pytest.mark.usefixtures("berlin")
def test_time_of_day_is_the_next_on_clocks(started: str, text: str, ends: str) -> None:
    until, _option = deadline({"not_after": text}, datetime.fromisoformat(started).timestamp())

    assert until == datetime.fromisoformat(ends).timestamp()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1430", 'YAML reads 23:50 without quotes as the number 1430; quote it: "23:50"'),
        ("soon", "'soon' is not a time; write HH:MM"),
    ],
)
def test_refuses_an_invalid_end_time(text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        deadline({"not_after": text}, 0.0)


def row(seconds: float, *, attended: bool = True) -> dict[str, Any]:
    return {"host": "esx9", "began": 100.0, "back_at": 100.0 + seconds, "attended": attended}


@pytest.mark.parametrize(
    ("changes", "needs"),
    [
        ([row(480), row(480), row(2400)], "40 min"),  # the slowest, not the median
        ([row(480), row(36_000, attended=False)], "8 min"),  # hours without a controller are not the time of a host
        ([row(36_000, attended=False)], "18 min"),
    ],
)
def test_window_expects_the_slowest_time_of_hosts(changes: list[dict[str, Any]], needs: str) -> None:
    world, window = MortalWorld(), {"hosts": ["esx1"], "max_minutes": 1}
    facts = Facts({"cluster": "gpu", "window": window}, host_changes=changes)
    trial = Trial(world, world, facts, started=world.clock)  # type: ignore[arg-type]

    reason = reason_to_end(Program(MortalJournal(world), world), trial, {"host": "esx1", "moves": []})

    assert f"esx1 needs about {needs}, and the window ends" in reason


def test_window_with_the_lock_accepts_requests() -> None:
    world, notes = Window(), list[tuple[int, str]]()
    locking = world.cluster_lock

    def noted(options: dict[str, Any]) -> dict[str, Any]:
        notes.append((len(world.log), options.get("note", "")))
        return locking(options)

    changed(world, cluster_lock=noted).carry_out()

    assert notes[0] == (1, "0of3") and world.calls["training_info"] > 0


def test_job_that_dies_during_pause_moves_nothing() -> None:
    world = Window()
    world.waiting_requests = ["", "pause", "pause", ""]
    waiting = world.pause

    def pause() -> None:
        world.verdict.update(BROKEN)
        waiting()

    world.pause = pause  # type: ignore[method-assign]
    world.carry_out()

    assert "rank 1 lost 3 steps" in world.outcome and world.boots == {"esx3": 1} and not world.moved
    assert world.is_in_service and world.is_clean
