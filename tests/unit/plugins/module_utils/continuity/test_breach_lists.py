"""Lists of breaches are bounded, the counts are exact, and the verdict is the same."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.continuity.limits import LISTED, OF_ONE_KIND, Breach, bounded, in_order, left_out
from plugins.module_utils.continuity.verdict import verdict


def breach(at: float | None, kind: str = "step_lost") -> Breach:
    return Breach(kind, 0, 1, at, f"{kind} at {at}")


def test_few_breaches_stay_as_they_are() -> None:
    few = [breach(float(at)) for at in range(OF_ONE_KIND)]
    assert list(bounded(few)) == few and list(left_out(few)) == []


def test_similar_breaches_are_counted_and_other_kinds_kept() -> None:
    many = [breach(float(at)) for at in range(100)]
    other = breach(200.0, "loss")
    kept = list(bounded([*many, other]))
    assert kept[:OF_ONE_KIND] == many[:OF_ONE_KIND] and kept[OF_ONE_KIND] == other
    assert kept[-1].at == 99.0 and len(kept) == OF_ONE_KIND + 2
    assert kept[-1].detail == f"step_lost at 99.0 ({100 - OF_ONE_KIND - 1} similar ones before it are not listed)"


def test_a_breach_without_a_time_is_sorted_last() -> None:
    assert in_order([breach(None), breach(2.0), breach(1.0)]) == [breach(1.0), breach(2.0), breach(None)]


def test_breaches_beyond_the_list_are_counted_by_kind() -> None:
    ordered = [*(breach(float(at)) for at in range(LISTED)), breach(None, "died"), breach(None), breach(None)]
    expected = f"the first {LISTED:,} of {LISTED + 3:,} breaches are listed; omitted: died: 1, step_lost: 2"
    assert list(left_out(ordered)) == [expected]
    assert not list(left_out(ordered[:LISTED]))


def records(ranks: int, steps: int, **more: Any) -> list[dict[str, Any]]:
    """Return records in which every second step is lost."""
    return [
        {"t": float(step), "step": 2 * step, "stride": 1, "rank": rank, "size": ranks, "seen": float(step), **more}
        for step in range(1, steps + 1)
        for rank in range(ranks)
    ]


def test_a_log_of_breaches_yields_a_short_list() -> None:
    judged = verdict(records(64, 200), [], {}, ended="running")
    assert judged["verdict"] == "broken" and len(judged["breaches"]) == LISTED
    assert f"the first {LISTED:,} of {64 * (OF_ONE_KIND + 1):,} breaches are listed" in judged["notes"][0]


@pytest.mark.parametrize("steps", [100, 1000])
def test_limits_the_breaches_of_a_constantly_changing_process(steps: int) -> None:
    made = [{**record, "pid": number} for number, record in enumerate(records(1, steps))]
    kinds = [found["kind"] for found in verdict(made, [], {}, ended="running")["breaches"]]
    assert kinds.count("identity") == OF_ONE_KIND + 1
