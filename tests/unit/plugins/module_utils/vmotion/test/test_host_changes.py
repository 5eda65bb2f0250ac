# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A maintenance window under training: each host is empty before its change, and returns to service in any case."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from plugins.module_utils.vmotion.plan.window import HostSlots, plan_window
from plugins.module_utils.vmotion.test.judging import verdict_input, with_left
from plugins.module_utils.vmotion.test.next_step import state_of
from plugins.module_utils.vmotion.test.outcome import outcome
from plugins.module_utils.vmotion.test.steps.moves_plan import plan_call, plan_lines
from tests.fakes.trial import Killed, World

HOSTS = ["esx1", "esx2", "esx3"]
WINDOW = {"hosts": HOSTS, "profile": {"kernel_modules": []}, "maintenance_timeout": 900, "reboot_timeout": 1200}
REFUSED = {"failed": True, "msg": "esx3: could not do it: the server said no."}
BROKEN = {"verdict": "broken", "breaches": [{"detail": "rank 1 lost 3 steps"}]}


class Window(World):
    """Hosts whose profile differs, and is active after a reboot; an empty host is the spare one."""

    def __init__(self, **settings: Any) -> None:
        self.service = dict.fromkeys(HOSTS, "in_service")
        self.profile = dict.fromkeys(HOSTS, "old")
        self.boots: Counter[str] = Counter()
        self.breaks_at = self.ends_at = self.dies_at_boot_of = self.refuses = ""
        super().__init__(**{"window": WINDOW, **settings})

    def vmotion_plan(self, options: dict[str, Any]) -> dict[str, Any]:
        assert set(options["empty_hosts"]) <= {host for host in HOSTS if self.profile[host] != "active"}
        serving = [host for host in HOSTS if self.service[host] == "in_service"]
        plan = plan_window(HostSlots(dict.fromkeys(HOSTS, 1), {}, serving), self.at, options["empty_hosts"])
        stages = [{"host": change.host, "moves": [move._asdict() for move in change.moves]} for change in plan]
        told = {"not_applicable": {}, "rdma": {}, "profile": "", "slots": {}, "at": dict(self.at)}
        return {"stages": stages, "moves": [move for stage in stages for move in stage["moves"]], **told}

    def esxi_power(self, options: dict[str, Any]) -> dict[str, Any]:
        assert self.lock == self.own, "a host changes without the lock"
        (host,) = options["hosts"]
        if self.refuses == options["state"]:
            return dict(REFUSED)
        if options["state"] == "rebooted":
            return self._reboot(host)
        if options["state"] == "maintenance":
            assert options.get("non_disruptive") == self.settings["window"].get("non_disruptive")
            assert host not in self.at.values(), "a host with a worker leaves service"
            assert [name for name in HOSTS if self.service[name] != "in_service"] in ([], [host])
        self.service[host] = options["state"]
        return {}

    def _reboot(self, host: str) -> dict[str, Any]:
        assert self.service[host] == "maintenance"
        self.boots[host] += 1
        self.profile[host] = "active"
        if self.dies_at_boot_of == host:
            self.dies_at_boot_of = ""
            raise Killed(host)
        if self.ends_at == host:
            self.job, self.ended = "finished", self.now
        if self.breaks_at == host:
            self.verdict.update(BROKEN)
        return {}

    def esxi_profile(self, options: dict[str, Any]) -> dict[str, Any]:
        (host,) = options["hosts"]
        assert self.service[host] == "maintenance" and options["profile"] == WINDOW["profile"]
        if self.refuses == "profile":
            return dict(REFUSED)
        before = self.profile[host]
        self.profile[host] = "written" if before == "old" else before
        needs = ["reboot"] if self.profile[host] == "written" else []
        return {"changed": before == "old", "needs": needs, "hosts": [{"host": host, "why": ["it needs a boot"]}]}


def test_every_host_is_changed_and_booted_once_and_each_worker_moves_once() -> None:
    world = Window()
    state = world.carry_out()
    assert outcome(state, "/test") == ""
    assert world.boots == Counter(HOSTS) and set(world.profile.values()) == {"active"}
    assert set(world.service.values()) == {"in_service"}
    assert sorted(move["worker"] for move in state.moves) == ["w1", "w2"]
    assert [change.host for change in state.host_changes] == ["esx3", "esx1", "esx2"]
    assert all(0 < change.out_at < change.back_at and change.reboots == 1 for change in state.host_changes)
    assert not world.overridden and not world.watched and not world.lock


def test_a_host_enters_maintenance_mode_as_the_window_asks() -> None:
    assert outcome(Window(window={**WINDOW, "non_disruptive": True}).carry_out(), "/test") == ""


def test_the_plan_is_that_of_an_evacuation_as_the_window_asks() -> None:
    """So a vCenter that lacks this mode refuses the plan, and no worker has moved."""
    settings = {"cluster": "gpu", "one_per_host": True, "window": {**WINDOW, "non_disruptive": True}}
    assert plan_call(settings).options["non_disruptive"] is True
    assert "non_disruptive" not in plan_call({**settings, "window": WINDOW}).options


