"""Processes of nodes as jobs, and the jobs of nodes as runs."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.running import busy

BEGAN = 1_764_043_000.0  # 2025-11-25 03:56:40 UTC
STARTED = 1767327360.0  # 2026-01-02 04:16 UTC
LONG: dict[str, Any] = {"run_dir": "/runs/long", "asked_by": "anna", "user": "", "started": STARTED, "step": 7}
ANSWERS: dict[str, dict[str, Any]] = {
    "w1": {"jobs": [LONG]},
    "w2": {"jobs": [{**LONG, "step": 6}]},
    "w3": {"jobs": []},
    "w4": {"msg": "Connection refused\nand more"},
}


def job(name: str, started: float = BEGAN, **more: Any) -> dict[str, Any]:
    run_dir = f"/runs/{name}"
    return {
        "name": name,
        "run_dir": run_dir,
        "run_id": "id",
        "user": "train",
        "asked_by": "",
        "started": started,
        **more,
    }


def test_a_title_names_user_start_and_step() -> None:
    assert busy.title(job("one", step=None)) == "one of train since 2025-11-25 03:56 UTC"
    assert busy.title(job("one", asked_by="anna@desk", step=0)).endswith(
        "one of anna@desk since 2025-11-25 03:56 UTC (step 0)"
    )
    assert "an unknown time" in busy.title(job("one", started=1e300, step=None))


def test_only_the_launcher_names_the_user() -> None:
    lie = job("one", BEGAN - 9, user="eve", asked_by="eve@w1", run_id="other")
    nodes = {"w1": {"jobs": [lie]}, "w2": {"jobs": [job("one", asked_by="anna@desk", launched_here=True)]}}

    (run,) = busy.running(nodes)

    assert (run["user"], run["asked_by"], run["run_id"], run["started"]) == ("train", "anna@desk", "id", BEGAN)
    # Without an answer of the launcher, no single node is believed.
    (run,) = busy.running({**nodes, "w2": {"jobs": [job("one", asked_by="anna@desk")]}})
    assert (run["user"], run["asked_by"], run["run_id"]) == ("", "", "")


def test_two_launchers_of_one_run_are_refused() -> None:
    nodes = {name: {"jobs": [job("one", launched_here=True)]} for name in ("w1", "w2")}
    with pytest.raises(Refused, match="w1 and w2 both report that they launched it"):
        busy.running(nodes)


def test_lists_other_jobs_unless_a_pattern_ignores_them() -> None:
    answers = {
        "w1": {"jobs": [job("one"), job("two", step=None)], "reach": ["sh", "-c", "evil"]},
        "w2": {"jobs": [job("two", launched_here=True), job("three")]},
    }
    nodes = {name: {"reach": ["ssh", name]} for name in answers}
    (two,) = busy.others("/runs/one", "w1", answers, nodes, "thr")
    assert (two["run_dir"], two["launcher"], two["user"], two["nodes"]) == ("/runs/two", "w2", "train", ["w1", "w2"])
    assert two["watched"] == [{"name": name, "reach": ["ssh", name]} for name in ("w1", "w2")]
    assert [each["run_dir"] for each in busy.others("/runs/one", "w1", answers, nodes)] == ["/runs/three", "/runs/two"]


@pytest.mark.parametrize(
    ("place", "own"),
    [
        ({"run_dir": "", "records": "/runs/one"}, "/runs/one"),
        ({"run_dir": "/home/anna/bert", "records": "/runs/one"}, "/runs/one"),
        ({"run_dir": "/runs/one/", "records": "/runs/one/"}, "/runs/one"),
        ({"run_dir": "/runs/one", "records": "/runs/one"}, "/runs//one/"),
    ],
)
def test_own_job_is_known_by_its_records(place: dict[str, str], own: str) -> None:
    answers = {"w1": {"jobs": [{**job("one"), "run_dir": own}, job("two")]}}

    (other,) = busy.others(busy.records_of(place), "login", answers, {})

    assert other["run_dir"] == "/runs/two"


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
