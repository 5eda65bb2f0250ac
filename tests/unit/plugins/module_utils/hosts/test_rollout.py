"""A rollout reaches the same end with any number of controllers, of which each plans again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from plugins.module_utils.durable.program import Program
from plugins.module_utils.errors import CollectionError
from plugins.module_utils.hosts.change_hosts import HostChangeOptions
from plugins.module_utils.hosts.rollout import RolloutOptions, plan_hosts, rollout
from tests.fakes.deaths import MortalJournal
from tests.unit.simulation.host import Profile
from tests.unit.simulation.job import Job
from tests.unit.simulation.world import JOB_CHECK, PROFILE, Cluster

CHANGE = HostChangeOptions("gpu", PROFILE.option, lock_ttl=60)
OPTIONS = RolloutOptions(CHANGE)
CHECKED = RolloutOptions(CHANGE, job_check=JOB_CHECK)
IN_SERVICE = RolloutOptions(replace(CHANGE, profile=Profile(1, leaves=False).option))


def run(world: Cluster, how: RolloutOptions = OPTIONS) -> dict[str, Any]:
    """Carry out a rollout with one controller."""
    world.next_controller()
    return rollout(Program(MortalJournal(world), world), world, how)


def boots(world: Cluster) -> list[int]:
    return [host.boots for host in world.site.hosts.values()]


def in_order(world: Cluster) -> list[str]:
    return [line.removeprefix("maintenance ") for line in world.log if line.startswith("maintenance ")]


def leaving(world: Cluster) -> list[list[str]]:
    """Return the hosts of each batch."""
    return [list(options["leaving"]) for _module, options in world.requests if options.get("leaving")]


def test_changes_hosts_without_reboot_in_service_at_once() -> None:
    world = Cluster(0, 0)

    plan = run(world, IN_SERVICE)

    assert (plan["in_service"], plan["leaving"]) == (["esx1", "esx2"], [])
    assert in_order(world) == [] and {"change esx1", "change esx2"} <= {*world.log}


def test_fails_if_hosts_changed_in_service_must_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host may promise to rebind a device without a boot, and need the boot nevertheless."""
    world = Cluster(0, 0)
    esx2, apply = world.site.hosts["esx2"], world.site.apply

    def applied(name: str, *more: Any) -> None:
        apply(name, *more)
        esx2.boots_left = int(name == "esx2")

    monkeypatch.setattr(world.site, "apply", applied)
    with pytest.raises(CollectionError, match=r"^esx2: could not activate its profile in service: it differs; run"):
        run(world, IN_SERVICE)
    assert not esx2.is_out and not esx2.boots and not world.site.holder

    run(world, IN_SERVICE)
    assert esx2.boots == 1 and world.is_in_service


def test_hosts_leave_service_in_batches_of_spare_capacity() -> None:
    world = Cluster(1, 1, 1, 1)
    world.can_spare(2)

    run(world, RolloutOptions(replace(CHANGE, max_out_of_service=3)))

    assert leaving(world) == [["esx1", "esx2"], ["esx3", "esx4"]]


def test_host_out_of_service_reduces_the_batch() -> None:
    world = Cluster(1, 1, 0)
    other = world.site.hosts["esx3"]
    other.is_out, other.by, other.is_applied = True, "bob", True

    world.site.accepted = frozenset({"taken_out", "out_of_service"})
    run(world, RolloutOptions(replace(CHANGE, max_out_of_service=2, accepted_stops=[*world.site.accepted])))

    assert leaving(world) == [["esx1"], ["esx2"]]
    assert other.is_out and "change esx3" not in world.log


def test_first_run_changes_only_the_canary() -> None:
    world = Cluster(1, 1, 1)

    run(world, RolloutOptions(CHANGE, canary="esx2"))
    assert boots(world) == [0, 1, 0]

    run(world, RolloutOptions(CHANGE, canary="esx2", continue_after_canary=True))
    assert boots(world) == [1, 1, 1]


