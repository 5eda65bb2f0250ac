"""Hosts leave service, are changed and booted as often as needed, and return."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from plugins.module_utils.durable.program import Program
from plugins.module_utils.errors import CollectionError
from plugins.module_utils.hosts.change_hosts import HostChangeOptions, change_hosts
from tests.fakes.deaths import MortalJournal
from tests.unit.simulation.world import PROFILE, Cluster

OPTIONS = HostChangeOptions("gpu", PROFILE.option, lock_ttl=60)


def world_of(*boots: int, **more: Any) -> Cluster:
    """Return a locked cluster with hosts that need the given numbers of boots."""
    world = Cluster(*boots, **more)
    world.site.holder = world.run
    return world


def run(world: Cluster, *hosts: str, options: HostChangeOptions = OPTIONS) -> list[dict[str, Any]]:
    """Change hosts with one controller."""
    return change_hosts(Program(MortalJournal(world), world), world, hosts or tuple(world.site.hosts), options)


def is_changed(world: Cluster, host: str) -> bool:
    return any(line in (f"change {host}", f"reboot {host}") for line in world.log)


def test_hosts_leave_together_and_boot_twice_if_required() -> None:
    world = world_of(1, 2, 0)

    changes = run(world, options=replace(OPTIONS, max_out_of_service=3))

    assert {entry["host"]: (entry["reboots"], entry["rounds"]) for entry in changes} == {
        "esx1": (1, 2),
        "esx2": (2, 2),
        "esx3": (0, 2),
    }
    assert [host.boots for host in world.site.hosts.values()] == [1, 2, 0]
    assert all(entry["out_at"] < entry["back_at"] for entry in changes)
    assert "esx2 was out of service for" in world.lines[-2] and world.lines[-2].endswith("2 reboots")


def test_slow_driver_causes_no_second_reboot() -> None:
    world = world_of(1, slow_driver=3)

    run(world)

    assert world.site.hosts["esx1"].boots == 1


def test_host_with_inactive_setting_stays_out_of_service() -> None:
    world = world_of(1, slow_driver=10**6)

    with pytest.raises(CollectionError) as error:
        run(world)

    assert str(error.value) == (
        "esx1: could not activate its profile: it was changed and booted as planned, yet it differs; check "
        "the host's log and run again. Hosts in maintenance mode stay there; the next run of this playbook continues "
        "from here."
    )
    assert world.site.hosts["esx1"].is_out and world.site.hosts["esx1"].boots == 1


def test_a_stop_rule_keeps_the_hosts_in_service() -> None:
    world = world_of(1)
    world.site.alarms["esx9"] = 0.0

    with pytest.raises(
        CollectionError,
        match=r"esx1: could not leave service: esx9: the alarm .* is red since now; .*; remove the cause",
    ):
        run(world)

    assert not world.site.hosts["esx1"].is_out and not is_changed(world, "esx1")


@pytest.mark.parametrize("accepted", ["red_alarm", "red_alarm:esx9"])
def test_an_accepted_stop_rule_does_not_stop(accepted: str) -> None:
    world = world_of(1)
    world.site.alarms["esx9"] = 0.0

    world.site.accepted = frozenset({"red_alarm"})
    run(world, options=replace(OPTIONS, accepted_stops=[accepted]))

    assert world.site.hosts["esx1"].boots == 1


def test_hosts_out_of_service_finish_despite_a_rule() -> None:
    world = world_of(1)
    world.site.alarms["esx9"] = 0.0
    world.site.hosts["esx1"].is_out, world.site.hosts["esx1"].by = True, "us"

    run(world)

    assert not world.site.hosts["esx1"].is_out and world.site.hosts["esx1"].boots == 1


def test_does_not_touch_a_host_of_another_user() -> None:
    world = world_of(1)
    world.site.hosts["esx1"].is_out, world.site.hosts["esx1"].by = True, "bob"

    with pytest.raises(
        CollectionError, match="esx1: could not change host profile: another user put it into maintenance"
    ):
        run(world, options=replace(OPTIONS, accepted_stops=["out_of_service", "taken_out"]))

    assert not is_changed(world, "esx1") and world.site.hosts["esx1"].is_out


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
def test_later_run_finishes_a_host_whose_step_failed(failing: str, is_out: bool, boots: int) -> None:
    world = world_of(1)
    world.fails[failing] = "esx1: could not do it: the server said so"

    with pytest.raises(CollectionError) as error:
        run(world)

    assert str(error.value).startswith(
        "esx1: could not do it: the server said so. Hosts in maintenance mode stay there"
    )
    assert (world.site.hosts["esx1"].is_out, world.site.hosts["esx1"].boots) == (is_out, boots)
    world.fails.clear()
    run(world)
    assert not world.site.hosts["esx1"].is_out and world.site.hosts["esx1"].boots == 1


def test_awaits_a_host_that_an_earlier_run_rebooted() -> None:
    world = world_of(1)
    host = world.site.hosts["esx1"]
    host.is_out, host.by, host.is_up, host.ending_boot, host.is_applied = True, "us", False, host.boot_time, True

    changes = run(world)

    assert host.boots == 1 and not is_changed(world, "esx1"), "no second reboot"
    assert changes[0]["reboots"] == 0 and not host.is_out


def test_ignores_a_reboot_before_the_profile_was_applied() -> None:
    """The first controller dies before it applies the profile, and then a person reboots the host."""
    world = world_of(1)
    values: dict[str, Any] = {"out of service esx1": 1.0}
    host = world.site.hosts["esx1"]
    host.is_out, host.by, host.boots = True, "us", 1

    change_hosts(Program(MortalJournal(world, values), world), world, ["esx1"], OPTIONS)

    assert world.log.index("change esx1") < world.log.index("reboot esx1") and not host.is_out


def test_change_awaits_a_remediation_of_an_earlier_controller() -> None:
    """Also if no image is requested any more."""
    world = world_of(1, 1)
    for host in world.site.hosts.values():
        host.is_out, host.by, host.remediated_at = True, "us", 30.0 + world.site.clock

    run(world)

    assert world.is_in_service and world.boots == {"esx1": 1, "esx2": 1}


def test_a_remediation_that_does_not_end_is_named() -> None:
    world = world_of(1)
    host = world.site.hosts["esx1"]
    host.is_out, host.by, host.remediated_at = True, "us", math.inf

    with pytest.raises(CollectionError, match=r"^esx1: could not change host profile: vLCM still applies an image to"):
        run(world)

    assert not is_changed(world, "esx1") and host.is_out


def shows_remediation(monkeypatch: pytest.MonkeyPatch, world: Cluster, until: float, error: str = "") -> None:
    """A remediation whose hosts vCenter does not show is listed until a time."""
    read = world._cluster

    def shown() -> Any:
        begins = [{"user": "root", "hosts": [], "error": error}] if world.site.clock < until else []
        return {**read(), "remediations": begins}

    monkeypatch.setattr(world, "_cluster", shown)


def test_change_awaits_a_remediation_that_just_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The earlier controller died before vCenter showed the hosts of its remediation."""
    world = world_of(1)
    host, until = world.site.hosts["esx1"], world.site.clock + 60.0
    host.is_out, host.by = True, "us"
    changed_at = list[float]()
    world.before["change esx1"] = lambda: changed_at.append(world.site.clock)
    shows_remediation(monkeypatch, world, until)

    run(world)

    assert changed_at[0] >= until and world.is_in_service


