"""The moves, the GPUs and the output on the page of a running job."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.pages.live_page import move_bands, page, step_at
from plugins.module_utils.training.output.gpu_use import GpuUse, NodeGpus
from plugins.module_utils.training.output.live_state import JobMove

from .test_live_page import state_of, text_of

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
