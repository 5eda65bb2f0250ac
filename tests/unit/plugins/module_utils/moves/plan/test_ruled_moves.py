"""Moves one after another keep the rules of the cluster and find memory, or are refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.moves.plan import search
from plugins.module_utils.moves.plan.fleet import Fleet, HostRoom, MovingWorker, Together
from plugins.module_utils.moves.plan.plan import Infeasible, Move, plan_moves
from plugins.module_utils.moves.plan.ruled_moves import keep_rules
from plugins.module_utils.moves.plan.waves import plan_waves

from . import gpus
from .test_waves import pair
from .test_window import may_go, windows

APART = (frozenset({"w1", "w2"}),)


@pytest.mark.parametrize(
    ("changed", "more", "words"),
    [
        ({"targets": ("h2",)}, {}, "w2 -> free1: a rule keeps it off free1"),
        ({"needs": (1, 65, 0)}, {}, "w2 -> free1: free1 has 32 MB of memory free"),
        ({}, {"apart": APART}, "w2 -> free1: a rule keeps it apart from w1"),
    ],
)
def test_refuses_waves_whose_first_move_breaks_rules(
    changed: dict[str, object], more: dict[str, object], words: str
) -> None:
    """The first move of a wave was not checked."""
    fleet, at = pair(**changed)
    plan = [Move("w1", "h1", "free1"), Move("w2", "h2", "free1")]

    with pytest.raises(Infeasible, match=f"there is none; the one by GPU slots fails at {words}"):
        plan_waves(replace(fleet, **more), plan, at, 2)


def test_reports_an_abandoned_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "EFFORT", 0)
    fleet, at = pair(targets=("free1", "free2"))
    plan = [Move("w1", "h1", "free1"), Move("w2", "h2", "free1")]

    with pytest.raises(Infeasible, match=r"none was found within \d+ tries, although one may exist"):
        keep_rules(replace(fleet, apart=APART), plan, at, return_home=False)


@settings(max_examples=400, deadline=None)
@given(st.one_of(gpus.fleets(), windows().map(lambda drawn: drawn[:3])), st.booleans())
def test_workers_move_if_an_order_keeps_the_rules(
    drawn: tuple[Fleet, dict[str, str], list[str]], return_home: bool
) -> None:
    fleet, at, hosts = drawn
    movers = [name for name in at if at[name] in hosts]
    rules: dict[str, Any] = {"return_home": return_home, "one_per_host": fleet.one_per_host}
    try:
        allowed = {name: worker.targets for name, worker in fleet.workers.items()}
        first = plan_moves(dict.fromkeys(fleet.hosts, 9), at, movable=movers, allowed=allowed, **rules)
        kept = keep_rules(fleet, first, at, return_home)
    except Infeasible:
        assert not has_order(fleet, at, movers, return_home)
        return
    now = dict(at)
    for move in kept:
        assert now[move.worker] == move.source != move.target
        assert may_go(fleet, move.worker, move.target, now)
        now[move.worker] = move.target
    assert {move.worker for move in kept} == set(movers)
    assert not return_home or now == at
    waves = plan_waves(fleet, kept, at, 2, return_home=return_home)
    if all(room.gpus for room in fleet.hosts.values()):
        gpus.follow(fleet, at, kept)
        gpus.follow(fleet, at, [move for wave in waves for move in wave.moves])


def has_order(fleet: Fleet, at: Mapping[str, str], movers: Sequence[str], return_home: bool) -> bool:
    """Return whether single moves bring each worker to another host, and home, by trying everything."""
    waiting = [(at, frozenset[str]())]
    seen = set()
    while waiting:
        now, moved = waiting.pop()
        if len(moved) == len(movers) and (not return_home or now == at):
            return True
        for name in movers:
            for host in sorted(set(fleet.workers[name].targets) - {now[name]}):
                after, state = {**now, name: host}, moved | {name}
                key = (tuple(after.values()), state)
                if key not in seen and may_go(fleet, name, host, now):
                    seen.add(key)
                    waiting.append((after, state))
    return False


def test_planner_moves_large_vgpus_for_any_layout() -> None:
    """Two small vGPUs use one GPU or both: the host chooses. Beside a third one that stays, it is known."""
    small, large = ("grid_t4-8c",), ("grid_t4-16c",)

    def refused(profiles: tuple[str, ...], *used: Sequence[str]) -> str:
        hosts = {"h1": HostRoom((9, 0, 0), gpus=gpus.room_of([])), "h2": HostRoom((9, 0, 0), gpus=gpus.room_of(*used))}
        workers = {name: MovingWorker((1, 0, 0), hosts, profiles=small) for name in ("w1", "w2")}
        fleet = Fleet({**workers, "w3": MovingWorker((1, 0, 0), hosts, profiles=profiles)}, hosts)
        return Together(fleet, {"w1": "h2", "w2": "h2", "w3": "h1"}).refusal(Move("w3", "h1", "h2"))

    text = "h2 may have no GPU for grid_t4-16c beside its vGPUs until the others have moved"
    assert [refused(large, [], []), refused(large, [], [], []), refused(small, [], [])] == [text, "", ""]
    assert [refused(large, small, []), refused(small, small, [])] == [text, ""]


def test_a_large_vgpu_returns_before_both_small_ones() -> None:
    """On the reversed way, both small ones return first and could use each GPU of esx1."""
    fleet, at = gpus.three_workers("a", esx1=gpus.room_of([], []), esx2=gpus.room_of([], [], []))
    out = [Move(name, "esx1", "esx2") for name in at]
    home = [Move(name, "esx2", "esx1") for name in reversed(at)]
    kept = keep_rules(fleet, [*out, *home], at, return_home=True)
    gpus.follow(fleet, at, kept)
    assert sorted(move.worker for move in kept if move.target == "esx1") == list(at)


def test_workers_of_two_profiles_move_host_by_host() -> None:
    names = [f"esx{number:02}" for number in range(32)]
    hosts = {name: HostRoom((9, 9, 9), gpus=gpus.room_of([], [], [], [])) for name in names}
    at = {f"w{number:02}": names[number // 2] for number in range(62)}
    profiles = (gpus.PROFILES[1:2], gpus.PROFILES[:1])
    workers = {
        name: MovingWorker((1, 0, 0), frozenset(names), profiles=profiles[number % 2]) for number, name in enumerate(at)
    }
    fleet = Fleet(workers, hosts)
    kept = keep_rules(fleet, plan_moves(dict.fromkeys(names, 9), at), at, return_home=False)
    assert len(kept) == len(at)
    gpus.follow(fleet, at, kept)