@pytest.mark.parametrize("accepted", [[], ["remediation"], ["remediation:gpu"]])
def test_does_not_change_hosts_while_remediations_are_unknown(
    monkeypatch: pytest.MonkeyPatch, accepted: list[str]
) -> None:
    world = world_of(1)
    host = world.site.hosts["esx1"]
    host.is_out, host.by = True, "us"
    shows_remediation(monkeypatch, world, math.inf, "vcenter.lab: could not list them: the server said 503")
    world.site.accepted = frozenset(["remediation"] if accepted else [])

    if accepted:
        run(world, options=replace(OPTIONS, accepted_stops=accepted))
        assert world.is_in_service
        return
    with pytest.raises(CollectionError, match=r"^esx1: could not change host profile: whether vLCM still .* said 503;"):
        run(world)
    assert not is_changed(world, "esx1") and host.is_out


def test_renews_the_lock_and_passes_options_to_modules() -> None:
    world = world_of(1)
    how = HostChangeOptions(
        "gpu", PROFILE.option, {"esx1": PROFILE.option}, 5, 6, True, "module", True, max_out_of_service=2, lock_ttl=60
    )

    run(world, options=how)

    given = {f"{module} {options.get('state', '')}".strip(): options for module, options in world.requests}
    assert given["cluster_lock held"] == {"cluster": "gpu", "state": "held", "ttl": 60}
    rules = [options for module, options in world.requests if module == "cluster_info" and "leaving" in options]
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
    assert given["esxi_profile"] == {
        "hosts": ["esx1"],
        "profile": PROFILE.option,
        "host_profiles": {"esx1": PROFILE.option},
    }
    assert given["esxi_power rebooted"]["reboot_timeout"] == 6
