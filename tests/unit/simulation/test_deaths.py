"""A controller dies before or after any effect or entry of its journal, or two die: the next reaches the same end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from plugins.module_utils.durable.program import Program
from plugins.module_utils.hosts.change_hosts import HostChangeOptions, change_hosts
from plugins.module_utils.hosts.rollout import RolloutOptions, rollout
from plugins.module_utils.trials.evidence.verdict_input import transports, verdict_input
from tests.fakes.deaths import carry_out, histories

from .host import Host
from .world import HOSTS, PROFILE, WINDOW, Cluster, Window, World

IMAGE = {"components": {"manager": "2"}, "accept_eula": True}
BOTH = {key: {"w1": "tcp", "w2": "tcp"} for key in ("before", "after")}
ONCE = dict.fromkeys(HOSTS, 1)


def waves(deaths: Iterable[int]) -> World:
    return World(deaths, max_moves=2)


def canary(deaths: Iterable[int]) -> World:
    """The idle worker moves before the one with a rank."""
    world = World(deaths, canary="auto", workers=["w1"])
    world.add_idle_worker("w3", "esx3")
    return world


def moved_late(deaths: Iterable[int]) -> World:
    """A move that a dead controller left ends just before the next controller calls for it."""
    world = World(deaths, workers=["w1"])
    answer = world.vmotion

    def vmotion(options: dict[str, Any]) -> dict[str, Any]:
        for move in world.site.moves:
            world.site.arrive(move)
        return answer(options)

    world.vmotion = vmotion  # type: ignore[method-assign]
    return world


def changed_by_others(deaths: Iterable[int]) -> Window:
    window = Window(deaths)
    window.site.hosts["esx1"].apply(replace(window.site.requested, boots=0))
    return window


def image(deaths: Iterable[int]) -> Window:
    window = Window(deaths, window={**WINDOW, "image": IMAGE})
    window.site.requested_image = 2
    return window


CASES: dict[str, tuple[Callable[[Iterable[int]], World], dict[str, int], list[str], int]] = {
    "test": (World, {}, ["w1", "w2"], 100),
    "moves at once": (waves, {}, ["w1", "w2"], 100),
    "canary": (canary, {}, ["w1", "w3"], 0),
    "move that ends meanwhile": (moved_late, {}, ["w1"], 0),
    "window": (Window, ONCE, ["w1", "w2"], 40),
    "window and a host that others changed": (changed_by_others, {"esx2": 1, "esx3": 1}, ["w2"], 0),
    "window of an image": (image, dict.fromkeys(HOSTS, 2), ["w1", "w2"], 20),
}


@pytest.mark.parametrize("case", CASES)
def test_program_ends_the_same_after_any_death(case: str) -> None:
    make, boots, moved, pairs = CASES[case]
    for world, facts in histories(make, World.to_the_end, pairs=pairs):
        assert (world.outcome, world.boots, sorted(world.moved)) == ("", boots, moved), world.log
        assert world.is_clean and world.is_in_service and world.most_out <= 1, world.log
        assert all(move["ok"] for move in facts.moves) and facts.others == [] and facts.is_over
        assert len(facts.moves) == len(moved) and {change["reboots"] for change in facts.finished_changes} <= {
            *boots.values()
        }
        assert transports(facts)["of_moves"] == [BOTH] * len(moved)
        assert world.controllers > 1 or verdict_input(world.facts) == verdict_input(facts), "a later judgement differs"


ROLLOUTS: dict[str, tuple[HostChangeOptions, tuple[int, ...], list[int], int]] = {
    "one after another": (HostChangeOptions("gpu", {}), (1, 2, 0, 1), [1, 2, 0, 1], 300),
    "two at once": (HostChangeOptions("gpu", {}, max_out_of_service=2), (1, 2, 0, 1), [1, 2, 0, 1], 300),
    "image": (HostChangeOptions("gpu", {}, image=IMAGE), (1, 1), [2, 2], 30),
    "host of others": (HostChangeOptions("gpu", {}, take_over=["esx2"]), (1, 1), [1, 1], 30),
}


@pytest.mark.parametrize("case", ROLLOUTS)
def test_rollout_ends_the_same_after_any_death(case: str) -> None:
    change, needed, boots, pairs = ROLLOUTS[case]

    def make(deaths: Iterable[int]) -> Cluster:
        world = Cluster(*needed, deaths=deaths, leaves=False)
        if change.image:
            world.site.requested_image, world.profile = 2, PROFILE
            world.site.hosts = {name: Host() for name in world.site.hosts}
        if change.take_over:
            world.site.hosts["esx2"].is_out, world.site.hosts["esx2"].by = True, "them"
        return world

    def run(world: Cluster) -> Any:
        given = RolloutOptions(replace(change, profile=world.profile.option))
        return carry_out(world, lambda p: rollout(p, world, given), keeps_journal=False)

    for world, _plan in histories(make, run, pairs=pairs):
        assert [host.boots for host in world.site.hosts.values()] == boots, world.log
        assert all(host.has(world.profile) for host in world.site.hosts.values()) and world.is_in_service, world.log
        assert not world.site.holder and world.most_out <= (2 if case in ("two at once", "host of others") else 1)


def test_any_death_changes_each_host_once() -> None:
    """A window changes one host after another with one journal: a host that returned must not leave service again."""

    def program(p: Program, world: Cluster) -> list[str]:
        world.site.holder = world.run
        for host in ("esx1", "esx2", "esx3"):
            change_hosts(p, world, [host], HostChangeOptions("gpu", world.profile.option))
            p.say(f"{host} is done")
        return [line for line in world.lines if line.endswith("done")]

    for world, reported in histories(
        lambda deaths: Cluster(0, 1, 2, deaths=deaths), lambda w: carry_out(w, lambda p: program(p, w)), pairs=300
    ):
        assert [host.boots for host in world.site.hosts.values()] == [0, 1, 2], world.log
        assert all(world.log.count(f"maintenance {host}") == 1 for host in HOSTS), world.log
        assert reported[-1] == "esx3 is done" and world.most_out == 1
