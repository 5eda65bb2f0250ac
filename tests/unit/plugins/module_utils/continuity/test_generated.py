"""The continuity verdict on thousands of random training runs, with and without harm: none is judged wrong."""

from __future__ import annotations

import inspect
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.continuity.verdict import verdict

from . import cases, harms
from .cases import CONTINUOUS_CASES, INCONCLUSIVE_CASES, Expected, plain
from .harms import BROKEN_CASES
from .records import Run

# Another seed draws other runs, and a larger number of sets draws more runs, as in make test-full.
SETS = int(os.environ.get("CONTINUITY_SETS") or ("10000" if os.environ.get("FULL") else "2500"))
SEED = int(os.environ.get("CONTINUITY_SEED", "0"))
CASES = (*BROKEN_CASES, *INCONCLUSIVE_CASES, *CONTINUOUS_CASES)
PLAIN_SHARE = 6  # the number of plain runs is that of six other kinds
EACH = -(-SETS // (len(CASES) - 1 + PLAIN_SHARE))
TABLE = Path(__file__).parents[5] / "docs" / "continuity.md"


def count(case: Any) -> int:
    """Return the number of runs of a kind."""
    return EACH * (PLAIN_SHARE if case is plain else 1)


def test_draws_all_cases_and_plants_all_breaches() -> None:
    assert sum(map(count, CASES)) >= SETS
    made = [one for module in (cases, harms) for one in vars(module).values()]
    drawn = {one for one in made if inspect.isfunction(one) and one.__annotations__.get("return") == "Case"}
    assert drawn == set(CASES), "every defined case is drawn"
    planted = {kind for case in BROKEN_CASES for kind in case(random.Random(case.__name__))[1].kinds}
    broken = TABLE.read_text().partition("## Broken")[2].partition("## Inconclusive")[0]
    assert planted == set(re.findall(r"^\| `(\w+)` \|", broken, re.MULTILINE))


def wrong(result: dict[str, Any], expected: Expected, run: Run) -> list[str]:
    """Return the differences between a verdict and the only correct one."""
    kinds = {breach["kind"] for breach in result["breaches"]}
    moved = expected.moved or ("all" if run.moves else "none")
    reported = {step["rank"] for step in result["clock_steps"]}
    checks = {
        f"verdict {result['verdict']}, not {expected.verdict}": result["verdict"] == expected.verdict,
        f"breaches {kinds}, not {set(expected.kinds)}": kinds == expected.kinds,
        f"moved {result['moved']}, not {moved}": result["moved"] == moved,
        f"no word of {expected.missing}": any(u.startswith(expected.missing) for u in (*result["unproven"], "")),
        f"clocks of {reported} set, not of {set(expected.clock_set)}": expected.clock_set <= reported,
        f"clocks of {reported} set, only of {set(run.clocks)} in truth": reported
        <= expected.clock_set | set(run.clocks),
    }
    return [text for text, is_right in checks.items() if not is_right]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.__name__))
def test_no_run_drawn_by_chance_is_judged_wrong(case: Any) -> None:
    errors = []
    for number in range(count(case)):
        seed = f"{SEED} {case.__name__} {number}"
        run, expected = case(random.Random(seed))
        positional, named = run.arguments()
        faults = wrong(verdict(*positional, **named), expected, run)
        errors += [f"{seed}: {'; '.join(faults)}"] if faults else []
    assert errors == []
