"""A maintenance window under training: each host is empty before its change, and the job is judged after each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from plugins.module_utils.durable.calls import ModuleFailed
from plugins.module_utils.trials.evidence.verdict_input import verdict_input, with_left
from tests.fakes.deaths import Killed, histories
from tests.unit.simulation.host import Profile
from tests.unit.simulation.world import BROKEN, HOSTS, PROFILE, WINDOW, Window, changed

ALARM = "esx4: the alarm 'Host memory' is red"


def alarmed(world: Window) -> None:
    """A host that is not changed gets a red alarm."""
    world.site.alarms["esx4"] = world.site.clock


def test_changes_each_host_and_moves_each_worker_once() -> None:
    world = Window()
    facts = world.carry_out()
    assert world.outcome == "" and world.is_clean and world.is_in_service
    assert world.boots == dict.fromkeys(HOSTS, 1) and world.most_out == 1
    assert sorted(move["worker"] for move in facts.moves) == ["w1", "w2"]
    assert [change["host"] for change in facts.host_changes] == ["esx3", "esx1", "esx2"]
    assert all(0 < change["out_at"] < change["back_at"] and change["reboots"] == 1 for change in facts.host_changes)
    assert world.files["window"] == facts.host_changes


def test_end_after_a_kill_returns_the_host() -> None:
    for point in range(20, 250, 5):
        world = Window([point])
        with suppress(Killed):
            world.carry_out()
        earlier = world.boots
        world.ending = "The window was ended, as requested."

        world.carry_out()

        assert world.is_in_service and world.is_clean, point
        assert len(world.boots) <= len(earlier) + 1 and max(world.boots.values(), default=1) == 1, point


def test_judges_the_job_after_each_host() -> None:
    world = Window()
    world.carry_out()
    places = [place for place, line in enumerate(world.lines) if "was out of service for" in line]
    assert [world.lines[place + 1] for place in places] == ["reads the state of the job"] * 3


@pytest.mark.parametrize("last", ["esx3", "esx1", "esx2"])
def test_window_continues_after_its_job_has_finished(last: str) -> None:
    """Every host is changed; moves after the end of the job are made, but the verdict does not cover them."""
    world = Window(guest_checks=True)
    world.before[f"reboot {last}"] = lambda: world.ends("finished")
    facts = world.carry_out()
    assert world.outcome == "" and world.boots == dict.fromkeys(HOSTS, 1)
    assert sorted(move["worker"] for move in facts.moves) == ["w1", "w2"]
    judged = verdict_input(facts)
    alive = {"esx3": 0, "esx1": 1, "esx2": 2}[last]
    assert (judged["ended"], len(judged["moves"]), len(judged["facts"]["transport"])) == ("finished", alive, alive)
    assert world.calls["read_guests"] == alive and len(judged["facts"]["vsphere"]) == alive
    resumed = [key for key in world.keys if key.startswith("resumed")]
    assert (len(resumed), len(facts.looks)) == (alive, 2 + alive), "it waits for steps of a job that has ended"
    notes = with_left({"moved": "all", "notes": []}, facts)["notes"]
    assert len([note for note in notes if "after the end of the job, so it is not judged" in note]) == 2 - alive
    reported = [line for line in world.lines if "are changed without a verdict on their moves" in line]
    assert len(reported) == (last != "esx2")


def test_breach_returns_the_host_and_spares_the_others() -> None:
    world = Window()
    world.before["reboot esx1"] = lambda: world.verdict.update(BROKEN)
    facts = world.carry_out()
    assert world.boots == {"esx3": 1, "esx1": 1} and world.is_in_service
    assert [change["host"] for change in facts.host_changes] == ["esx3", "esx1"]
    assert "rank 1 lost 3 steps" in world.outcome and world.is_clean
    assert with_left({"moved": "all", "notes": []}, facts)["not_made"] == ["esx2: not changed"]


def test_breach_between_controllers_keeps_hosts_in_service() -> None:
    class Breaks(Window):
        """The job breaks with the first controller."""

        left_service: tuple[str, ...] = ()
        warm_before = True

        def carry_out(self) -> Any:
            if self.controllers == 1:
                self.verdict.update(BROKEN)
                self.left_service = tuple(key.split()[-1] for key in self.values if key.startswith("out of service"))
                # A controller that sees the job become warm knows its state.
                self.warm_before = "warm" in self.values
            return super().carry_out()

    for world, _facts in histories(Breaks, Window.to_the_end):
        if world.controllers == 2 and world.warm_before:
            assert sorted(world.boots) == sorted(world.left_service), "only the host at hand is finished"
        assert world.is_in_service and world.is_clean


@pytest.mark.parametrize("failing", ["maintenance", "esxi_profile", "rebooted", "in_service"])
def test_failed_change_ends_the_window_with_a_verdict(failing: str) -> None:
    def make(deaths: Iterable[int]) -> Window:
        world = Window(deaths)
        world.fails = {failing: "esx3: could not do it: the server said no."}
        return world

    for world, facts in histories(make, Window.to_the_end):
        assert "the server said no. Hosts in maintenance mode stay there" in world.outcome, world.outcome
        assert sum(world.boots.values()) == (1 if failing == "in_service" else 0) and world.is_clean
        assert not facts.moves and facts.judged is not None
        left = with_left({"moved": "all", "notes": []}, facts)["not_made"]
        assert left == ["esx1: not changed", "esx2: not changed", "esx3: its change is not complete"]
        assert ("The profile is active on esx3 already." in world.outcome) == (failing == "in_service")
        kept = [(one["host"], one["out_at"] > one["began"], one["back_at"]) for one in facts.host_changes]
        assert kept == ([] if failing == "maintenance" else [("esx3", True, None)])


def test_stop_rule_ends_the_window_between_hosts() -> None:
    world = Window()
    world.before["return esx3"] = lambda: alarmed(world)

    facts = world.carry_out()

    assert world.boots == {"esx3": 1} and not facts.moves and world.is_in_service and world.is_clean
    assert f"1 of 3 hosts are changed, 2 left (esx1, esx2): {ALARM}" in world.outcome


def test_names_workers_of_the_job_on_unresponsive_hosts() -> None:
    world = Window()
    silent = {"severity": "stop", "rule": "not_responding", "object": "esx1", "text": "esx1: it does not respond."}
    world.before["return esx3"] = lambda: world.answers.update(cluster_info={"stops": [silent]})

    world.carry_out()

    assert world.boots == {"esx3": 1} and "esx1: it does not respond; w1 of the job runs on it" in world.outcome


def test_shows_a_stop_rule_after_the_last_host() -> None:
    world = Window(window={**WINDOW, "hosts": ["esx3"]})
    world.before["return esx3"] = lambda: alarmed(world)

    world.carry_out()

    assert world.outcome == "" and any(line.startswith(f"after esx3 returned: {ALARM}") for line in world.lines)


@pytest.mark.parametrize(("accepted", "boots"), [([], 0), (["red_alarm"], 3)])
def test_stop_rule_keeps_hosts_in_service_unless_accepted(accepted: list[str], boots: int) -> None:
    world = Window(window={**WINDOW, "accepted": accepted})
    alarmed(world)
    facts = world.carry_out()
    assert sum(world.boots.values()) == boots and bool(facts.moves) == bool(boots) and world.is_in_service
    assert (ALARM in world.outcome) == (not boots) and world.is_clean


@pytest.mark.parametrize("go_on", [False, True])
def test_does_not_change_a_host_with_its_worker(go_on: bool) -> None:
    world = Window(go_on=go_on)
    refused = {"failed": True, "begun": False, "msg": "w1: could not move it: no slot"}
    changed(world, vmotion=lambda _options: refused).carry_out()
    assert world.boots == {"esx3": 1} and world.is_in_service
    assert "w1: could not move it: no slot" in world.outcome and world.is_clean


def test_hosts_leave_service_as_the_window_asks() -> None:
    world = Window(window={**WINDOW, "non_disruptive": True, "reboots": {"esx1": 1}, "max_out_of_service": 2})
    world.carry_out()
    requested = [options for _module, options in world.requests if options.get("state") == "maintenance"]
    assert requested and all(
        options["non_disruptive"] and options["maintenance_timeout"] == 900 for options in requested
    )
    rules = [options["max_out_of_service"] for _module, options in world.requests if "leaving" in options]
    assert set(rules) == {2}


def test_verdict_gets_hosts_checkpoints_and_caution() -> None:
    facts = verdict_input(Window(checkpoint_seconds=1800, site="SIMULATED: in the lab.").carry_out())["facts"]
    assert [(host["host"], host["back_at"] > host["out_at"]) for host in facts["hosts"]] == [
        ("esx3", True),
        ("esx1", True),
        ("esx2", True),
    ]
    assert (facts["checkpoint_s"], facts["site"]) == (1800, "SIMULATED: in the lab.")
    without = verdict_input(Window().carry_out())["facts"]
    assert (without["checkpoint_s"], without["site"]) == (None, None)


def test_replaced_window_leaves_its_host_to_the_next() -> None:
    def ended(world: Window) -> Any:
        try:
            return world.carry_out()
        except Killed:
            before, moves = world.writes_to_hosts, len(world.site.moves)
            world.ending, world.is_replaced = "The window ends here.", True
            facts = world.carry_out()
            assert (world.writes_to_hosts, len(world.site.moves)) == (before, moves), (
                "an ended window writes to no host"
            )
            return facts

    reached = 0
    for world, facts in histories(Window, ended):
        assert world.is_clean
        if world.ending and facts.waiting_hosts and world.outcome:
            reached += "The window ends here." in world.outcome
    assert reached > 50


def test_differing_hosts_fail_a_finished_window() -> None:
    world = Window()
    world.requested = {"hosts": ["esx2"], "profile": Profile(level=2).option}
    calls = list[dict[str, Any]]()

    def planned(module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        if options["profile"] != world.requested["profile"]:
            return Window.planned(world, module, options)
        calls.append(dict(options))
        differs = {"host": "esx2", "changed": True, "why": ["max_vfs is 4, not 8"]}
        return {"hosts": [differs, {"host": "esx1", "changed": False, "why": []}]}

    changed(world, planned=planned).carry_out()
    assert world.outcome == (
        "Cluster gpu: the window is over, but these hosts differ from the requested profile: "
        "esx2 (max_vfs is 4, not 8). Run again to change them."
    )
    assert calls == [{**world.requested, "host_profiles": {}, "hosts": HOSTS}]


def of_image(deaths: Iterable[int] = ()) -> Window:
    """Return a window of hosts that boot once for the image of the cluster and once for their profile."""
    world = Window(deaths, window={**WINDOW, "image": {"components": {"manager": "2"}, "accept_eula": True}})
    world.site.requested_image = 2
    return world


def test_sets_the_image_before_the_first_move() -> None:
    world = of_image()
    facts = world.carry_out()
    assert world.log.index("set the image") < world.log.index("vmotion")
    assert all(change["reboots"] == 2 for change in facts.host_changes)


def test_host_without_the_image_fails_a_finished_window() -> None:
    world = of_image()
    world.requested = {"hosts": HOSTS, "profile": PROFILE.option, "image": {"components": {"manager": "3"}}}
    world.carry_out()
    assert "differ from the requested profile: esx1 (the image of its cluster is applied by vLCM" in world.outcome


class Borrowing(Window):
    """A window of two full hosts beside esx3, the host of another cluster, whose lock is ``other_lock``."""

    def __init__(self, deaths: Iterable[int] = (), *, return_home: bool = True) -> None:
        spare = {"cluster": "more", "hosts": ["esx3"], "return_home": return_home}
        super().__init__(deaths, window={**WINDOW, "hosts": HOSTS[:2], "spare": spare})
        self.other_lock = ""

    def cluster_lock(self, options: Any) -> Any:
        if options["cluster"] != "more":
            return super().cluster_lock(options)
        if "more" in self.fails and options.get("state") != "free":
            return {"failed": True, "msg": self.fails["more"]}
        self.other_lock = "" if options.get("state") == "free" else self.run
        return {"state": {"run": self.run}}

    def vmotion_plan(self, options: Any) -> Any:
        planned = super().vmotion_plan(options)
        at = {**planned["at"], **{move["worker"]: move["target"] for move in planned["moves"]}}
        free = next(host for host in HOSTS[:2] if host not in at.values())
        away = [worker for worker, host in at.items() if host == "esx3"] if options["spare"]["return_home"] else []
        return {**planned, "returns": [{"worker": worker, "source": "esx3", "target": free} for worker in away]}


def test_window_brings_workers_back_from_another_cluster() -> None:
    for world, facts in histories(Borrowing, Window.to_the_end):
        assert world.outcome == "" and world.is_clean and not world.other_lock
        assert world.boots == dict.fromkeys(HOSTS[:2], 1) and sorted(world.site.workers.values()) == HOSTS[:2]
        assert len(world.site.moves) == 3 == len(facts.moves)


def test_workers_stay_on_spare_hosts_on_request() -> None:
    world = Borrowing(return_home=False)

    world.to_the_end()

    assert world.outcome == "" and "esx3" in world.site.workers.values() and len(world.site.moves) == 2


def test_window_without_the_other_lock_changes_nothing() -> None:
    world = Borrowing()
    world.fails = {"more": "more: alice@desk holds its lock"}

    with pytest.raises(ModuleFailed, match="alice@desk"):
        world.carry_out()

    assert world.is_clean and not world.boots and not world.site.moves
