"""Processes of nodes as jobs, and the jobs of nodes as runs."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.running import busy

BEGAN = 1_764_043_000.0  # 2025-11-25 03:56:40 UTC


def process(pid: int, run_dir: str = "/runs/one", **more: Any) -> busy.JobProcess:
    given = {"ticks": 10 * pid, "began": BEGAN + pid, "user": "train", "run_id": "id", "requested_by": "", **more}
    return busy.JobProcess(pid=pid, run_dir=run_dir, **given)


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


@pytest.mark.parametrize(
    ("environ", "marks"),
    [
        (b"", None),
        (b"DML_RECORDS=\0DML_RUN_ID=1", None),
        (b"XDML_RECORDS=/runs/one\0DML_RUN_ID=1", None),
        (b"A=1\0DML_RECORDS=/runs/one\0DML_RUN_ID=1\0DML_RUN_BY=anna@desk", ("/runs/one", "1", "anna@desk")),
        (b"DML_RECORDS=/runs/\xff=\n\0", ("/runs/\ufffd=\n", "", "")),
    ],
)
def test_the_environment_of_a_process_names_its_job(environ: bytes, marks: Any) -> None:
    assert busy.marks(environ) == marks


def test_groups_processes_of_a_run_directory_into_jobs() -> None:
    processes = [process(7), process(5), process(6, "/runs/two/"), process(8, "/runs/one", run_id="other")]
    found = busy.jobs(processes)
    assert [(each["name"], [one["pid"] for one in each["processes"]]) for each in found] == [
        ("one", [5, 7]),
        ("one", [8]),
        ("two", [6]),
    ]
    assert found[0]["started"] == BEGAN + 5
    assert found[0]["processes"] == [{"pid": 5, "start": 50}, {"pid": 7, "start": 70}]


@pytest.mark.parametrize(
    ("run_dir", "name"), [("/runs/a\x1b[2Jb\n", "a?[2Jb?"), ("/runs/" + "x" * 999, "x" * 200), (".", ".")]
)
def test_run_names_are_short_and_printable(run_dir: str, name: str) -> None:
    assert busy.name_of(run_dir) == name


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (b"", None),
        (b'{"step": 7}', None),
        (b'{"step": 6}\n{"step": 7}\n{"st', 7),
        (b'{"step": 6}\n{"step": true}\nnull\n[]\n{"step": "9"}\n\xff\n', 6),
        (b"[" * 100000 + b"\n", None),
    ],
)
def test_the_last_whole_record_has_the_step(text: bytes, step: int | None) -> None:
    assert busy.last_step(text) == step


def test_a_title_names_user_start_and_step() -> None:
    assert busy.title(job("one", step=None)) == "one of train since 2025-11-25 03:56 UTC"
    assert busy.title(job("one", asked_by="anna@desk", step=0)).endswith(
        "one of anna@desk since 2025-11-25 03:56 UTC (step 0)"
    )
    assert "an unknown time" in busy.title(job("one", started=1e300, step=None))


def test_merges_jobs_of_nodes_into_runs() -> None:
    nodes = {
        "w1": {"jobs": [job("one", BEGAN + 1, step=5), job("two", step=None)]},
        "w2": {"jobs": [job("one", BEGAN, step=7, launched_here=True)]},
        "w3": {"unreachable": True},
    }
    one, two = busy.running(nodes)
    assert (one["nodes"], one["launcher"], one["step"], one["started"]) == (["w1", "w2"], "w2", 7, BEGAN)
    assert (two["nodes"], two["launcher"], two["step"]) == (["w1"], "", None)


def test_only_the_launcher_names_the_user() -> None:
    lie = job("one", BEGAN - 9, user="eve", asked_by="eve@w1", run_id="other")
    nodes = {"w1": {"jobs": [lie]}, "w2": {"jobs": [job("one", asked_by="anna@desk", launched_here=True)]}}

    (run,) = busy.running(nodes)

    assert (run["user"], run["asked_by"], run["run_id"], run["started"]) == ("train", "anna@desk", "id", BEGAN)
    # Without an answer of the launcher, no single node is believed.
    (run,) = busy.running({**nodes, "w2": {"jobs": [job("one", asked_by="anna@desk")]}})
    assert (run["user"], run["asked_by"], run["run_id"]) == ("", "", "")


def test_one_machine_with_two_names_is_one_launcher() -> None:
    answers = {name: {"jobs": [job("one", launched_here=True)]} for name in ("w1", "w2")}
    (run,) = busy.running(answers, {name: {"reach": ["ssh", "10.0.0.1"]} for name in answers})
    assert (run["launcher"], run["nodes"]) == ("w1", ["w1", "w2"])


@pytest.mark.parametrize(
    ("nodes", "cause"),
    [
        (
            {name: {"jobs": [job("one", launched_here=True)]} for name in ("w1", "w2")},
            "w1 and w2 both report that they launched it",
        ),
        (
            {"w1": {"jobs": [{**job("eve"), "name": "one", "launched_here": True}]}},
            "w1: could not read its training jobs: it reports the run one in the directory /runs/eve",
        ),
    ],
    ids=["two launchers", "the name of another run"],
)
def test_contradicting_reports_of_a_run_are_refused(nodes: dict[str, Any], cause: str) -> None:
    with pytest.raises(Refused, match=cause):
        busy.running(nodes)


def test_lists_other_jobs_unless_a_pattern_ignores_them() -> None:
    answers = {
        "w1": {"jobs": [job("one"), job("two", step=None)], "reach": ["sh", "-c", "evil"]},
        "w2": {"jobs": [job("two", launched_here=True), job("three")]},
    }
    nodes = {name: {"reach": ["ssh", name]} for name in answers}
    (two,) = busy.others("/runs/one", answers, nodes, "thr")
    assert (two["run_dir"], two["launcher"], two["user"], two["nodes"]) == ("/runs/two", "w2", "train", ["w1", "w2"])
    assert two["watched"] == [{"name": name, "reach": ["ssh", name]} for name in ("w1", "w2")]
    assert [each["run_dir"] for each in busy.others("/runs/one", answers, nodes)] == ["/runs/three", "/runs/two"]
