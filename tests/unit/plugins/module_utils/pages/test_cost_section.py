"""The cost of a test in its page, in Markdown and in the lines of the verdict, with the published figures."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.continuity.verdict import verdict
from plugins.module_utils.pages.cost_section import FIGURES, markdown, section
from plugins.module_utils.trials.evidence import move_lines

T0 = 1_790_000_000.0
MOVE = {"worker": "w1", "ranks": [0], "source": "esx1", "target": "esx9", "ok": True}
MOVES = [{**MOVE, "started": T0 + 100, "completed": T0 + 120}]
HOST = {"host": "esx1<b>", "out_at": T0 + 130, "back_at": T0 + 160, "reboots": 2}


def judged(**facts: Any) -> dict[str, Any]:
    times = [*range(110), *range(130, 300)]
    records = [
        {"rank": rank, "size": 2, "step": step, "t": T0 + at, "seen": T0 + at, "images_per_sec": 8.0}
        for step, at in enumerate(times)
        for rank in (0, 1)
    ]
    return verdict(records, MOVES, {}, ended="finished", facts=facts, require=())


def test_the_lines_of_the_verdict_have_the_cost() -> None:
    result = judged(hosts=[{**HOST, "host": "esx1"}], checkpoint_s=600)
    text = "\n".join(move_lines.verdict(result, MOVES))
    assert "Goodput: 89.9% of the undisturbed 1 steps/s, in the 199 s since the first disturbance" in text
    assert "Without a step: 20.0 s, times 2 ranks = 40 rank-seconds" in text
    assert "instead (every 600 s, as given), once: the job repeats 300 s of training, 600 rank-seconds" in text
    assert "esx1: out of service 2026-09-21 14:15:30 UTC to 2026-09-21 14:16:00 UTC (30 s), move 1" in text


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (1.1, "Goodput: 110.0% of the undisturbed 1 steps/s, in the 199 s since"),
        (1.519, "Goodput: 151.9% of the 1 steps/s before (the job was slower before, so measure longer: vmotion_test_"),
        (None, "Goodput: not known, in the 199 s since"),
    ],
)
def test_a_previously_slower_job_has_no_undisturbed_rate(share: float | None, expected: str) -> None:
    result = judged()
    result["cost"] = {**result["cost"], "goodput": share}
    assert expected in "\n".join(move_lines.verdict(result, MOVES))


def test_the_page_shows_costs_hosts_and_sources() -> None:
    page = section(judged(hosts=[HOST]))
    assert "<td>esx1&lt;b&gt;</td>" in page and "images lost in silences</td>" in page and "<b>" not in page
    assert "the outputs of the run show checkpoints, and no checkpoint interval was given" in page
    assert all(f"<td>{figure.split(';')[0]}" in page for _subject, figure, _source in FIGURES)
    lines = markdown(judged(hosts=[{**HOST, "back_at": None}]))
    assert "### Cost" in lines and any("since 2026-09-21 14:15:30 UTC" in line for line in lines)


@pytest.mark.parametrize("timeline", [{}, {"cost": None}])
def test_a_test_of_unknown_cost_has_no_section(timeline: dict[str, Any]) -> None:
    assert section(timeline) == "" and markdown(timeline) == []


def test_every_figure_has_a_source() -> None:
    assert all(len(row) == 3 and all(row) for row in FIGURES)
