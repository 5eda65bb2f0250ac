"""The report on GPUs: idle first, sums by tenant, prices, and the hours in Slurm."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.usage.usage_report import BUSY, IDLE, NOT_MEASURED, UNASSIGNED, UNREACHABLE, hours_of, report
from plugins.module_utils.usage.usage_text import lines
from tests.unit.plugins.module_utils.usage.reports import PERIOD, facts, gpu, user

MIXED = facts(
    gpu("e1", user("a", "red", 0.5), user("b", "blue", 0.5, hours=6.0), mean=80.0),
    gpu("e2", user("c", "red", 1.0, hours=100.0), mean=1.0),
    gpu("e3"),
    gpu("e4", user("d", "", 0.25, hours=None)),
    gpu("e5", user("e", "blue", 0.5), mean=20.0),
    gpu("e6", user("f", "blue", 0.5), reachable=False),
)


@pytest.mark.parametrize(
    ("card", "state"),
    [
        (gpu("h"), UNASSIGNED),
        (gpu("h", mean=50.0), UNASSIGNED),
        (gpu("h", user("v", "t", 1.0)), NOT_MEASURED),
        (gpu("h", user("v", "t", 1.0), mean=4.99), IDLE),
        (gpu("h", user("v", "t", 1.0), mean=5.0), BUSY),
        (gpu("h", user("v", "t", 1.0), mean=0.0), IDLE),
        (gpu("h", user("v", "t", 1.0), mean=90.0, reachable=False), UNREACHABLE),
    ],
)
def test_derives_the_state_of_a_gpu(card: dict[str, Any], state: str) -> None:
    assert report(facts(card))["gpus"][0]["state"] == state


def test_idle_machines_come_first_and_the_busiest_last() -> None:
    found = report(MIXED)
    assert [(one["host"], one["state"]) for one in found["gpus"]] == [
        ("e2", IDLE),
        ("e3", UNASSIGNED),
        ("e4", NOT_MEASURED),
        ("e6", UNREACHABLE),
        ("e5", BUSY),
        ("e1", BUSY),
    ]
    assert found["idle"] == ["e2 0000:3b:00.0", "e3 0000:3b:00.0"]
    assert [one["host"] for one in report(MIXED, idle_below=30.0)["gpus"]][:3] == ["e2", "e5", "e3"]


def test_tenants_pay_for_their_share_of_cards() -> None:
    groups = {one["tenant"]: one for one in report(MIXED, 2.0, "EUR")["groups"]}
    assert {name: one["gpus"] for name, one in groups.items()} == {"red": 1.5, "blue": 1.5, "": 0.25, None: 2.75}
    assert groups["red"]["cost_per_hour"] == 3.0
    # c has run for longer than the period, of which it pays all hours and no more.
    assert (groups["red"]["gpu_hours"], groups["red"]["cost"]) == (0.5 * 24 + 24, 72.0)
    assert groups["blue"]["gpu_hours"] == 0.5 * 6 + 0.5 * 24 + 0.5 * 24
    assert (groups["red"]["idle_gpus"], groups["blue"]["idle_gpus"], groups[None]["idle_gpus"]) == (1.0, 0, 2.75)
    assert groups["red"]["card_utilisation"] == (0.5 * 80 + 1) / 1.5
    assert (groups[""]["gpu_hours"], groups[""]["card_utilisation"]) == (0, None)
    assert (groups[None]["gpu_hours"], groups[None]["cost"], groups[None]["cost_per_hour"]) == (None, None, 5.5)
    assert report(MIXED)["groups"][-1]["tenant"] is None


def test_totals_add_up_gpus_hosts_and_costs() -> None:
    totals = report(MIXED, 2.0)["totals"]
    assert (totals["gpus"], totals["hosts"], totals["vms"], totals["measured"]) == (6, 6, 6, 3)
    assert (totals["assigned"], totals["free"]) == (3.25, 2.75)
    assert totals["utilisation"] == pytest.approx(101 / 3)
    assert (totals["cost_per_hour"], totals["idle_cost_per_hour"]) == (6.5, 4.0)


def test_distinguishes_a_price_of_zero_from_none() -> None:
    free, unknown = report(MIXED, 0.0), report(MIXED)
    assert (free["totals"]["cost"], free["price"]) == (0.0, {"per_gpu_hour": 0.0, "currency": ""})
    assert (unknown["totals"]["cost"], unknown["price"]) == (None, None)
    assert {one["cost_per_hour"] for one in unknown["groups"]} == {None}


def test_a_cluster_without_gpus_has_an_empty_report() -> None:
    empty = report(facts(), 1.0)
    assert (empty["gpus"], empty["groups"], empty["idle"]) == ([], [], [])
    assert (empty["totals"]["gpus"], empty["totals"]["utilisation"], empty["totals"]["cost"]) == (0, None, 0)


TENANTS = st.sampled_from(["red", "blue", "", "None"])
HOURS = st.none() | st.floats(0, 100)
CUTS = st.lists(st.tuples(st.integers(1, 5), TENANTS, HOURS), max_size=4)
CARDS = st.lists(st.tuples(CUTS, st.none() | st.floats(0, 100), st.booleans()), max_size=8)


@given(cards=CARDS, price=st.floats(0, 1000), below=st.floats(0, 100))
def test_tenants_and_unassigned_gpus_add_up_to_all(
    cards: list[tuple[list[tuple[int, str, float | None]], float | None, bool]], price: float, below: float
) -> None:
    gpus = []
    for place, (cuts, mean, reachable) in enumerate(cards):
        whole = max(sum(cut for cut, _tenant, _hours in cuts), 6)
        users = [user(f"v{place}-{at}", name, cut / whole, hours) for at, (cut, name, hours) in enumerate(cuts)]
        gpus.append(gpu(f"e{place}", *users, mean=mean, reachable=reachable))
    found = report(facts(*gpus), price, "EUR", below)
    totals, groups = found["totals"], found["groups"]
    assert sum(one["gpus"] for one in groups) == pytest.approx(len(gpus))
    assert totals["assigned"] + totals["free"] == pytest.approx(len(gpus))
    assert sum(one["gpu_hours"] or 0 for one in groups) == pytest.approx(totals["gpu_hours"])
    assert sum(one["cost"] or 0 for one in groups) == pytest.approx(totals["cost"])
    assert sum(one["cost_per_hour"] for one in groups if one["tenant"] is not None) == pytest.approx(
        totals["cost_per_hour"]
    )
    assert sum(totals["states"].values()) == len(gpus)
    assert totals["gpu_hours"] <= totals["assigned"] * PERIOD["hours"] + 1e-6
    states = [one["state"] for one in found["gpus"]]
    assert states == sorted(states, key=[IDLE, UNASSIGNED, NOT_MEASURED, UNREACHABLE, BUSY].index)


# The answer of sacct 22.05.8 with slurmdbd: jobs without GPUs, one that waits, and those of two accounts.
SACCT = [
    "vision|debian|0|billing=8",
    "vision|debian|0|",
    "vision|debian|492|billing=8,cpu=8,node=4",
    "vision|debian|5400|billing=2,cpu=2,gres/gpu=2,node=2",
    "vision|debian|1800|billing=1,cpu=1,gres/gpu=2,node=1",
    "speech|anna|7200|billing=1,cpu=1,gres/gpu=4,gres/gpu:a100=4,node=1",
]
SUMS = [
    {"account": "speech", "user": "anna", "jobs": 1, "gpu_hours": 8.0, "cost": 20.0},
    {"account": "vision", "user": "debian", "jobs": 2, "gpu_hours": 4.0, "cost": 10.0},
]


def test_sums_gpu_hours_by_account_and_user() -> None:
    assert hours_of(SACCT, 2.5) == SUMS
    assert [one["cost"] for one in hours_of(SACCT)] == [None, None]


def test_ignores_lines_that_are_not_of_sacct() -> None:
    assert (
        hours_of(["", "sacct: error: no slurmdbd", "a|b|-1|gres/gpu=1", "a|b|1|gres/gpu=x", "a|b|1|xgres/gpu=1"]) == []
    )


def test_report_has_a_table_of_accounts() -> None:
    with_jobs, without = report(facts(gpu("e1")), 2.5, "EUR", slurm=SACCT), report(facts(gpu("e1")), 2.5, "EUR")

    assert with_jobs["slurm"] == SUMS and without["slurm"] == []
    text = lines(with_jobs)
    assert text[-3].split() == ["Account", "in", "Slurm", "User", "Jobs", "GPU", "hours", "Cost", "in", "the", "period"]
    assert text[-2].split() == ["speech", "anna", "1", "8", "20.00", "EUR"]
    assert not any("Slurm" in line for line in lines(without))