def test_changes_a_host_left_out_before_the_canary() -> None:
    world = Cluster(1, 1, 1)
    world.site.hosts["esx3"].is_out, world.site.hosts["esx3"].by = True, "us"

    run(world, RolloutOptions(CHANGE, canary="esx2", continue_after_canary=True))

    assert in_order(world) == ["esx2", "esx1"] and not world.site.hosts["esx3"].is_out
    assert leaving(world)[0] == ["esx3"]


def test_serving_host_with_an_old_note_stays_in_service() -> None:
    """A run that was killed before the entry or after the return leaves its note, as does one that a person ended."""
    world = Cluster(0, 0)
    for host in world.site.hosts.values():
        host.is_applied = True
    world.site.hosts["esx2"].by = "us"

    plan = run(world)

    assert (plan["in_service"], plan["leaving"]) == (["esx2"], [])
    assert in_order(world) == [] and world.is_in_service


def test_around_a_job_no_host_leaves_service() -> None:
    world = Cluster(1, 0)

    plan = run(world, replace(IN_SERVICE, around_job=True))

    assert plan["leaving"] == ["esx1"] and in_order(world) == [] and "change esx2" in world.log


def test_only_the_named_hosts_are_planned() -> None:
    world = Cluster(1, 1)

    run(world, RolloutOptions(CHANGE, hosts=["esx2"]))

    assert boots(world) == [0, 1]


def test_refuses_a_differing_host_of_another_user() -> None:
    world = Cluster(1, 1)
    world.site.hosts["esx2"].is_out, world.site.hosts["esx2"].by = True, "bob"

    with pytest.raises(CollectionError, match=r"esx2: could not change host profile: another user put it into"):
        run(world)

    assert boots(world) == [0, 0] and in_order(world) == [] and not world.site.holder


def test_failure_spares_the_next_host_and_releases_lock() -> None:
    world = Cluster(1, 1)
    world.fails["rebooted"] = "esx1: could not reboot: it went down and did not return within 3 s"

    with pytest.raises(CollectionError, match=r"did not return within 3 s\. Hosts in maintenance mode stay there"):
        run(world)

    assert world.site.hosts["esx1"].is_out and not world.site.hosts["esx2"].is_out and not world.site.holder


def test_stop_rule_ends_the_rollout_between_hosts() -> None:
    world = Cluster(1, 1)
    world.before["return esx1"] = lambda: world.site.alarms.update(esx9=0.0)

    with pytest.raises(CollectionError, match="esx2: could not leave service: esx9"):
        run(world)

    assert boots(world) == [1, 0] and not world.site.hosts["esx1"].is_out and not world.site.holder


def starts_train(world: Cluster) -> None:
    world.site.beside = Job({0: "w5"}, world.site.clock, place="/runs/train")


def test_job_started_after_a_host_spares_the_next() -> None:
    world = Cluster(1, 1, 1)
    world.before["return esx1"] = lambda: starts_train(world)

    with pytest.raises(
        CollectionError,
        match=r"^esx2: could not leave service: w5: the training job train of anna@desk since .* runs on this worker\. "
        r".*interrupt_training=true\. Hosts in maintenance mode stay there; the next run .* continues from here\.$",
    ):
        run(world, CHECKED)
    assert in_order(world) == ["esx1"] and world.is_in_service and not world.site.holder

    world.site.beside = None
    run(world, CHECKED)
    assert in_order(world) == ["esx1", "esx2", "esx3"] and boots(world) == [1, 1, 1]


def test_permitted_interruption_ignores_jobs_that_start_later() -> None:
    world = Cluster(1, 1)
    world.before["return esx1"] = lambda: starts_train(world)

    run(world, OPTIONS)

    assert boots(world) == [1, 1]


UNKNOWN = "gpu: the training jobs of w9 are unknown"


