"""A test that ended early, or whose vCenter's clock was set, reports no more than it knows of its moves."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from typing import Any, cast

import pytest

from plugins.module_utils.continuity.judged_facts import Move
from plugins.module_utils.continuity.verdict import verdict
from plugins.module_utils.errors import Refused
from plugins.module_utils.pages.verdict_files import junit_report
from plugins.module_utils.trials.evidence import verdict_input as module
from plugins.module_utils.trials.evidence.facts import Facts
from plugins.module_utils.trials.evidence.verdict_input import check_limits, title, verdict_input, with_left
from plugins.module_utils.trials.programs.test import idle_worker
from tests.unit.plugins.module_utils.continuity import runs
from tests.unit.simulation.world import SETTINGS, World

LEFT = ({"worker": "w2", "source": "esx2", "target": "esx3"},)


def ended(*, is_over: bool = True, left: Any = LEFT, window: Any = None) -> Facts:
    return Facts({"window": window or {}}, left=list(left), is_over=is_over)


@pytest.mark.parametrize(("moved", "after"), [("all", "some"), ("some", "some"), ("none", "none")])
def test_a_planned_move_that_was_not_made_counts(moved: str, after: str) -> None:
    result = with_left({"moved": moved}, ended())
    assert result == {"moved": after, "not_made": ["w2: esx2 -> esx3: not made"]}


def test_a_host_that_was_not_changed_counts() -> None:
    result = with_left({"moved": "all"}, ended(left=[], window={"hosts": ["esx1"]}))
    assert result == {"moved": "some", "not_made": ["esx1: not changed"]}


@pytest.mark.parametrize("facts", [ended(left=[]), ended(is_over=False)])
def test_a_running_or_complete_test_keeps_its_verdict(facts: Facts) -> None:
    assert with_left({"moved": "all"}, facts) == {"moved": "all"}


def test_junit_has_an_error_for_each_missing_move() -> None:
    judged = {"verdict": "continuous", "breaches": [], "unproven": [], "moves": [], "not_made": ["w2: not made"]}
    suite = ET.fromstring(junit_report("test", judged, []))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "1")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "vMotion test of gpu"),
        ({"observe": True}, "Observation of gpu"),
        ({"window": {"hosts": ["esx1"]}}, "Maintenance of gpu during training"),
    ],
)
def test_page_title_names_the_kind_of_test(settings: Any, expected: str) -> None:
    assert title(Facts({"cluster": "gpu", **settings})) == expected


@pytest.mark.parametrize(
    ("limits", "seconds"), [({}, 120.0), ({"resume_deadline_s": "30"}, 30.0), ({"resume_deadline_s": "inf"}, 86_400.0)]
)
def test_waits_use_the_deadline_of_the_verdict(limits: Any, seconds: float) -> None:
    assert Facts({"cluster": "gpu", "limits": limits}).resume_deadline_s == seconds


@pytest.mark.parametrize("limits", [{"warmup_steps": "nan"}, {"max_gap_s": -1}, {"phases": {"eval": "soon"}}])
def test_refuses_invalid_limits_before_the_first_move(limits: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="could not judge a test with them"):
        check_limits(limits)


@pytest.mark.parametrize(
    ("guests", "ranks", "reported", "idle"),
    [
        ({"w1": [0], "w2": [1]}, {"W1": [0], "w2.lab": [1]}, {"W1": [0], "w2.lab": [1], "w3": []}, "w3"),
        ({"w1": [0], "trainer": [1]}, {"W1": [0], "trainer": [1]}, {"W1": [0]}, ""),
        ({}, {}, {"W1": [], "w2.lab": [], "w3": []}, "W1"),
    ],
)
def test_matches_ranks_to_vms_with_any_guest_names(
    guests: dict[str, list[int]], ranks: dict[str, list[int]], reported: dict[str, list[int]], idle: str
) -> None:
    facts = Facts({**SETTINGS, "canary": "auto"}, at=dict.fromkeys(("W1", "w2.lab", "w3"), "esx1"))
    facts.warm = {"hosts": guests}
    assert facts.ranks == ranks
    assert verdict_input(facts)["facts"]["ranks"] == reported
    assert idle_worker(facts) == idle


@pytest.mark.parametrize("machine", ["Worker01", "worker01.example.org", "WORKER01"])
@pytest.mark.parametrize("guest", ["worker01", "Worker01.lab"])
def test_reset_is_a_breach_despite_different_guest_spelling(machine: str, guest: str) -> None:
    """From the facts to the verdict: once, the observer found no ranks on the machine."""
    reset = {"worker": machine, "at": runs.SEEN + 50, "by": "eve", "what": "VmResettingEvent"}
    named: Any = {"cluster": "gpu", "limits": {}, "warmup_steps": 0, "require": []}
    facts = Facts(named, at={machine: "esx1", "w2": "esx2"}, power=[reset])
    facts.warm, facts.job_now = {"hosts": {guest: [0], "w2": [1]}}, {"state": "running"}
    case = verdict_input(facts)
    made = [{**one, "host": guest if one["rank"] == 0 else "w2"} for one in runs.records(ranks=2)]
    found = verdict(made, case.pop("moves"), case.pop("limits"), **case)
    assert (case["facts"]["ranks"], runs.kinds(found)) == ({machine: [0], "w2": [1]}, {"power_cycle"})


SENTENCE = "vsphere: vCenter's clock was set by {} s: its events may be missing, or have the wrong time"


class Server(World):
    """A cluster whose server has a clock that is set at some reading, and whose DRS moves workers."""

    def __init__(self, jump: float, at_reading: int, seed: int = 0, **settings: Any) -> None:
        self.offset, self.jump, self.at_reading, self.readings = 0.0, jump, at_reading, 0
        self.chance = random.Random(seed)
        super().__init__((), rounds=3, **settings)

    def _read_clock(self) -> float:
        self.readings += 1
        if self.readings == self.at_reading:
            self.offset += self.jump
        return self.offset

    def vmotion_plan(self, options: dict[str, Any]) -> dict[str, Any]:
        return {**super().vmotion_plan(options), "clock_offset_s": self._read_clock()}

    def vmotion(self, options: dict[str, Any]) -> dict[str, Any]:
        before = self._read_clock()
        done = super().vmotion(options)
        if "move" in done:
            done["move"].update(clock_offset_s=before, clock_set_s=self._read_clock() - before)
        return done

    def vmotion_info(self, options: dict[str, Any]) -> dict[str, Any]:
        worker = self.chance.choice(["w1", "w2"])
        if self.chance.random() < 0.5:
            move = self.site.move(worker, self.chance.choice(["esx1", "esx2", "esx3"]), "drs")
            move.update(completed=self.site.clock, ok=True)
        return {**super().vmotion_info(options), "clock_offset_s": self._read_clock()}


def judged(facts: Any) -> dict[str, Any]:
    """Return the verdict on a run without a harm, with the facts of a test on the server's clock."""
    moves = [runs.move(30, 40)]
    facts = {**runs.facts(moves), "server_clock_set_s": verdict_input(facts)["facts"]["server_clock_set_s"]}
    return verdict(runs.records(), moves, {"resume_deadline_s": 20}, ended="running", facts=facts)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("jump", [60.0, -60.0, 3600.0, -86_400.0])
