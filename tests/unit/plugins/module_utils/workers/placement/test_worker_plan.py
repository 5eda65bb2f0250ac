"""Workers as lines of text."""

from __future__ import annotations

from plugins.module_utils.workers.placement.worker_plan import as_lines, plan_lines, state_lines

RUNS = {"exists": True, "power": "on", "host": "esx1", "gpus": ["grid_t4-16c"], "address": "10.0.1.1"}


def test_a_plan_lists_actions_with_reasons() -> None:
    assert plan_lines(
        [
            {"name": "w1", "changed": False},
            {"name": "w2", "changed": True, "why": ["it is cloned"], "needs": [], "unmet": []},
            {"name": "w3", "changed": True, "why": [], "needs": ["power_off"], "unmet": ["it runs"]},
            {"name": "w4", "changed": False, "failed": True, "msg": "w4: could not find a host for it"},
            {"name": "w5", "changed": False},
        ]
    ) == [
        "w1, w5: as described, nothing to do",
        "w2: changes",
        "    it is cloned",
        "w3: is shut down and changes",
        "    not now: it runs",
        "w4: could not find a host for it",
    ]


def test_a_worker_line_has_host_gpus_and_address() -> None:
    workers = [
        {"name": "w1", "state": RUNS},
        {"name": "w2", "state": {**RUNS, "power": "off", "gpus": [], "address": None}},
        {"name": "w3", "state": {"exists": False}},
    ]
    shown = ["w1: runs on esx1, grid_t4-16c, 10.0.1.1", "w2: is off on esx1", "w3: does not exist"]
    assert state_lines(workers) == shown
    assert as_lines(workers) == {"plan_lines": ["w1, w2, w3: as described, nothing to do"], "state_lines": shown}
