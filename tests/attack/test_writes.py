"""Each write of each scenario, one at a time: accepted and not kept, or done and its answer lost."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.attack.ground import Ground
from tests.attack.rounds import struck, undisturbed
from tests.attack.scenarios import SCENARIOS, Scenario

HARMS: tuple[tuple[str, dict[str, Any]], ...] = (("deaf", {}), ("drop", {"after": True}))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_next_run_notices_and_repeats_a_lost_write(scenario: Scenario, certs: Path) -> None:
    make = partial(Ground, scenario, certs)
    peace, wrong = undisturbed(make), []
    for number, method in enumerate(peace.writes):
        before = peace.writes[:number].count(method)
        for kind, more in HARMS:
            found = struck(make, method, before, kind, peace, **more)
            wrong += [f"{kind} {more or ''} at {method} {before + 1}: {text}" for text in found]
    assert not wrong, "\n".join(wrong)
