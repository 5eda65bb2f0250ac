"""The page of a job while it trains."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plugins.module_utils.pages.live_page import page
from plugins.module_utils.training.output.live_state import LiveState
from plugins.module_utils.watch.curve import Curve
from plugins.module_utils.watch.live_pace import LivePace


def state_of(ranks: int = 2, steps: int = 40, total: int = 100, **more: Any) -> LiveState:
    """Return the state of a job; ``more`` are values of each record."""
    curve = Curve(0)
    pace = LivePace(total, curve)
    for step in range(1, steps + 1):
        usual = {"size": ranks, "step": step, "loss": 2.0 / step, "images_per_sec": 50.0, **more}
        pace.feed({"rank": rank, "host": f"n{rank}", "seen": step * 0.5, **usual} for rank in range(ranks))
    now = steps * 0.5 + 1.5
    return LiveState("one", now, "running", "", total, pace.summary(), pace.ranks(), curve.points(), {})


def text_of(html: str) -> str:
    """Return the text of a page, without its style."""
    return " ".join(re.sub("<[^>]+>", " ", html.partition("</style>")[2]).split())


def test_a_page_shows_step_rate_loss_and_ranks() -> None:
    made = page(state_of())
    text = text_of(made)
    for part in (
        "State: running.",
        "40 step of 100",
        "100.0 images/s",
        "0.05 loss",
        "30 s remaining time",
        "1.5 s since",
    ):
        assert part in text
    assert "0 n0 40 50.0 images/s 0.05 1.5 s ago 0.5 s" in text
    assert made.count("<figure>") == 2
    assert "call" not in made.partition("</style>")[2]


def test_optimizer_steps_show_steps_per_second_and_notes() -> None:
    made = page(state_of(loss=None, images_per_sec=None, by="optimizer SGD", others=1))
    text = text_of(made)
    assert "2.00 steps/s of the slowest rank" in text
    assert "The steps are those of optimizer SGD, the first of 2; the script does not record them itself." in text
    assert "No rank reports a loss." in text
    assert made.count("<figure>") == 1


def test_shows_jobs_without_steps_or_with_many_ranks() -> None:
    assert "No rank has reported a step." in text_of(page(state_of(steps=0)))
    text = text_of(page(state_of(ranks=70, steps=2)))
    assert "6 more ranks have made more steps." in text


@pytest.mark.parametrize(("state", "links"), [("finished", 2), ("died", 0), ("stopped", 0)])
def test_a_page_links_only_results_that_exist(state: str, links: int) -> None:
    made = page(state_of(host="<n>")._replace(name="a b", state=state, why="no room on <n1>"))

    assert made.count("<a href=") == links and ('href="../a%20b.json"' in made) == bool(links)
    assert "refresh" not in made and "remaining time" not in made
    assert "no room on &lt;n1&gt;" in made and "<n>" not in made
