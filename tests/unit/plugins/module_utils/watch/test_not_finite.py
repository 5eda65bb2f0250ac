"""A job that trains on with values that are not finite says so in its pace."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.watch.live_pace import LivePace


def step(rank: int, number: int, **more: Any) -> dict[str, Any]:
    return {"rank": rank, "size": 2, "step": number, "seen": float(number), "host": f"n{rank}", **more}


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ([step(0, 1, loss=1.0), step(1, 1)], ""),
        (
            [step(0, 41, not_finite=40, checked_every=20), step(1, 41, not_finite=40, checked_every=20)],
            "gradients not finite since step 40 (checked every 20 steps) on ranks 0, 1",
        ),
        ([step(0, 41, not_finite=40)], "gradients not finite since step 40 on rank 0"),
        ([step(0, 37, loss="nan"), step(0, 38, loss="nan")], "loss not finite since step 37 on rank 0"),
        ([step(0, 37, loss="nan"), step(0, 38, loss=0.5)], ""),
        ([step(0, 2, not_finite="x", checked_every=True)], ""),
    ],
)
def test_reports_since_when_values_are_not_finite(records: list[dict[str, Any]], sentence: str) -> None:
    pace = LivePace()

    pace.feed(records)

    assert pace.summary()["not_finite"] == sentence
    assert (sentence in pace.line()) and (bool(sentence) == ("not finite" in pace.line()))
