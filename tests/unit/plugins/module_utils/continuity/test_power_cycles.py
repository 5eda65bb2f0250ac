"""Power cycles of virtual machines: those that hit the job, those that did not, and those of unknown effect."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.continuity.clock import tracks_of
from plugins.module_utils.continuity.move_windows import Timeline
from plugins.module_utils.continuity.observations import Power, judge_power
from plugins.module_utils.continuity.step_records import Track, read_lines

Fact = dict[str, Any]
CYCLED = "w1 was power-cycled by eve (VmPoweredOffEvent)"


def tracks(*hosts: str | None) -> list[Track]:
    """Return one rank on each host, from 10 to 12, each a second later than the previous one."""
    made = [
        {"rank": rank, "step": step, "t": at, "seen": at, **({} if host is None else {"host": host})}
        for rank, host in enumerate(hosts)
        for step, at in enumerate((10 + rank, 11 + rank, 12 + rank))
    ]
    return tracks_of(read_lines(made).ranks, Timeline([], 5))[0]


def judged(
    hosts: list[str | None], worker: str = "w1", at: Any = 11.0, ended: str = "running", moves: Any = (), **facts: Any
) -> Power:
    event = {"worker": worker, "at": at, "by": "eve", "what": "VmPoweredOffEvent"}
    return judge_power({"power": [event], **facts}, list(moves), tracks(*hosts), ended)


def kind(found: Power) -> str:
    """Return which of the three lists has the result."""
    (only,) = [name for name in ("breaches", "missing", "notes") if getattr(found, name)]
    return only


def test_a_power_cycle_during_a_move_breaks() -> None:
    moves = [{"worker": "w0", "completed": 20.0}, {"worker": "w1", "completed": 30.0}, {"worker": "w2"}]
    seen = [{"power_cycled": False}, {"power_cycled": True}, None]
    found = judge_power({"vsphere": seen}, moves, tracks("w0", "w1"), "running")
    assert [(one.kind, one.rank, one.step, one.at, one.detail) for one in found.breaches] == [
        ("power_cycle", None, None, 30.0, "move 2 (w1): the virtual machine was power-cycled")
    ]
    assert (found.missing, found.notes) == ([], [])


def test_a_moved_worker_without_a_rank_may_boot() -> None:
    # A window empties its host, which is lost, and HA starts the worker on another one.
    seen, detail = [{"power_cycled": True}], "move 1 (w1): the virtual machine was power-cycled"
    moves = [{"worker": "w1", "completed": 11.0, "ok": False}]
    found = judge_power({"vsphere": seen, "ranks": {"w0": [0]}}, moves, tracks("w0"), "running")
    assert (found.breaches, found.notes) == ([], [f"{detail}; no rank of the job runs on it"])
    unknown = judge_power({"vsphere": seen}, moves, tracks(None), "running")
    assert [one.detail for one in unknown.breaches] == [detail]


@pytest.mark.parametrize(
    ("at", "ended", "note"),
    [
        (9.5, "running", "that was before the first step"),
        (10.0, "running", None),
        (13.0, "finished", None),
        (13.5, "finished", "that was after the last step"),
        (13.5, "running", None),
        (None, "finished", None),
    ],
)
def test_power_events_count_between_first_and_last_step(at: Any, ended: str, note: str | None) -> None:
    found = judged(["w0", "w1"], at=at, ended=ended)
    assert found.notes == ([] if note is None else [f"{CYCLED}; {note}"])
    assert [(one.kind, one.rank, one.step, one.at, one.detail) for one in found.breaches] == (
        [("power_cycle", None, None, at, CYCLED)] if note is None else []
    )


@pytest.mark.parametrize(
    ("hosts", "worker", "facts", "expected"),
    [
        (["w0", "w1"], "w1", {}, "breaches"),
        (["w0", "w1"], "W1.lab", {}, "breaches"),
        (["w0.lab", "W1.lab"], "w1", {}, "breaches"),
        (["w0", "w1"], "db", {}, "missing"),
        (["w0", "w1"], "db", {"ranks": {"w0": [0]}}, "missing"),
        (["w0", "w1"], "db", {"ranks": {"w0": [0], "W1.lab": []}}, "notes"),
        (["w0", None], "db", {"ranks": {"w0": [0]}}, "missing"),
        (["w0", "w1"], "db", {"ranks": {"w0": []}}, "missing"),
        (["n0", "n1"], "db", {"ranks": {"w0": [0]}}, "missing"),
        (["n0", "n1"], "db", {"ranks": {"w0": [0], "w1": [1]}}, "notes"),
        (["n0", "n1"], "db", {"ranks": {"w0": [0, 1, 2]}}, "notes"),
        (["n0", "n1"], "w1", {"ranks": {"w1": [1]}}, "breaches"),
        (["10.0.0.1", "10.0.0.2"], "10.0.0.9", {"ranks": {"10.0.0.1": [0], "10.0.0.2": [1]}}, "notes"),
        (["w0", "w1"], "W1.lab", {"ranks": {"w1": []}}, "breaches"),
        (["worker01"], "Worker01", {"moves": [{"worker": "Worker01", "ranks": []}]}, "breaches"),
        (
            ["worker01"],
            "worker01.example.org",
            {"moves": [{"worker": "worker01.example.org", "ranks": []}]},
            "breaches",
        ),
        (["n0", "n1"], "w1", {"ranks": {"W1": [1]}}, "breaches"),
        (["n0", "n1"], "w1", {"moves": [{"worker": "w1", "ranks": []}]}, "missing"),
        (["w0", "w1"], "w1", {"ranks": {"w1": None}}, "breaches"),
        (["w0", "w1"], "db", {"ranks": "odd"}, "missing"),
        (["w0", "w1"], "db", {"moves": [{"worker": "w0", "ranks": [0]}]}, "missing"),
        (["n0", "n1"], "w1", {"moves": [{"worker": "w1", "ranks": [1]}]}, "breaches"),
        (["w0", "w1"], "w1", {"ranks": {"w1": [1]}, "moves": [{"worker": "w1", "ranks": []}]}, "breaches"),
    ],
)
def test_identifies_a_machine_by_ranks_moves_or_hostnames(hosts: Any, worker: str, facts: Fact, expected: str) -> None:
    assert kind(judged(hosts, worker, **facts)) == expected


def test_a_rank_runs_on_its_first_recorded_host() -> None:
    event = {"power": [{"worker": "w1", "at": 11.0}], "ranks": {"w0": [0]}}
    for first, second, expected in (("w0", "w1", "notes"), (None, "w0", "missing")):
        made = [
            {"rank": 1, "step": step, "t": 10.0 + step, "seen": 10.0 + step, **({"host": host} if host else {})}
            for step, host in enumerate((first, second))
        ]
        both = tracks_of(read_lines(made).ranks, Timeline([], 5))[0] + tracks("w0")
        assert kind(judge_power(event, [], both, "running")) == expected


def test_describes_machines_without_ranks_and_unknown_machines() -> None:
    assert judged(["w0"], ranks={"w1": []}).notes == [f"{CYCLED}; no rank of the job runs on it"]
    assert judged(["n0"]).missing == [f"power: {CYCLED}, and it is not known whether a rank runs on it"]


def test_a_power_event_without_records_is_unknown() -> None:
    event = {"worker": "w1", "at": 11.0}
    for ended in ("running", "finished"):
        assert judge_power({"power": (event, "odd")}, [], [], ended).missing == [
            "power: w1 was power-cycled by an unknown user (None), and it is not known whether a rank runs on it"
        ]
    assert judge_power({"power": "odd"}, [], [], "running") == Power([], [], [])


def test_each_power_event_of_a_worker_counts() -> None:
    events = [{"worker": "w1", "at": at, "by": "eve", "what": "VmResettingEvent"} for at in (9.0, 11.0)]
    found = judge_power({"power": events}, [], tracks("w0", "w1"), "running")
    assert [note.rpartition("; ")[2] for note in found.notes] == ["that was before the first step"]
    assert [breach.at for breach in found.breaches] == [11.0]
