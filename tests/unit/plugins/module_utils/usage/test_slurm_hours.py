"""GPU hours in Slurm are summed by account and user, beside those by tenant."""

from __future__ import annotations

from plugins.module_utils.usage.usage_report import hours_of, report
from plugins.module_utils.usage.usage_text import lines
from tests.unit.plugins.module_utils.usage.reports import facts, gpu

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
