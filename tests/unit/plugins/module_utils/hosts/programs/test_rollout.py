"""A rollout reaches the same end with any number of controllers, of which each plans again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from plugins.module_utils.durable.program import Program
from plugins.module_utils.errors import CollectionError
from plugins.module_utils.hosts.change_hosts import HostChangeOptions
from plugins.module_utils.hosts.programs.rollout import rollout
from plugins.module_utils.hosts.rollout_plan import RolloutOptions, plan_hosts
from tests.fakes.deaths import MortalJournal, carry_out, histories
from tests.fakes.host_changes import FakeHost, HostWorld

CHANGE = HostChangeOptions("gpu", {"kernel_modules": []}, lock_ttl=60)
OPTIONS = RolloutOptions(CHANGE)
ALARM = {"severity": "stop", "rule": "red_alarm", "object": "esx9", "text": "esx9: the alarm 'Host memory' is red."}


def world_of(*boots: int, deaths: Iterable[int] = (), **more: Any) -> HostWorld:
    """Return a cluster with hosts that need the given numbers of boots."""
    hosts = {f"esx{number}": FakeHost(needed, **more) for number, needed in enumerate(boots, start=1)}
    return HostWorld(hosts, deaths)


def run(world: HostWorld, how: RolloutOptions = OPTIONS) -> dict[str, Any]:
    """Carry out a rollout with one controller."""
    return rollout(Program(MortalJournal(world), world), world, how)


def boots(world: HostWorld) -> list[int]:
    return [host.boots for host in world.hosts.values()]


def in_order(world: HostWorld) -> list[str]:
    return [line.removeprefix("maintenance ") for line in world.log if line.startswith("maintenance ")]


@pytest.mark.parametrize("most", [1, 2])
def test_each_single_death_and_many_pairs_lead_to_the_same_end(most: int) -> None:
    how = RolloutOptions(replace(CHANGE, max_out_of_service=most))

    def carried_out(world: HostWorld) -> Any:
        return carry_out(world, lambda p: rollout(p, world, how), keeps_journal=False)

    def bare(deaths: Iterable[int]) -> HostWorld:
        world = world_of(1, 2, 0, 1, deaths=deaths)
        world.hosts["esx3"].needs_maintenance = False
        return world

    count = 0
    for world, _plan in histories(bare, carried_out, pairs=300):
        count += 1
        assert boots(world) == [1, 2, 0, 1], world.log
        for host in world.hosts.values():
            assert not host.is_out and not host.by and not host.needs and not host.differs, world.log
        assert world.most_out <= most and not world.holder, world.log
    assert count > 300 + 60


def test_hosts_that_need_no_maintenance_mode_are_changed_in_service_in_one_call() -> None:
    world = world_of(0, 0, needs_maintenance=False)

    plan = run(world)

    assert (plan["in_service"], plan["leaving"]) == (["esx1", "esx2"], [])
    assert in_order(world) == [] and [host.progress for host in world.hosts.values()] == [["changed"]] * 2


def test_hosts_leave_service_in_batches_of_what_the_cluster_can_spare() -> None:
    world = world_of(1, 1, 1, 1)
    world.allowed = 2

    run(world, RolloutOptions(replace(CHANGE, max_out_of_service=3)))

    leaving = [options["leaving"] for module, options in world.calls if options.get("leaving")]
    assert leaving == [["esx1", "esx2"], ["esx3", "esx4"]]


def test_a_host_of_others_takes_the_place_of_one_of_the_batch() -> None:
    world = world_of(1, 1, 0)
    other = world.hosts["esx3"]
    other.is_out, other.by, other.differs = True, "bob", False

    run(world, RolloutOptions(replace(CHANGE, max_out_of_service=2)))

    assert [options["leaving"] for _module, options in world.calls if options.get("leaving")] == [["esx1"], ["esx2"]]
    assert other.is_out and other.progress == []


def test_the_canary_is_changed_alone_and_the_others_by_the_run_after_it() -> None:
    world = world_of(1, 1, 1)

    run(world, RolloutOptions(CHANGE, canary="esx2"))
    assert boots(world) == [0, 1, 0]

    run(world, RolloutOptions(CHANGE, canary="esx2", continue_after_canary=True))
    assert boots(world) == [1, 1, 1]


def test_a_host_that_an_earlier_run_left_out_of_service_goes_first_even_before_the_canary() -> None:
    world = world_of(1, 1, 1)
    world.hosts["esx3"].is_out, world.hosts["esx3"].by = True, "us"

    run(world, RolloutOptions(CHANGE, canary="esx2", continue_after_canary=True))

    assert in_order(world) == ["esx2", "esx1"] and not world.hosts["esx3"].is_out
    assert next(options["leaving"] for _module, options in world.calls if options.get("leaving")) == ["esx3"]


def test_around_a_job_no_host_leaves_service() -> None:
    world = world_of(1, 0)
    world.hosts["esx2"].needs_maintenance = False

    plan = run(world, RolloutOptions(CHANGE, around_job=True))

    assert plan["leaving"] == ["esx1"] and in_order(world) == []
    assert world.hosts["esx2"].progress == ["changed"]


def test_only_the_named_hosts_are_planned() -> None:
    world = world_of(1, 1)

    run(world, RolloutOptions(CHANGE, hosts=["esx2"]))

    assert boots(world) == [0, 1]


def test_a_host_of_others_that_differs_refuses_the_rollout_before_the_first_change() -> None:
    world = world_of(1, 1)
    world.hosts["esx2"].is_out, world.hosts["esx2"].by = True, "bob"

    with pytest.raises(CollectionError, match=r"esx2: could not change host profile: another user put it into"):
        run(world)

    assert boots(world) == [0, 0] and in_order(world) == [] and not world.holder


def test_a_failure_ends_the_rollout_before_the_next_host_and_releases_the_lock() -> None:
    world = world_of(1, 1)
    world.failures["rebooted"] = "esx1: could not reboot: it went down and did not return within 3 s"

    with pytest.raises(CollectionError, match=r"did not return within 3 s\. Hosts in maintenance mode stay there"):
        run(world)

    assert world.hosts["esx1"].is_out and not world.hosts["esx2"].is_out and not world.holder


def test_a_stop_rule_ends_the_rollout_between_two_hosts() -> None:
    world = world_of(1, 1)
    world.on_return = lambda: world.stops.append(ALARM)

    with pytest.raises(CollectionError, match="esx2: could not leave service: esx9"):
        run(world)

    assert boots(world) == [1, 0] and not world.hosts["esx1"].is_out and not world.holder


def test_the_lock_is_taken_by_force_once_and_its_run_is_named_to_the_modules() -> None:
    world = world_of(1)

    run(world, RolloutOptions(CHANGE, force_unlock=True))

    locks = [options for module, options in world.calls if module == "cluster_lock"]
    assert locks[0] == {"cluster": "gpu", "state": "held", "ttl": 60, "force_unlock": True}
    assert [options.get("force_unlock") for options in locks[1:]] == [None, None]
    assert world.run == "run" and locks[-1]["state"] == "free"


def test_a_lock_that_another_run_holds_changes_nothing() -> None:
    world = world_of(1)
    world.failures["held"] = "gpu: could not take its lock: it is held by bob"

    with pytest.raises(CollectionError, match="gpu: could not take its lock: it is held by bob"):
        run(world)

    assert [module for module, _options in world.calls] == ["cluster_lock"], "a lock of others is not released"


def test_a_lock_that_could_not_be_released_is_an_error() -> None:
    world = world_of(1)
    world.failures["free"] = "gpu: could not release its lock: the server said no"

    with pytest.raises(CollectionError, match="could not release its lock"):
        run(world)

    assert boots(world) == [1] and not world.hosts["esx1"].is_out


def test_reads_no_maintenance_events_if_every_host_is_in_service() -> None:
    world = world_of(0, 0, differs=False)

    run(world)

    assert [module for module, _options in world.calls] == ["cluster_lock", "esxi_profile", "cluster_lock"]


def test_a_host_in_the_maintenance_of_others_is_changed_and_returned_only_if_it_is_named() -> None:
    def make(deaths: Iterable[int]) -> HostWorld:
        world = world_of(1, 1, deaths=deaths)
        world.hosts["esx2"].is_out, world.hosts["esx2"].by = True, "them"
        return world

    with pytest.raises(CollectionError, match=r"esx2: could not change host profile: .*name it in esxi_host_take_over"):
        run(make(()))
    how = RolloutOptions(replace(CHANGE, take_over=["esx2"]))
    for world, _plan in histories(make, lambda w: carry_out(w, lambda p: rollout(p, w, how), keeps_journal=False)):
        assert boots(world) == [1, 1] and not any(host.is_out or host.by for host in world.hosts.values()), world.log
        assert world.most_out <= 1 or "maintenance esx2" not in world.log


IMAGE = RolloutOptions(replace(CHANGE, image={"components": {"manager": "2"}, "accept_eula": True}))


def test_an_image_is_set_and_applied_to_each_emptied_host_with_any_number_of_controllers() -> None:
    def carried_out(world: HostWorld) -> Any:
        return carry_out(world, lambda p: rollout(p, world, IMAGE), keeps_journal=False)

    def bare(deaths: Iterable[int]) -> HostWorld:
        return world_of(1, 0, deaths=deaths, needs_image=True)

    for world, _plan in histories(bare, carried_out, pairs=30):
        assert world.image == "2" and boots(world) == [2, 1], world.log
        assert not any(host.is_out or host.by for host in world.hosts.values()) and not world.holder


def test_each_call_about_service_comes_from_a_rollout() -> None:
    world = world_of(1, 0)
    world.hosts["esx2"].is_out, world.hosts["esx2"].by = True, "us"

    run(world)

    power = [options for module, options in world.calls if module == "esxi_power"]
    assert {options["state"] for options in power} == {"maintenance", "rebooted", "in_service"}
    assert [options for options in power if options.get("rollout") is not True] == []


def test_hosts_of_another_cluster_are_refused_before_they_are_planned() -> None:
    world = world_of(1, 1)
    with pytest.raises(CollectionError, match=r"^esx8, esx9: could not .*: cluster gpu has no such host; correct "):
        plan_hosts(world, replace(OPTIONS, hosts=["esx9", "esx1", "esx8"]))
    assert [module for module, _options in world.calls] == ["cluster_info"]
    assert plan_hosts(world, replace(OPTIONS, hosts=["esx1"]))["leaving"] == ["esx1"]


def test_the_plan_of_an_image_shows_its_change_its_reboots_and_its_reason() -> None:
    world = world_of(1, needs_image=True)
    plan = plan_hosts(world, IMAGE)
    assert plan["lines"] == [
        "the image of cluster gpu changes, base_image: 8.0 -> 2",
        "esx1: changes out of service, 2 reboots",
        "    because the image of its cluster is applied by vLCM (1 reboot)",
        "    because it differs",
    ]
    assert world.image == "" and plan["leaving"] == ["esx1"] and plan["changed"]