def test_setting_the_server_clock_makes_tests_inconclusive(jump: float, seed: int) -> None:
    world = Server(jump, random.Random(seed).randint(2, 4), seed)
    facts = world.carry_out()
    found = judged(facts)
    assert (found["verdict"], found["unproven"]) == ("inconclusive", [SENTENCE.format(f"{abs(jump):.0f}")])
    assert world.is_clean
    own = [move["chain"] for move in facts.moves if move.get("chain")]
    assert len(own) == len(set(own)), "no move is claimed twice"
    assert {move["chain"] for move in facts.others}.isdisjoint(own), "a move of the test is not one of others"


@pytest.mark.parametrize("jump", [0.0, 0.4, -0.4])
def test_a_remeasured_offset_changes_nothing(jump: float) -> None:
    assert judged(Server(jump, 3).carry_out())["verdict"] == "continuous"


def test_readings_without_offsets_show_no_set_clock() -> None:
    assert judged(World().carry_out())["verdict"] == "continuous"


@pytest.mark.parametrize(("jump", "is_known"), [(0.0, True), (-900.0, False)])
def test_an_undatable_power_event_is_not_a_breach(jump: float, is_known: bool) -> None:
    """A worker that was powered on before the test seems to have been so within it if the clock was set back."""
    facts = Server(jump, 3).carry_out()
    facts.power = [{"worker": "w1", "at": runs.SEEN + 50, "by": "eve", "what": "VmPoweredOnEvent"}]
    assert verdict_input(facts)["facts"]["power"] == (facts.power if is_known else None)


def test_a_refused_move_counts_after_jobs_end() -> None:
    refused = {"worker": "w1", "source": "e1", "target": "e2", "ok": False, "started": None, "completed": None}
    made = {"worker": "w2", "source": "e2", "target": "e1", "ok": True, "started": 10.0, "completed": 20.0}
    late = {**made, "worker": "w3", "started": 90.0, "completed": 110.0}
    moves = [{**move, "looks": looks} for looks, move in enumerate((refused, made, late), start=2)]
    facts = Facts({**SETTINGS, "window": {"hosts": []}}, moves=cast("list[Move]", moves), is_over=True)
    facts.job_now = {"state": "finished", "ended": 100.0}
    case = verdict_input(facts)
    assert [move["worker"] for move in case["moves"]] == ["w1", "w2"]
    judged = with_left(verdict([], case["moves"], {}, ended="finished", facts=case["facts"]), facts)
    assert judged["moved"] == "some"
    assert [note for note in judged["notes"] if "after the end" in note] == [
        "w3: e2 -> e1: after the end of the job, so it is not judged"
    ]


def test_transports_belong_to_the_judged_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    late = {"worker": "w1", "source": "e1", "target": "e2", "ok": False, "started": 90.0, "completed": None}
    made = {"worker": "w2", "source": "e2", "target": "e1", "ok": True, "started": 10.0, "completed": 20.0}
    moves = [{**move, "looks": 2} for move in (late, made)]
    facts = Facts({**SETTINGS, "window": {"hosts": []}}, moves=cast("list[Move]", moves))
    facts.job_now = {"state": "finished", "ended": 100.0}
    of_moves = [{"before": {"e1": "tcp"}}, {"before": {"e2": "rdma"}}]
    monkeypatch.setattr(module, "transports", lambda _facts: {"of_moves": of_moves})
    assert verdict_input(facts)["facts"]["transport"] == [{"before": {"e2": "rdma"}}]
