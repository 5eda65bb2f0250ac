# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Moves one after another keep the rules of the cluster and find memory, or are refused with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plugins.module_utils.vmotion.plan import ruled_moves
from plugins.module_utils.vmotion.plan.plan import Infeasible, Move
from plugins.module_utils.vmotion.plan.ruled_moves import keep_rules
from plugins.module_utils.vmotion.plan.waves import plan_waves

from .test_waves import pair

APART = (frozenset({"w1", "w2"}),)


@pytest.mark.parametrize(
    ("changed", "more", "words"),
    [
        ({"targets": ("h2",)}, {}, "w2 -> free1: a rule keeps it off free1"),
        ({"needs": (1, 65, 0)}, {}, "w2 -> free1: free1 has 32 MB of memory free"),
        ({}, {"apart": APART}, "w2 -> free1: a rule keeps it apart from w1"),
    ],
)
def test_a_plan_whose_first_move_of_a_wave_breaks_a_rule_is_refused(
    changed: dict[str, object], more: dict[str, object], words: str
) -> None:
    """The first move of a wave was not checked."""
    fleet, at = pair(**changed)
    plan = [Move("w1", "h1", "free1"), Move("w2", "h2", "free1")]

    with pytest.raises(Infeasible, match=f"there is none; the one by GPU slots fails at {words}"):
        plan_waves(replace(fleet, **more), plan, at, 2)


def test_a_plan_that_breaks_a_rule_is_replaced_by_one_that_keeps_it() -> None:
    fleet, at = pair(targets=("free1", "free2"))
    plan = [Move("w1", "h1", "free1"), Move("w2", "h2", "free1")]

    kept = keep_rules(replace(fleet, apart=APART), plan, at, return_home=False)

    assert {move.worker: move.target for move in kept} == {"w1": "free1", "w2": "free2"}
    assert keep_rules(fleet, plan, at, return_home=False) == plan


def test_a_plan_that_returns_keeps_the_rules_on_its_way_home() -> None:
    fleet, at = pair(targets=("free1", "free2", "h2"))
    plan = [Move("w1", "h1", "free1"), Move("w2", "h2", "free1"), Move("w2", "free1", "h2"), Move("w1", "free1", "h1")]
    first = replace(fleet.workers["w1"], targets=("free1", "h1"))
    fleet = replace(fleet, workers={**fleet.workers, "w1": first}, apart=APART)

    kept = keep_rules(fleet, plan, at, return_home=True)

    assert [(move.worker, move.target) for move in kept] == [
        ("w1", "free1"), ("w2", "free2"), ("w2", "h2"), ("w1", "h1"),
    ]  # fmt: skip
    away = replace(fleet, workers={**fleet.workers, "w1": replace(first, targets=("free1",))})
    with pytest.raises(Infeasible, match="w1 and w2 cannot all move and return: w1 -> h1: a rule keeps it off h1"):
        keep_rules(away, plan, at, return_home=True)


def test_a_search_that_is_given_up_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ruled_moves, "EFFORT", 0)
    fleet, at = pair(targets=("free1", "free2"))
    plan = [Move("w1", "h1", "free1"), Move("w2", "h2", "free1")]

    with pytest.raises(Infeasible, match=r"none was found within \d+ tries, although one may exist"):
        keep_rules(replace(fleet, apart=APART), plan, at, return_home=False)
