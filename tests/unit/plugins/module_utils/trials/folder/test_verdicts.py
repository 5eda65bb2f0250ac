"""A new verdict is written beside those in the folder of a test, and replaces none."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.module_utils.errors import Failed
from plugins.module_utils.trials.folder.verdicts import NewVerdict, write_text


def test_new_verdict_has_the_next_free_number(tmp_path: Path) -> None:
    (tmp_path / "verdict-2.json").touch()
    (tmp_path / "timeline-3.html").touch()
    verdict = NewVerdict(tmp_path, ["verdict.json", "timeline.html"], [lambda: {"verdict.json": "{}"}])

    plan = verdict.plan(verdict.read())
    assert (plan.before, plan.after) == ({"file": None}, {"file": "verdict-4.json"})
    verdict.apply(plan)

    assert verdict.read() == {"file": "verdict-4.json"}
    assert (tmp_path / "verdict-4.json").read_text() == "{}"


def test_failed_write_names_the_file_and_the_reason(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text("earlier")

    with pytest.raises(Failed, match=r"verdict\.json: could not write it: File exists"):
        write_text(tmp_path / "verdict.json", "later", replaces=False)
    assert (tmp_path / "verdict.json").read_text() == "earlier"