@pytest.mark.parametrize("last", ["esx3", "esx1", "esx2"])
def test_a_window_goes_on_after_the_end_of_its_job(last: str) -> None:
    """Every host is changed; moves that the job did not live to see are made, but the verdict does not cover them."""
    world = Window(guest_checks=True)
    world.ends_at = last
    state = world.carry_out()
    assert outcome(state, "/test") == ""
    assert world.boots == Counter(HOSTS) and sorted(move["worker"] for move in state.moves) == ["w1", "w2"]
    judged = verdict_input(state)
    alive = {"esx3": 0, "esx1": 1, "esx2": 2}[last]
    assert (judged["ended"], len(judged["moves"]), len(judged["facts"]["transport"])) == ("finished", alive, alive)
    assert world.calls["training_guest_info"] == alive and len(judged["facts"]["vsphere"]) == alive
    kinds = [entry["entry"] for entry in world.journal]
    assert (kinds.count("advance"), kinds.count("look")) == (alive, 2 + alive), (
        "it waits for steps of a job that has ended"
    )
    notes = with_left({"moved": "all", "notes": []}, state)["notes"]
    assert len([note for note in notes if "after the end of the job, so it is not judged" in note]) == 2 - alive


def entries_of_a_window() -> range:
    world = Window()
    world.carry_out()
    return range(3, len(world.journal))


@pytest.mark.parametrize("entries", entries_of_a_window())
def test_a_window_that_is_killed_after_any_entry_goes_on(entries: int) -> None:
    world = Window()
    with pytest.raises(Killed):
        world.carry_out(entries)
    state = world.carry_out()
    assert outcome(state, "/test") == ""
    assert world.boots == Counter(HOSTS), "each host was booted once"
    assert [one["worker"] for one in world.chains] == ["w1", "w2"], "each worker was moved once"
    assert set(world.service.values()) == {"in_service"} and not world.lock


def test_a_controller_that_is_killed_in_a_reboot_does_not_reboot_the_host_again() -> None:
    world = Window()
    world.dies_at_boot_of = "esx1"
    with pytest.raises(Killed):
        world.carry_out()
    assert outcome(world.carry_out(), "/test") == ""
    assert world.boots == Counter(HOSTS)


def test_after_a_breach_the_host_at_hand_returns_to_service_and_no_other_is_changed() -> None:
    world = Window()
    world.breaks_at = "esx1"
    state = world.carry_out()
    assert world.boots == Counter(["esx3", "esx1"]) and set(world.service.values()) == {"in_service"}
    assert [change.host for change in state.host_changes] == ["esx3", "esx1"]
    assert "rank 1 lost 3 steps" in outcome(state, "/test") and not world.lock


@pytest.mark.parametrize("step", ["maintenance", "profile", "rebooted", "in_service"])
def test_a_host_step_that_fails_ends_the_window_with_its_reason(step: str) -> None:
    world = Window()
    world.refuses = step
    state = world.carry_out()
    assert "the server said no; esx3 keeps its state, and the next run continues with it" in outcome(state, "/test")
    assert sum(world.boots.values()) == (1 if step == "in_service" else 0) and not world.lock and not world.overridden
    assert not state.moves


def test_a_profile_that_stays_inactive_is_a_failure_with_its_reason() -> None:
    class Deaf(Window):
        def _reboot(self, host: str) -> dict[str, Any]:
            self.boots[host] += 1
            return {}

    world = Deaf()
    state = world.carry_out()
    assert "esx3: could not activate its profile: it needs a boot" in outcome(state, "/test")
    assert world.boots["esx3"] <= 6


def test_the_job_is_judged_after_each_host_before_anything_else_begins() -> None:
    world = Window()
    world.carry_out()
    kinds = [str(entry["entry"]) for entry in world.journal]
    backs = [index for index, kind in enumerate(kinds) if kind == "host_back"]
    after = [next(kind for kind in kinds[index:] if kind in ("judge", "plan", "host_enter", "over")) for index in backs]
    assert after == ["judge"] * len(HOSTS)


@pytest.mark.parametrize("go_on", [False, True])
def test_a_host_whose_worker_did_not_move_is_not_changed(go_on: bool) -> None:
    class Stuck(Window):
        def vmotion(self, options: dict[str, Any]) -> dict[str, Any]:
            return {"failed": True, "begun": False, "msg": f"{options['worker']}: could not move it: no slot"}

    world = Stuck(go_on=go_on)
    state = world.carry_out()
    assert world.boots == Counter(["esx3"]) and set(world.service.values()) == {"in_service"}
    assert "w1: could not move it: no slot" in outcome(state, "/test") and not world.lock


def test_the_plan_names_the_hosts_and_their_moves() -> None:
    lines = plan_lines(Window().vmotion_plan({"empty_hosts": HOSTS}))
    assert lines[0] == "1. esx3 is changed, no worker runs on it"
    assert lines[1] == "2. esx1 is changed" and "w1" in lines[2] and "esx3" in lines[2]


def test_the_verdict_gets_the_hosts_that_were_or_are_out_of_service_and_the_checkpoints_of_the_job() -> None:
    world = Window(checkpoint_seconds=1800)
    world.dies_at_boot_of = "esx1"
    with pytest.raises(Killed):
        world.carry_out()
    facts = verdict_input(state_of(world.journal))["facts"]
    assert [(host["host"], host["back_at"] is None) for host in facts["hosts"]] == [("esx3", False), ("esx1", True)]
    assert facts["checkpoint_s"] == 1800
    assert verdict_input(Window().carry_out())["facts"]["checkpoint_s"] is None


def test_the_verdict_gets_the_caution_about_the_site() -> None:
    caution = "SIMULATED: in the lab."
    assert verdict_input(Window(site=caution).carry_out())["facts"]["site"] == caution
    assert verdict_input(Window().carry_out())["facts"]["site"] is None
