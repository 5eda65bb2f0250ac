"""The verdict on resumed runs in the report, from manifests and records as role training keeps them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.programs import run as carry_out

from .test_plots import is_inside


def records(begin: int, end: int, began: float) -> str:
    steps = range(begin, end + 1)
    made = [
        {"rank": rank, "step": step, "t": began + step, "seen": began + step + 0.1, "phase": "train", "loss": 9 / step}
        for step in steps
        for rank in (0, 1)
    ]
    return "".join(json.dumps(each) + "\n" for each in made) + "no record\n[1]\n"


def write(results: Path, name: str, text: str, **more: Any) -> None:
    folder = results / name / "watch-1"
    folder.mkdir(parents=True)
    (folder / "records.jsonl").write_text(text)
    program = {"command": ["python", "train.py"], "transport": "tcp", "code": {"sha256": "c0de"}}
    manifest = {"name": name, "run_dir": f"/runs/{name}", "nodes": ["n1", "n2"], "ranks_per_node": 1, **program, **more}
    (results / name / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """Return the options of a report on a run that was stopped after step 13 and went on after step 10."""
    results = tmp_path / "runs"
    kept = [{"path": "step10.pt", "bytes": 3, "sha256": "aa"}]
    end = {"state": "stopped", "ended": 1014.0, "outputs": kept}
    write(results, "one", records(1, 13, 1000.0), started=995.0, end=end)
    restart = {"path": "step10.pt", "step": 10, "files": kept, "optimizer": None, "torn": []}
    later = {"started": 1040.0, "end": {"state": "finished", "ended": 1080.0}, "restart": restart}
    write(results, "two", records(11, 20, 1040.0), resumed_from="one", **later)
    return {"results": str(results), "folder": str(tmp_path / "report")}


def change(given: dict[str, Any], name: str, **more: Any) -> None:
    path = Path(given["results"]) / name / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))


def test_the_report_shows_a_resumed_run(given: dict[str, Any]) -> None:
    shown = carry_out("report", **given)

    assert any("one to two: resumed" in line for line in shown["lines"]), shown
    folder = Path(given["folder"])
    judged = json.loads((folder / "training.json").read_text())["restarts"][0]
    assert (judged["verdict"], judged["cost"]["repeated_steps"], judged["attempts"]) == ("resumed", 3, ["one", "two"])
    assert [part["name"] for part in judged["restarts"][0]["parts"]] == ["stop", "down", "start and restore"]
    page, text = (folder / "training.html").read_text(), (folder / "training.md").read_text()
    assert "38.0 s without a step" in page and "Loss over the time in seconds" in page
    assert "## Restarts of one: resumed" in text and "equal within 0.001: 6 losses of repeated steps" in text
    assert not carry_out("report", **given)["changed"]


def test_negative_losses_of_attempts_are_drawn(given: dict[str, Any]) -> None:
    for path in Path(given["results"]).glob("*/watch-1/records.jsonl"):
        path.write_text(path.read_text().replace('"loss": ', '"loss": -'))

    carry_out("report", **given)

    page = (Path(given["folder"]) / "training.html").read_text()
    assert is_inside(page, "Loss over the steps") and is_inside(page, "Loss over the time in seconds")


def test_the_report_names_a_broken_restarts_cause(given: dict[str, Any]) -> None:
    change(given, "two", code={"sha256": "other"})

    shown = " ".join(carry_out("report", **given)["lines"])

    assert "one to two: broken: code: c0de in one, other in two" in shown
    accepted = " ".join(carry_out("report", **given, accept_changes=["code"])["lines"])
    assert "one to two: resumed" in accepted and "accepted: code: c0de in one, other in two" in accepted


def test_only_runs_that_the_pattern_names_are_judged(given: dict[str, Any]) -> None:
    shown = carry_out("report", **given, runs="three*")

    assert shown["failed"] and "it has no run that matches 'three*'" in shown["msg"]


def test_refuses_a_tolerance_outside_zero_to_one(given: dict[str, Any]) -> None:
    shown = carry_out("report", **given, loss_tolerance=2)

    assert shown["failed"] and "report_loss_tolerance" in shown["msg"] and not Path(given["folder"]).exists()


@pytest.mark.parametrize("content", [5, [], "x", {"path": 7, "files": [1], "torn": [2, []], "step": "x"}])
def test_the_report_is_written_despite_damaged_checkpoint_facts(given: dict[str, Any], content: Any) -> None:
    change(given, "two", restart=content)

    assert carry_out("report", **given)["changed"]