class Booting(Cluster):
    """A cluster with a worker that answers after some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(1, 1)
        self.answers_at = self.site.clock + seconds

    def jobs_on_workers(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"unread": UNKNOWN} if self.site.clock < self.answers_at else super().jobs_on_workers(options)


def test_waits_for_a_worker_that_boots_meanwhile() -> None:
    world = Booting(300.0)

    run(world, CHECKED)

    assert boots(world) == [1, 1]
    assert "waits up to 600 s for workers whose training jobs cannot be read" in world.lines


def test_hosts_stay_in_service_while_jobs_are_unknown() -> None:
    world = Booting(3600.0)

    with pytest.raises(CollectionError, match=f"^esx1: could not leave service: {UNKNOWN}. Hosts in maintenance mode"):
        run(world, CHECKED)

    assert in_order(world) == [] and world.is_in_service and not world.site.holder


def test_takes_lock_by_force_once_and_names_run() -> None:
    world = Cluster(1)

    run(world, RolloutOptions(CHANGE, force_unlock=True))

    locks = [options for module, options in world.requests if module == "cluster_lock"]
    assert locks[0] == {"cluster": "gpu", "state": "held", "ttl": 60, "force_unlock": True}
    assert [options.get("force_unlock") for options in locks[1:]] == [None, None]
    assert locks[-1]["state"] == "free"


def test_a_lock_that_another_run_holds_changes_nothing() -> None:
    world = Cluster(1)
    world.fails["held"] = "gpu: could not take its lock: it is held by bob"

    with pytest.raises(CollectionError, match="gpu: could not take its lock: it is held by bob"):
        run(world)

    assert [module for module, _options in world.requests] == ["cluster_lock"], "a lock of others is not released"


def test_reports_a_lock_that_is_not_released() -> None:
    world = Cluster(1)
    world.fails["free"] = "gpu: could not release its lock: the server said no"

    with pytest.raises(CollectionError, match="could not release its lock"):
        run(world)

    assert boots(world) == [1] and not world.site.hosts["esx1"].is_out


def test_reads_no_maintenance_events_with_all_in_service() -> None:
    world = Cluster(0, 0)
    run(world)
    world.requests.clear()

    run(world)

    assert [module for module, _options in world.requests] == ["cluster_lock", "esxi_profile", "cluster_lock"]


def test_takes_over_only_named_hosts_of_another_user() -> None:
    world = Cluster(1, 1)
    world.site.hosts["esx2"].is_out, world.site.hosts["esx2"].by = True, "them"
    with pytest.raises(CollectionError, match=r"esx2: could not change host profile: .*name it in esxi_host_take_over"):
        run(world)

    run(world, RolloutOptions(replace(CHANGE, take_over=["esx2"])))

    assert boots(world) == [1, 1] and world.is_in_service and in_order(world) == ["esx1"]


IMAGE = RolloutOptions(replace(CHANGE, image={"components": {"manager": "2"}, "accept_eula": True}))


def test_each_call_about_service_comes_from_a_rollout() -> None:
    world = Cluster(1, 0)
    world.site.hosts["esx2"].is_out, world.site.hosts["esx2"].by = True, "us"

    run(world)

    power = [options for module, options in world.requests if module == "esxi_power"]
    assert {options["state"] for options in power} == {"maintenance", "rebooted", "in_service"}
    assert [options for options in power if options.get("rollout") is not True] == []


def test_refuses_hosts_of_another_cluster_before_planning() -> None:
    world = Cluster(1, 1)
    with pytest.raises(CollectionError, match=r"^esx8, esx9: could not .*: cluster gpu has no such host; correct "):
        plan_hosts(world, replace(OPTIONS, hosts=["esx9", "esx1", "esx8"]))
    assert [module for module, _options in world.requests] == ["cluster_info"]
    assert plan_hosts(world, replace(OPTIONS, hosts=["esx1"]))["leaving"] == ["esx1"]


def test_image_plan_shows_change_reboots_and_reason() -> None:
    world = Cluster(1)
    plan = plan_hosts(world, IMAGE)
    assert plan["lines"] == [
        "the image of cluster gpu changes, base_image: 0 -> 2",
        "esx1: changes out of service, 2 reboots",
        "    because the image of its cluster is applied by vLCM (1 reboot)",
        "    because it differs",
    ]
    assert not world.site.image and plan["leaving"] == ["esx1"] and plan["changed"]
