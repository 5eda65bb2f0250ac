"""The attacks are judged too: what is wrong must be seen, and a round must be the same again by its seed."""

from __future__ import annotations

import argparse
import random
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.attack import ends, rounds
from tests.attack.__main__ import WHOLE, counts, one, scenario_of
from tests.attack.__main__ import shown as passed_on
from tests.attack.controller import Ended, Kill, drawn_kill
from tests.attack.plays import PLAYS, messages, raised
from tests.attack.rounds import FAULT, KILL, Round, Undisturbed, attack, is_sentence
from tests.attack.scenarios import SCENARIOS

GOOD = "esx01.lab: could not change lock: the connection broke; run again"
ADVICE = "gpu: could not open a draft: one is open; discard it"
WELL = {"module": "m", "rc": 0, "msg": ""}
PEACE = Undisturbed(Counter(["a = 1", "b = 2"]), calls=40, seconds=1.5)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (GOOD, True),
        ("esx01.lab went wrong", False),
        (f"{GOOD}: could not do it", False),
        (f"{GOOD}\nTraceback (most recent call last):", False),
        (f"{GOOD} (vmodl.fault.SystemError) {{}}", False),
        (f"{GOOD} KeyError('value')", False),
        (f"{GOOD} Zq7vKx4mTw9hRb2n", False),
        ("gpu: 1 finding stops the preparation of its hosts: esx01: it has no GPU.", True),
        ("gpu: 2 findings stop the preparation of its hosts: a: could not read it: gone. b: could not see.", True),
        ("gpu: 1 finding stops the preparation of its hosts: a: could not read it: a: could not see it: gone.", False),
        ("gpu: 1 finding stops the preparation of its hosts: Traceback", False),
    ],
)
def test_recognizes_a_sentence(text: str, good: bool) -> None:
    assert is_sentence(text) is good


class Server:
    """Stands for the simulator."""

    def __init__(self) -> None:
        self.faults: list[dict[str, Any]] = []

    def clear(self) -> None: ...

    def heal(self) -> None:
        self.faults.clear()

    def fault(self, method: str, kind: str, **more: Any) -> None:
        self.faults.append({"method": method, "kind": kind, "hits": 1, **more})

    def ask(self, _verb: str, _path: str) -> list[dict[str, Any]]:
        return self.faults


class Place:
    """A ground on which the first run ends so, and the second so."""

    def __init__(
        self, first: Ended, second: Ended | None = None, end: str = "b = 2", left: str = "", third: Ended | None = None
    ) -> None:
        self.vcenter, self.harmed = Server(), list[tuple[Any, int]]()
        self.ended = [first, second or Ended([WELL]), third or Ended([WELL])]
        self.first, self._end, self._left = first, end, left

    def prepare(self) -> None: ...

    def close(self) -> None: ...

    def run(self, kill: Kill | None = None, timeout: int = 60) -> Ended:
        self.harmed.append((kill or [dict(one) for one in self.vcenter.faults], timeout))
        return self.ended.pop(0)

    def follow(self, advice: str) -> bool:
        return advice == ADVICE

    def end(self) -> Counter[str]:
        return Counter(["a = 1", self._end])

    def left_to_do(self) -> list[str]:
        return [self._left] if self._left else []


def held(place: Any, kind: str = KILL, seed: int = 1, number: int = 0) -> Round:
    return attack((kind, number, "a scenario"), lambda _folder: place, seed, PEACE)


FAILED = {"module": "m", "rc": 1, "msg": GOOD}
ADVISED = {**FAILED, "msg": ADVICE}
DEAD = Ended(killed=True)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place(DEAD), ""),
        (Place(Ended([WELL])), ""),
        (Place(Ended(raised="Traceback: x")), "it ended in a traceback:\nTraceback: x"),
        (Place(Ended(hung=True, seconds=120.0)), "it hung for 120 s"),
        (Place(DEAD, Ended([FAILED])), f"the next run failed: {GOOD}"),
        (Place(DEAD, Ended([{**FAILED, "msg": "KeyError"}])), "the next run: no sentence: KeyError"),
        (Place(DEAD, Ended(raised="Traceback")), "the next run: it ended in a traceback:\nTraceback"),
        (Place(DEAD, Ended()), "the next run: it ended without a word"),
        (Place(DEAD, Ended([ADVISED]), third=Ended([WELL])), ""),
        (Place(DEAD, Ended([ADVISED]), third=Ended([FAILED])), f"the next run failed: {GOOD}"),
        (Place(DEAD, end="b = 3"), "the end lacks b = 2"),
        (Place(DEAD, left="the lock is not free"), "the lock is not free"),
    ],
)
def test_finds_each_violation(place: Place, expected: str) -> None:
    found = held(place)
    assert found.wrong[:1] == ((expected,) if expected else ())
    assert found.hit is place.first.killed


def test_same_seed_repeats_a_round_and_another_differs() -> None:
    def harms(seed: int) -> list[str]:
        return [held(Place(DEAD), kind, seed, number).harm for kind in (KILL, FAULT) for number in range(20)]

    assert harms(1) == harms(1)
    assert harms(1) != harms(2)
    assert len(set(harms(1))) > 30


