"""Running workers stay on their hosts; if there is no other way, the fewest of them move: against brute force."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings

from plugins.module_utils.workers.placement.place import (
    Demand,
    HostResources,
    Rules,
    WorkerToPlace,
    place,
    without_moves,
)

from .test_place import OFFERED, fits, host, hosts_of_a_cluster, people, worker
from .test_place import rules as any_rules


def fewest(hosts: Sequence[HostResources], workers: Sequence[WorkerToPlace], rule: Rules) -> int | None:
    """Return the fewest moves of running workers over all placements; None if there is no placement."""
    counts = []
    for choice in itertools.product(hosts, repeat=len(workers)):
        by_host = {one.name: [w for w, at in zip(workers, choice) if at.name == one.name] for one in hosts}
        if all(fits(one, by_host[one.name], rule) for one in hosts):
            counts.append(sum(w.settled and w.at != at.name for w, at in zip(workers, choice)))
    return min(counts, default=None)


@settings(max_examples=400)
@given(hosts_of_a_cluster, people, people, any_rules)
def test_the_fewest_running_workers_move(
    hosts: list[HostResources], old: list[WorkerToPlace], new: list[WorkerToPlace], rule: Rules
) -> None:
    homes = place(hosts, [replace(one, at="") for one in old], rule).where
    running = [replace(one, hosts=None, at=homes[one.name], settled=True) for one in old if one.name in homes]
    workers = [*running[:3], *(replace(one, name=f"new{one.name}", at="") for one in new[:2])]
    found = place(hosts, workers, rule)
    least = fewest(hosts, workers, rule)
    assert bool(found.refusals) == (least is None)
    if least is not None:
        assert len(found.moves) == least
        assert found.moves == {w.name: w.at for w in running[:3] if found.where[w.name] != w.at}
        assert bool(found.makes_room_for) == bool(least)


@pytest.mark.parametrize("apart", [True, False])
def test_one_new_pinned_worker_moves_one_of_32(apart: bool) -> None:
    hosts = [host(f"esx{n:02}") for n in range(33)]
    running = [worker(f"w{n:02}", OFFERED[0], at=f"esx{n:02}", settled=True) for n in range(32)]
    pinned = worker("new", OFFERED[0], hosts=frozenset({"esx07"}))
    found = place(hosts, [*running, pinned], Rules(apart))
    assert (found.moves, found.makes_room_for) == ({"w07": "esx07"}, ("new",))
    assert (found.where["w07"], found.where["new"]) == ("esx32", "esx07")


@pytest.mark.parametrize("apart", [True, False])
def test_chain_of_moves_is_as_short_as_possible(apart: bool) -> None:
    """The pinned worker needs esx0; w0 fits only on esx0 and esx1, and w1 may go to the free host."""
    hosts = [host(f"esx{n}") for n in range(4)]
    running = [
        worker("w0", OFFERED[0], at="esx0", settled=True, hosts=frozenset({"esx0", "esx1"})),
        worker("w1", OFFERED[0], at="esx1", settled=True),
        worker("w2", OFFERED[0], at="esx2", settled=True),
    ]
    found = place(hosts, [*running, worker("new", OFFERED[0], hosts=frozenset({"esx0"}))], Rules(apart))
    assert found.moves == {"w0": "esx0", "w1": "esx1"}
    assert found.where == {"new": "esx0", "w0": "esx1", "w1": "esx3", "w2": "esx2"}


def test_moves_powered_off_workers_before_running_ones() -> None:
    hosts = [host(f"esx{n}") for n in range(3)]
    runs, off = (worker(name, OFFERED[0], at=at) for name, at in (("w0", "esx0"), ("w1", "esx1")))
    new = worker("new", OFFERED[0], hosts=frozenset({"esx0", "esx1"}))
    for apart in (True, False):
        found = place(hosts, [replace(runs, settled=True), off, new], Rules(apart))
        assert found.moves == {} and found.where == {"w0": "esx0", "new": "esx1", "w1": "esx2"}


def test_if_not_all_fit_no_worker_moves() -> None:
    running = [worker(f"w{n}", OFFERED[0], at=f"esx{n}", settled=True) for n in range(2)]
    found = place([host("esx0"), host("esx1")], [*running, worker("new", OFFERED[0])])
    assert found.where == {"w0": "esx0", "w1": "esx1"} and list(found.refusals) == ["new"] and not found.moves


@pytest.mark.parametrize("apart", [True, False])
def test_places_a_pinned_worker_among_500_within_seconds(apart: bool) -> None:
    hosts = [host(f"esx{n:03}") for n in range(512)]
    running = [
        WorkerToPlace(f"w{n:03}", Demand((OFFERED[0],), memory_mb=1000 + n % 3), at=f"esx{n:03}", settled=True)
        for n in range(500)
    ]
    pinned = worker("new", OFFERED[0], hosts=frozenset({"esx123"}))
    began = time.process_time()
    found = place(hosts, [*running, pinned], Rules(apart=apart))
    assert list(found.moves) == ["w123"]
    assert time.process_time() - began < 20


def test_refusal_names_the_moves_that_are_not_allowed() -> None:
    hosts = [host(f"esx{n}") for n in range(3)]
    running = [worker(f"w{n}", OFFERED[0], at=f"esx{n}", settled=True) for n in range(2)]
    pinned = worker("new", OFFERED[0], hosts=frozenset({"esx1"}))
    found = without_moves(hosts, [*running, pinned])
    assert found.where == {"w0": "esx0", "w1": "esx1"} and found.moves == {}
    assert "if running ones move (w1 from esx1 to esx2), which allow_moves: true permits" in found.refusals["new"]
    away = worker("w2", OFFERED[0], at="esx2", settled=True, hosts=frozenset({"esx0", "esx1", "esx3"}))
    named = without_moves([*hosts, host("esx3")], [*running, away])
    assert named.where["w2"] == "esx3" and not named.refusals, "the user excluded its host"


@pytest.mark.parametrize("size", OFFERED)
def test_counts_all_sizes_of_a_settled_worker(size: str) -> None:
    runs = worker("w1", "grid_t4-8c", "grid_t4-4c", at="esx1", settled=True)
    new = worker("w2", size)
    assert place([host("esx1")], [runs, new], Rules(apart=False)).refusals.keys() == {"w2"}
    found = place([host("esx1"), host("esx2")], [runs, new], Rules(apart=False))
    assert (found.where, found.moves) == ({"w1": "esx1", "w2": "esx2"}, {})
