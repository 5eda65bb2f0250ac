"""One round: a scenario is killed or struck by a fault, healed, run again, and must end as if nothing had happened."""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.simulator import PASSWORD
from tests.attack import ends
from tests.attack.controller import Ended, drawn_kill
from tests.attack.ground import Ground

KILL, FAULT = "kill", "fault"
# A server that never answers is waited for no longer than this.
SHORT, LONG = 2, 60
VIM_FAULTS = ("HostConnectFault", "HostCommunication", "InvalidState", "NoPermission", "SystemError", "NotFound")
FAULTS: dict[str, tuple[dict[str, Any], ...]] = {
    "drop": ({}, {"after": True}),
    "expire_session": ({},),
    "deaf": ({},),
    "slow": ({"seconds": 0.5},),
    "fault": tuple({"fault": one, "message": "Injected."} for one in VIM_FAULTS),
    "task_fails": tuple({"fault": one, "message": "Injected."} for one in VIM_FAULTS),
    "status": ({"status": 503}, {"status": 502}, {"status": 404}, {"status": 500}),
    "half": ({},),
    "silent": ({},),
}
# The words of programs and not of people.
RAW = re.compile(r"Traceback|\((?:vim|vmodl)\.|<class |object at 0x|Error\(|Exception")
VERDICT = re.compile(r"[^:]+: (?P<findings>\d+) findings? stops? the preparation of its hosts: ")
MOST_SHOWN = 20
Make = Callable[[Path], Ground]


@dataclass(frozen=True)
class Undisturbed:
    """How a scenario ends in peace, how much it takes, and the methods with which it writes, call by call."""

    end: Counter[str]
    calls: int
    seconds: float
    writes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Round:
    """The attack on a scenario, whether the scenario was at work then, and all that was wrong afterwards."""

    number: int
    scenario: str
    kind: str
    harm: str
    hit: bool
    wrong: tuple[str, ...]

    @property
    def line(self) -> str:
        return f"{self.kind}:{self.number} {self.scenario}: {self.harm}"


@contextmanager
def held(make: Make) -> Iterator[Ground]:
    """A ground that is prepared, and ends with the round."""
    with tempfile.TemporaryDirectory(prefix="dml-attack-") as folder:
        made = make(Path(folder))
        try:
            made.prepare()
            made.vcenter.clear()
            yield made
        finally:
            made.close()


def undisturbed(make: Make) -> Undisturbed:
    """Run a scenario in peace."""
    with held(make) as made:
        done = made.run()
        calls, writes = sum(made.vcenter.calls().values()), [str(one["method"]) for one in made.vcenter.writes()]
        if wrong := [*wrong_after(done, killed=False), *done.failures, *made.left_to_do()]:
            raise RuntimeError(f"it fails undisturbed: {wrong}")
        return Undisturbed(made.end(), max(1, calls), done.seconds, tuple(writes))


def attack(which: tuple[str, int, str], make: Make, seed: int, peace: Undisturbed) -> Round:
    """One round, which is drawn by its kind, its number and the seed alone."""
    kind, number, name = which
    chance = random.Random(f"{seed}/{kind}/{number}")
    with held(make) as made:
        if kind == KILL:
            kill = drawn_kill(chance, peace.calls, peace.seconds)
            harm, first = str(kill), made.run(kill=kill)
            hit = first.killed
        else:
            harm, first, hit = _struck(made, chance, peace)
        wrong = _judged(made, first, peace, killed=kind == KILL)
    return Round(number, name, kind, harm, hit, tuple(wrong))


def struck(make: Make, method: str, skip: int, kind: str, peace: Undisturbed, **more: Any) -> list[str]:
    """Return what is wrong after a fault in one call of a method."""
    with held(make) as made:
        made.vcenter.fault(method, kind, skip=skip, count=1, **more)
        return _judged(made, made.run(), peace, killed=False)


def _judged(made: Ground, first: Ended, peace: Undisturbed, *, killed: bool) -> list[str]:
    """Return what is wrong with the end of an attacked run, and with that of the next one."""
    wrong = wrong_after(first, killed=killed)
    made.vcenter.heal()
    if first.messages and not (first.killed or first.hung or first.failures):
        different = ends.differences(peace.end, made.end())
        wrong += [f"all was well in its words, and the end {one}" for one in different[:MOST_SHOWN]]
    return wrong + _healed(made, peace)


def _struck(made: Ground, chance: random.Random, peace: Undisturbed) -> tuple[str, Ended, bool]:
    kind = chance.choice(sorted(FAULTS))
    more = chance.choice(FAULTS[kind])
    skip = chance.randrange(peace.calls)
    made.vcenter.fault("*", kind, skip=skip, count=1, **more)
    ended = made.run(timeout=SHORT if kind == "silent" else LONG)
    hits = sum(one["hits"] for one in made.vcenter.ask("GET", "/faults"))
    return " ".join([kind, *map(str, more.values()), f"at call {skip + 1}"]), ended, bool(hits)


def wrong_after(ended: Ended, *, killed: bool) -> list[str]:
    """Return what no user should see, whatever was done."""
    wrong = [f"it ended in a traceback:\n{ended.raised}"] if ended.raised else []
    if ended.hung:
        wrong.append(f"it hung for {ended.seconds:.0f} s")
    if not killed and not ended.messages and not wrong:
        wrong.append("it ended without a word")
    return wrong + [
        f"no sentence: {text}" for reported in ended.failures for text in parts(reported) if not is_sentence(text)
    ]


def parts(expected: str) -> list[str]:
    """The sentences of an error about several objects."""
    return expected.split(" | ")


def is_sentence(text: str) -> bool:
    """Return whether a text is for a person: what could not be done, or each finding once."""
    verdict = VERDICT.match(text)
    failures = text.count(": could not ")
    is_one = failures <= int(verdict["findings"]) if verdict else failures == 1
    return is_one and text.isprintable() and not RAW.search(text) and PASSWORD not in text


def _healed(made: Ground, peace: Undisturbed) -> list[str]:
    """Return what is not as it should be after one more run."""
    again = made.run()
    if again.failures and made.follow(again.failures[0]):
        again = made.run()
    wrong = [f"the next run: {text}" for text in wrong_after(again, killed=False)]
    wrong += [f"the next run failed: {text}" for text in again.failures]
    if wrong:
        return wrong
    different = ends.differences(peace.end, made.end())
    return [f"the end {one}" for one in different[:MOST_SHOWN]] + made.left_to_do()
