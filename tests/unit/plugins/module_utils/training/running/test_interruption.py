"""The sentence that names the jobs which a change would stop, and the workers that could not be read."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.training.running import busy

STARTED = 1767327360.0  # 2026-01-02 04:16 UTC
LONG: dict[str, Any] = {"run_dir": "/runs/long", "asked_by": "anna", "user": "", "started": STARTED, "step": 7}
ANSWERS: dict[str, dict[str, Any]] = {
    "w1": {"jobs": [LONG]},
    "w2": {"jobs": [{**LONG, "step": 6}]},
    "w3": {"jobs": []},
    "w4": {"msg": "Connection refused\nand more"},
}


def test_names_a_job_on_several_workers_once() -> None:
    assert busy.refusal(ANSWERS, ["under_training", "interrupt"]) == (
        "w1, w2: the training job long of anna since 2026-01-02 04:16 UTC (step 7) runs on this worker. Wait until it "
        "ends or stop it, or change the hosts around it with under_training=true, or run again with "
        "interrupt_training=true."
    )


def test_idle_and_silent_workers_are_not_busy() -> None:
    assert busy.refusal({name: ANSWERS[name] for name in ("w3", "w4")}, ["wait"]) == ""


def test_names_a_worker_that_could_not_be_read() -> None:
    assert busy.unread(ANSWERS) == ["The training jobs of w4 cannot be read: Connection refused"]
