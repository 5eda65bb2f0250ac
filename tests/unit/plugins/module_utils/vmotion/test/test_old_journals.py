# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A journal of another release is continued; an incomplete entry is an error sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import Failed
from plugins.module_utils.vmotion.test.next_step import next_step, state_of
from tests.fakes.trial import SETTINGS, Killed, World

ROOT = Path(__file__).parents[6]


def test_the_journal_of_an_earlier_release_gives_the_same_steps() -> None:
    """The controller of the fixture was killed during a move; another one looked the move up and ended the test."""
    lines = (ROOT / "tests" / "fixtures" / "trial_journal.jsonl").read_text().splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    journal = [row["entry"] for row in rows]
    for count, row in enumerate(rows, start=1):
        step = next_step(state_of(journal[:count]))
        assert (step.name if step else "") == row["next"], f"after entry {count}, {row['entry']['entry']}"


def test_an_entry_of_a_later_release_changes_nothing() -> None:
    world = World()
    with pytest.raises(Killed):
        world.carry_out(entries=9)
    before = next_step(state_of(world.journal))
    world.write("unheard_of", value=1)
    assert next_step(state_of(world.journal)) is before


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([{"entry": "hold", "run": "one"}], r"entry 1 \(hold\) .* no entry with the settings"),
        ([{"entry": "open"}], r"entry 1 \(open\) is incomplete \(KeyError\('settings'\)\)"),
        ([{"entry": "open", "settings": []}], "it has no setting accept, canary, .* workers"),
        ([{"entry": "open", "settings": "gpu"}], r"entry 1 \(open\) is incomplete"),
        ([{"entry": "open", "settings": SETTINGS}, {"entry": "hold"}], r"entry 2 \(hold\) .*KeyError\('run'\)"),
        ([{"entry": "open", "settings": SETTINGS}, {"entry": "counters", "hosts": []}], r"entry 2 \(counters\)"),
    ],
)
def test_an_incomplete_entry_is_an_error_sentence(entries: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(Failed, match=said):
        state_of([{"at": 1.0, **entry} for entry in entries])