def test_next_run_has_no_fault_and_enough_time() -> None:
    for number in range(40):
        place = Place(Ended([FAILED]))
        assert held(place, FAULT, number=number).wrong == ()
        (struck, timeout), again = place.harmed
        assert len(struck) == 1 and struck[0]["method"] == "*" and 0 <= struck[0]["skip"] < PEACE.calls
        assert timeout == (rounds.SHORT if struck[0]["kind"] == "silent" else 60)
        assert again == ([], 60)


def test_draws_kills_at_every_call_and_any_time() -> None:
    drawn = [drawn_kill(random.Random(number), 5, 2.0) for number in range(400)]
    assert {one.call for one in drawn} == {0, 1, 2, 3, 4, 5}
    assert {one.moment for one in drawn if one.call} == {"sent", "answered"}
    assert all(0 < one.seconds < 2 for one in drawn if not one.call)


def test_every_module_and_playbook_is_attacked() -> None:
    many = [scenario_of(number).name for number in range(WHOLE * len(PLAYS))]
    assert set(many) == {one.name for one in (*SCENARIOS, *PLAYS)}
    assert many[WHOLE - 1 :: WHOLE] == [one.name for one in PLAYS]


def test_each_module_that_asks_vcenter_is_attacked() -> None:
    modules = (Path(__file__).parents[2] / "plugins" / "modules").glob("*.py")
    asking = {path.stem for path in modules if "session.session(" in path.read_text()}
    attacked = {step.module for one in SCENARIOS for step in (*one.before, *one.steps)}
    # The playbooks vmotion_test.yml and window.yml, which are attacked, run these.
    of_playbooks = {"maintenance_window", "vmotion_plan", "vmotion_info"}
    assert asking - attacked == of_playbooks


def test_each_playbook_that_asks_vcenter_is_attacked() -> None:
    playbooks = (Path(__file__).parents[2] / "playbooks").glob("*.yml")
    asking = {path.stem for path in playbooks if "vsphere_connection" in path.read_text()}
    of_jobs = {"observe", "scaling", "train"}  # the job of vmotion_test.yml is attacked
    of_modules = {"conformance"}  # each of its modules is attacked
    lacking = sorted(asking - {play.playbook for play in PLAYS} - of_jobs - of_modules)
    assert [f"add a Play for {name}.yml to PLAYS of tests/attack/plays.py" for name in lacking] == []


def test_finds_playbook_messages_and_tracebacks() -> None:
    out = f"TASK [x]\nfatal: [gpu]: FAILED! =>\n    changed: false\n    msg: '{GOOD}'\n\nPLAY RECAP\n"
    assert [one["msg"] for one in messages(out, 2, killed=False)] == [GOOD]
    assert messages(out, -9, killed=True) == []
    assert [one["rc"] for one in messages("all well", 0, killed=False)] == [0]
    assert [one["msg"] for one in messages("ERROR! no such file", 4, killed=False)] == ["ERROR! no such file"]
    assert raised(out) == ""
    assert raised("x\nTraceback (most recent call last):\n  y").startswith("Traceback")


def test_the_closing_line_counts_all() -> None:
    some: list[Round | str] = [
        Round(0, "a", KILL, "kill -9 after 1 s", True, ()),
        Round(0, "a", FAULT, "drop at call 3", True, ("wrong",)),
        Round(1, "b", FAULT, "slow 0.5 at call 3", False, ()),
        "kill:1 b could not be held",
    ]
    assert counts(some, 12.3) == (
        "1 kills (1 during a run), 2 faults (drop 1) on 2 scenarios in 12 s: 1 went wrong, 1 could not be held"
    )


def test_starts_and_counts_no_round_after_the_deadline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = one(1, tmp_path, time.monotonic(), (KILL, 0))
    assert late is None
    held, lost = Round(0, "a", KILL, "kill -9 after 1 s", True, ()), "kill:1 b could not be held"
    arguments = argparse.Namespace(verbose=False)
    assert list(passed_on([held, late, lost, late], arguments, 4)) == [held, lost]
    assert capsys.readouterr().out == f"{lost}\n"


OVERRIDE = """
<r xmlns="urn:vim25"><returnval><obj type="ClusterComputeResource">domain-c7</obj>
<propSet><name>drs</name><val><vm><key type="VirtualMachine">{}</key><behavior>manual</behavior></vm></val></propSet>
</returnval></r>
"""


def test_matches_objects_by_name_regardless_of_id() -> None:
    def messages_about(key: str) -> list[str]:
        names = {"domain-c7": "ClusterComputeResource gpu", key: "VirtualMachine worker01"}
        return list(ends.lines(ET.fromstring(OVERRIDE.format(key)), names))

    assert messages_about("vm-72") == messages_about("vm-84")
    assert messages_about("vm-72") == ["ClusterComputeResource gpu/drs/vm[VirtualMachine worker01]/behavior = manual"]
