"""The page of a job while it trains: its pace, moves, GPUs and output."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plugins.module_utils.pages.live_page import move_bands, page, step_at
from plugins.module_utils.training.output.gpu_use import GpuUse, NodeGpus
from plugins.module_utils.training.output.live_state import JobMove, LiveState
from plugins.module_utils.watch.curve import Curve
from plugins.module_utils.watch.live_pace import LivePace

from .test_plots import is_inside


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
    drawn = re.findall(r"<figcaption>(.+?)</figcaption>\s*<svg viewBox=.0 0 (\d+)", made)
    assert [title.partition(",")[0] for title, _width in drawn] == ["Loss", "Images per second"]
    assert int(drawn[0][1]) == 2 * int(drawn[1][1])
    assert "call" not in made.partition("</style>")[2]


def test_negative_losses_of_a_job_are_drawn() -> None:
    assert is_inside(page(state_of(loss=-3.0)), "Loss")


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


MOVE = JobMove("w1", "esx1", "esx2", 5.0, 10.0, "moved")
GPU = GpuUse(0, "A100", 93.0, 5 << 30, 80 << 30)


@pytest.mark.parametrize(
    ("seconds", "step"), [(-9.0, 1.0), (0.0, 1.0), (1.0, 3.0), (2.0, 5.0), (3.0, 5.5), (4.0, 6.0), (99.0, 6.0)]
)
def test_finds_the_step_at_a_given_time(seconds: float, step: float) -> None:
    points = [{"step": 1, "seconds": 0.0}, {"step": 5, "seconds": 2.0}, {"step": 6, "seconds": 4.0}]
    assert step_at(points, seconds) == step
    assert step_at([], seconds) == 0.0


def test_a_move_is_a_band_over_its_steps() -> None:
    # A step each 0.5 s, the first at 0.5 s.
    state = state_of()._replace(began=0.5, moves=[MOVE, MOVE._replace(worker="<w>", kind="running", until=22.0)])
    first, second = move_bands(state)
    assert (first.begin, first.end, first.label, first.kind) == (10.0, 20.0, "1", "moved")
    assert (second.end, second.kind) == (40.0, "running")
    made = page(state)
    assert made.count('<rect class="band moved"') == 2, "in both charts"
    assert "<w>" not in made
    text = text_of(made)
    assert "Moves of workers" in text
    assert "1 w1 esx1 esx2 00:00:05 UTC 5.0 s moved" in text
    assert "in progress" in text


def test_the_table_lists_only_the_latest_moves() -> None:
    text = text_of(page(state_of()._replace(began=0.5, moves=[MOVE] * 25)))
    assert "5 earlier moves are only in the charts." in text


def test_shows_gpu_use_or_why_it_is_unknown() -> None:
    odd = GpuUse(1, "<b>", None, None, 80 << 30)
    nodes = [NodeGpus("n1", (GPU, odd), ""), NodeGpus("n2", (), "No devices <found>"), NodeGpus("n3", (GPU,), "lost")]
    made = page(state_of()._replace(gpus=nodes))
    text = text_of(made)
    assert "93% mean GPU use" in text
    assert "n1 0 A100 93% 5.0 GiB of 80.0 GiB" in text
    assert "n1 1 &lt;b&gt; unknown unknown of 80.0 GiB" in text
    assert "n2: the use of the GPUs is unknown (No devices &lt;found&gt;)." in text
    assert "n3: the use of further GPUs is unknown (lost)." in text


def test_shows_the_least_used_of_many_gpus() -> None:
    many = tuple(GPU._replace(number=number, busy=float(number)) for number in range(99, -1, -1))
    text = text_of(page(state_of()._replace(gpus=[NodeGpus("n1", many, "")])))
    assert "36 more GPUs have a higher utilization." in text
    assert "n1 0 A100 0%" in text and "n1 64 A100" not in text


@pytest.mark.parametrize("more", [{}, {"gpus": [], "moves": [], "output": []}])
def test_a_page_without_content_has_no_sections(more: dict[str, Any]) -> None:
    text = text_of(page(state_of()._replace(**more)))
    assert not [word for word in ("GPU", "Moves", "Output") if word in text]


def test_the_output_is_text() -> None:
    made = page(state_of()._replace(output=["rank 0: <script>", "two\u202e"]))
    assert "rank 0: &lt;script&gt;\ntwo\ufffd" in made
