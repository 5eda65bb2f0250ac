"""Hosts leave service, are changed and booted as often as needed, and return, with any number of controllers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from plugins.module_utils.durable.program import Program
from plugins.module_utils.errors import CollectionError
from plugins.module_utils.hosts.change_hosts import HostChangeOptions, change_hosts
from tests.fakes.deaths import MortalJournal, carry_out, histories
from tests.fakes.host_changes import FakeHost, HostWorld

OPTIONS = HostChangeOptions("gpu", {"kernel_modules": []}, lock_ttl=60)
ALARM = {"severity": "stop", "rule": "red_alarm", "object": "esx9", "text": "esx9: the alarm 'Host memory' is red."}


def world_of(*boots: int, deaths: Iterable[int] = (), **more: Any) -> HostWorld:
    """Return a locked cluster with hosts that need the given numbers of boots."""
    hosts = {f"esx{number}": FakeHost(needed, **more) for number, needed in enumerate(boots, start=1)}
    world = HostWorld(hosts, deaths)
    world.holder = "run"
    return world


def run(world: HostWorld, *hosts: str, options: HostChangeOptions = OPTIONS) -> list[dict[str, Any]]:
    """Change hosts with one controller."""
    return change_hosts(Program(MortalJournal(world), world), world, hosts or tuple(world.hosts), options)


def test_each_single_death_and_many_pairs_lead_to_the_same_end() -> None:
    def change(world: HostWorld) -> list[dict[str, Any]]:
        return [change for host in ("esx1", "esx2", "esx3") for change in carried_out(world, host)]

    def carried_out(world: HostWorld, host: str) -> list[dict[str, Any]]:
        return list(carry_out(world, lambda p: change_hosts(p, world, [host], OPTIONS)))

    count = 0
    for world, changes in histories(lambda deaths: world_of(0, 1, 2, deaths=deaths), change, pairs=300):
        count += 1
        assert [entry["reboots"] for entry in changes] == [0, 1, 2], world.log
        for number, host in enumerate(world.hosts.values()):
            assert host.progress.count("boot") == host.boots == number, world.log
            assert not host.is_out and not host.by and not host.needs and not host.differs
        assert world.most_out == 1
    assert count > 300 + 60


def test_hosts_of_one_program_are_changed_once_each_whichever_controller_dies() -> None:
    """A window changes one host after another with one journal: a host that returned must not leave service again."""

    def program(p: Program, world: HostWorld) -> list[str]:
        for host in ("esx1", "esx2"):
            change_hosts(p, world, [host], OPTIONS)
            p.say(f"{host} is done")
        return [line for line in world.lines if line.endswith("done")]

    for world, reported in histories(
        lambda deaths: world_of(1, 1, deaths=deaths), lambda w: carry_out(w, lambda p: program(p, w)), pairs=200
    ):
        assert [host.boots for host in world.hosts.values()] == [1, 1], world.log
        assert world.log.count("maintenance esx1") == world.log.count("maintenance esx2") == 1, world.log
        assert reported[-1] == "esx2 is done"


def test_several_hosts_leave_together_and_only_those_that_need_it_boot_twice() -> None:
    world = world_of(1, 2, 0)

    changes = run(world)

    assert {entry["host"]: (entry["reboots"], entry["rounds"]) for entry in changes} == {
        "esx1": (1, 2),
        "esx2": (2, 2),
        "esx3": (0, 2),
    }
    assert [host.boots for host in world.hosts.values()] == [1, 2, 0]
    assert all(entry["out_at"] < entry["back_at"] for entry in changes)
    assert "esx2 was out of service for" in world.lines[-2] and world.lines[-2].endswith("2 reboots")


def test_a_driver_that_needs_a_moment_after_the_boot_costs_no_second_reboot() -> None:
    world = world_of(1, slow_driver=3)

    run(world)

    assert world.hosts["esx1"].boots == 1


def test_keeps_the_host_out_of_service_and_reports_a_setting_that_never_becomes_active() -> None:
    world = world_of(1, slow_driver=10**6)

    with pytest.raises(CollectionError) as error:
        run(world)

    assert str(error.value) == (
        "esx1: could not activate its profile: it was changed and booted as planned, yet it differs; check "
        "the host's log and run again. Hosts in maintenance mode stay there; the next run of this playbook continues "
        "from here."
    )
    assert world.hosts["esx1"].is_out and world.hosts["esx1"].boots == 1


def test_a_stop_rule_keeps_the_hosts_in_service() -> None:
    world = world_of(1)
    world.stops = [ALARM]

    with pytest.raises(
        CollectionError, match=r"esx1: could not leave service: esx9: the alarm .* is red; remove the cause"
    ):
        run(world)

    assert not world.hosts["esx1"].is_out and world.hosts["esx1"].progress == []


@pytest.mark.parametrize("accepted", ["red_alarm", "red_alarm:esx9"])
def test_an_accepted_stop_rule_does_not_stop(accepted: str) -> None:
    world = world_of(1)
    world.stops = [ALARM]

    run(world, options=HostChangeOptions("gpu", {}, accepted_stops=[accepted]))

    assert world.hosts["esx1"].boots == 1


def test_hosts_already_out_of_service_finish_despite_a_rule() -> None:
    world = world_of(1)
    world.stops, world.hosts["esx1"].is_out, world.hosts["esx1"].by = [ALARM], True, "us"

    run(world)

    assert not world.hosts["esx1"].is_out and world.hosts["esx1"].boots == 1


def test_a_host_of_others_is_neither_changed_nor_rebooted_nor_returned() -> None:
    world = world_of(1)
    world.hosts["esx1"].is_out, world.hosts["esx1"].by = True, "bob"

    with pytest.raises(
        CollectionError, match="esx1: could not change host profile: another user put it into maintenance"
    ):
        run(world, options=HostChangeOptions("gpu", {}, accepted_stops=["out_of_service", "taken_out"]))

    assert world.hosts["esx1"].progress == [] and world.hosts["esx1"].is_out


@pytest.mark.parametrize(
    ("failing", "is_out", "boots"),
    [
        ("held", False, 0),
        ("cluster_info", False, 0),
        ("maintenance", False, 0),
        ("esxi_profile", True, 0),
        ("rebooted", True, 0),
        ("in_service", True, 1),
    ],
)
def test_a_step_that_fails_keeps_the_host_as_it_is_and_a_later_run_finishes_it(
    failing: str, is_out: bool, boots: int
) -> None:
    world = world_of(1)
    world.failures[failing] = "esx1: could not do it: the server said so"

    with pytest.raises(CollectionError) as error:
        run(world)

    assert str(error.value).startswith(
        "esx1: could not do it: the server said so. Hosts in maintenance mode stay there"
    )
    assert (world.hosts["esx1"].is_out, world.hosts["esx1"].boots) == (is_out, boots)
    world.failures.clear()
    run(world)
    assert not world.hosts["esx1"].is_out and world.hosts["esx1"].boots == 1


def test_a_host_that_an_earlier_run_left_rebooting_is_awaited() -> None:
    world = world_of(1)
    host = world.hosts["esx1"]
    host.is_out, host.by, host.is_up, host.ending_boot, host.differs = True, "us", False, host.boot_time, False

    changes = run(world)

    assert host.boots == 1 and host.progress == [], "no second reboot"
    assert changes[0]["reboots"] == 0 and not host.is_out


def test_a_reboot_by_hand_before_the_profile_was_applied_does_not_count() -> None:
    """The first controller dies before it applies the profile, and then a person reboots the host."""
    world = world_of(1)
    values: dict[str, Any] = {"out of service esx1": 1.0}
    host = world.hosts["esx1"]
    host.is_out, host.by, host.boots = True, "us", 1

    change_hosts(Program(MortalJournal(world, values), world), world, ["esx1"], OPTIONS)

    assert host.progress == ["changed", "boot"] and not host.is_out


def test_a_remediation_of_an_earlier_controller_is_awaited_also_if_no_image_is_requested_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_of(1, 1)
    for host in world.hosts.values():
        host.is_out, host.by = True, "us"
    world.remediating = ["esx1", "esx2"]
    readings = [*range(4)]

    def remediations() -> list[dict[str, Any]]:
        if not readings:
            world.remediating.clear()
        hosts = [*world.remediating]
        return [{"user": "us", "hosts": hosts, "error": ""}] if hosts and readings.pop() is not None else []

    monkeypatch.setattr(world, "remediations", remediations)
    run(world)

    assert not world.hosts["esx1"].is_out and world.remediating == []


def test_a_remediation_that_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(1)
    world.hosts["esx1"].is_out, world.hosts["esx1"].by = True, "us"
    monkeypatch.setattr(world, "remediations", lambda: [{"user": "us", "hosts": ["esx1"], "error": ""}])

    with pytest.raises(CollectionError, match=r"^esx1: could not change host profile: vLCM still applies an image to"):
        run(world)

    assert world.hosts["esx1"].progress == [] and world.hosts["esx1"].is_out


def test_the_lock_is_renewed_for_its_time_and_the_options_reach_the_modules() -> None:
    world = world_of(1)
    how = HostChangeOptions(
        "gpu", {"a": 1}, {"esx1": {"b": 2}}, 5, 6, True, "module", True, max_out_of_service=2, lock_ttl=60
    )

    run(world, options=how)

    given = {f"{module} {options.get('state', '')}".strip(): options for module, options in world.calls}
    assert given["cluster_lock held"] == {"cluster": "gpu", "state": "held", "ttl": 60}
    rules = [options for module, options in world.calls if module == "cluster_info" and "leaving" in options]
    common = {"cluster": "gpu", "max_out_of_service": 2}
    assert rules == [{**common, "leaving": ["esx1"]}, {**common, "leaving": []}], "before, and after the return"
    assert given["esxi_power maintenance"] == {
        "hosts": ["esx1"],
        "state": "maintenance",
        "maintenance_timeout": 5,
        "power_off": True,
        "moved_by": "module",
        "non_disruptive": True,
        "take_over": (),
        "rollout": True,
    }
    assert given["esxi_profile"] == {"hosts": ["esx1"], "profile": {"a": 1}, "host_profiles": {"esx1": {"b": 2}}}
    assert given["esxi_power rebooted"]["reboot_timeout"] == 6
