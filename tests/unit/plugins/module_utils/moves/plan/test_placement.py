"""The errors that refuse a rolling move."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.moves.plan.placement import RollingPlacement, Shortage, listed


def placement(slots: dict[str, int], at: dict[str, str], **rules: Any) -> RollingPlacement:
    return RollingPlacement(
        slots=slots,
        at=at,
        chosen=rules.get("chosen", tuple(at)),
        demand={**dict.fromkeys(at, 1), **rules.get("demand", {})},
        allowed={worker: frozenset(hosts) for worker, hosts in rules.get("allowed", {}).items()},
        return_home=rules.get("return_home", False),
        one_per_host=rules.get("one_per_host", False),
    )


def test_refusal_names_sizes_shortfalls_and_the_remedy() -> None:
    some = placement({"h0": 9, "h1": 2, "h2": 3}, {"a": "h0", "b": "h0", "c": "h2"}, demand={"a": 8})
    refusal = some.infeasible(["a", "b"], is_together=True, is_proven=False)
    assert str(refusal) == (
        "a and b cannot all move: a move needs 1 to 8 GPU slots free on another host, but of those that may take them "
        "h1 has 2 of 2 free and h2 has 2 of 3 free, and no order of moves that makes room was found. "
        "Add a spare host with 8 GPU slots of this profile that they may go to, "
        "or power off a worker on one of these hosts."
    )
    assert refusal.shortages == (Shortage("h1", 1, 2, 2), Shortage("h2", 1, 2, 3))
    assert some.infeasible(["b", "a"], is_together=True, is_proven=False).shortages == refusal.shortages


@pytest.mark.parametrize(
    ("names", "text"),
    [("", ""), ("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("abcdef", "a, b, c, d, e and f"),
     ("abcdefg", "a, b, c, d, e and 2 more")],
)  # fmt: skip
def test_abbreviates_many_names_with_a_count(names: str, text: str) -> None:
    assert listed(names) == text
