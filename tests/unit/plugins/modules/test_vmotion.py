"""The module vmotion: the stuns of workers that move at once."""

from __future__ import annotations

import pytest

from plugins.modules.vmotion import too_long


@pytest.mark.parametrize(
    ("stuns", "budget", "words"),
    [
        ({"w1": 40.0, "w2": 60.0}, 100.0, ""),
        ({"w1": 40.0, "w2": 61.0}, 100.0, "the stuns of w1, w2 add up to 101 s, over 100 s, the limit of the job"),
        ({"w1": 101.0}, 100.0, ""),
        ({"w1": 40.0, "w2": 61.0}, None, ""),
        ({"w1": None, "w2": 61.0}, 100.0, ""),
    ],
)
def test_stuns_of_simultaneous_moves_add_up(stuns: dict[str, float | None], budget: float | None, words: str) -> None:
    assert too_long(stuns, budget) == words
