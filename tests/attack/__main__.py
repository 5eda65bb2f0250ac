"""Kills controllers and makes the server misbehave, at random: ``python -m tests.attack [--rounds N] [--seed S] ...``.

Each round draws from its number and the seed alone, so that ``--seed S --only kill:17`` does again what round 17 did.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from lab.simulator import DATACENTRES, Simulator
from tests.attack.ground import Ground
from tests.attack.plays import PLAYS, Play, stage
from tests.attack.rounds import FAULT, KILL, Round, Undisturbed, attack, undisturbed
from tests.attack.scenarios import SCENARIOS, Scenario

Peace = dict[str, Undisturbed]
# Every that many rounds a whole playbook is attacked, which takes as long as all the rounds between.
WHOLE = 20
KNOWN: Peace = {}


def scenario_of(number: int) -> Scenario:
    """They take turns, the modules among themselves and the playbooks too."""
    if number % WHOLE == WHOLE - 1:
        return PLAYS[number // WHOLE % len(PLAYS)]
    return SCENARIOS[(number - number // WHOLE) % len(SCENARIOS)]


def made_for(scenario: Scenario, certs: Path, folder: Path) -> Ground:
    """Where a scenario is attacked."""
    return stage(scenario, certs, folder) if isinstance(scenario, Play) else Ground(scenario, certs, folder)


def know(peace: Peace) -> None:
    """Take over how all scenarios end undisturbed: a process is given it once, because it is large."""
    KNOWN.update(peace)


def one(seed: int, certs: Path, end: float, which: tuple[str, int]) -> Round | str | None:
    """One round, or why it could not be held at all; nothing once the time is over."""
    if time.monotonic() > end:
        return None
    kind, number = which
    scenario = scenario_of(number)
    try:
        return attack((kind, number, scenario.name), partial(made_for, scenario, certs), seed, KNOWN[scenario.name])
    except Exception as error:
        return f"{kind}:{number} {scenario.name} could not be held: {type(error).__name__}: {error}"


def in_peace(certs: Path, scenario: Scenario) -> tuple[str, Undisturbed]:
    """The name of a scenario, and how it ends undisturbed."""
    return scenario.name, undisturbed(partial(made_for, scenario, certs))


def selected_rounds(arguments: argparse.Namespace) -> list[tuple[str, int]]:
    """The kind and number of each round."""
    if arguments.only:
        return [(kind, int(number)) for kind, _colon, number in (one.partition(":") for one in arguments.only)]
    return [(kind, number) for number in range(arguments.rounds) for kind in (KILL, FAULT)]


def shown(outcomes: Iterable[Round | str | None], arguments: argparse.Namespace, total: int) -> Iterator[Round | str]:
    """Passes on each outcome, with a word of those that went wrong and of how far it is."""
    last = time.monotonic()
    for done, outcome in enumerate(outcomes, start=1):
        if outcome is None:
            continue
        yield outcome
        if isinstance(outcome, str):
            print(outcome, flush=True)
        elif outcome.wrong or arguments.verbose:
            print(outcome.line, *(f"  {text}" for text in outcome.wrong), sep="\n", flush=True)
        if time.monotonic() > last + 30:
            last = time.monotonic()
            print(f"... {done} of {total} rounds", flush=True)


def counts(outcomes: list[Round | str], seconds: float) -> str:
    """The closing lines."""
    held = [one for one in outcomes if isinstance(one, Round)]
    kills, faults = ([one for one in held if one.kind == kind] for kind in (KILL, FAULT))
    met = Counter(one.harm.partition(" ")[0] for one in faults if one.hit)
    by_kind = ", ".join(f"{kind} {number}" for kind, number in sorted(met.items()))
    wrong, scenarios = sum(bool(one.wrong) for one in held), len({one.scenario for one in held})
    met_kills, lost = sum(one.hit for one in kills), len(outcomes) - len(held)
    return (
        f"{len(kills):,} kills ({met_kills:,} during a run), {len(faults):,} faults ({by_kind}) on {scenarios} "
        f"scenarios in {seconds:.0f} s: {wrong} went wrong, {lost} could not be held"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="so many kills, and as many faults")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--minutes", type=float, default=math.inf, help="after so many no further round begins")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", metavar="KIND:NUMBER", help="kill:17 or fault:17, may be repeated")
    parser.add_argument("--verbose", action="store_true", help="a line for each round")
    arguments = parser.parse_args()
    seed = secrets.randbelow(10**9) if arguments.seed is None else arguments.seed
    print(f"seed {seed}; the same again: make attack SEED={seed} ROUNDS={arguments.rounds}", flush=True)
    began, rounds = time.monotonic(), selected_rounds(arguments)
    with tempfile.TemporaryDirectory(prefix="dml-attack-certs-") as folder:
        certs = Path(folder)
        Simulator(DATACENTRES / "ready.yml", folder=certs).stop()
        (certs / "ready.json").unlink(missing_ok=True)
        scenarios = {one.name: one for one in (scenario_of(number) for _kind, number in rounds)}
        with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
            peace = dict(pool.imap_unordered(partial(in_peace, certs), scenarios.values()))
        with multiprocessing.get_context("fork").Pool(arguments.jobs, know, (peace,)) as pool:
            end = began + 60 * arguments.minutes
            found = pool.imap_unordered(partial(one, seed, certs, end), rounds)
            outcomes = list(shown(found, arguments, len(rounds)))
    print(counts(outcomes, time.monotonic() - began))
    return 1 if any(isinstance(one, str) or one.wrong for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
