"""playbooks/report.yml writes its four files from the results of runs."""

from __future__ import annotations

import json
from pathlib import Path

from plugins.module_utils.continuity import verdict
from plugins.module_utils.training.results import timeline
from tests.integration.ansible import Ansible
from tests.page import Page
from tests.unit.plugins.module_utils.continuity.runs import facts, move, records


def given(folder: Path) -> dict[str, str]:
    """The results of two runs and the timeline of one test, as options of the role."""
    results, tests = folder / "runs", folder / "tests"
    results.mkdir()
    for nodes, rate in ((1, 100.0), (2, 150.0)):
        proof = {"ok": True, "transport": "tcp", "why": "it was tcp"}
        run = {"name": f"tcp-{nodes}", "nodes": nodes, "gpus": nodes, "transport": "tcp", "images_per_sec": rate}
        (results / f"{nodes}.json").write_text(json.dumps({**run, "proof": proof}))
    moves = [move(40, 60), move(90, 110, rank=2)]
    case = verdict.read_case(records(200), moves, {}, ended="running", facts=facts(moves))
    judged = verdict.judged(case, ("launcher", "transport", "vsphere"))
    variables = {"name": "vMotion test of gpu", **timeline.timeline(case.tracks, moves, judged, {"w0": "esx0"})}
    (tests / "gpu-1").mkdir(parents=True)
    (tests / "gpu-1" / "timeline.json").write_text(json.dumps(variables))
    report = {"report_results": str(results), "report_dir": str(folder / "report")}
    return {**report, "report_vmotion_tests": str(tests)}


def run(folder: Path, options: dict[str, str], *more: str) -> str:
    """The output of the playbook."""
    ran = Ansible({}, folder).playbook("playbooks/report.yml", "-e", json.dumps(options), *more)
    assert ran.rc == 0, ran.out
    return ran.out


def test_writes_a_report_from_results(tmp_path: Path) -> None:
    options, report = given(tmp_path), tmp_path / "report"
    assert "changed=1" in run(tmp_path, options, "--check") and not report.exists()
    assert "changed=1" in run(tmp_path, options)
    assert "changed=0" in run(tmp_path, options)
    page = Page((report / "training.html").read_text())
    assert page.external == []
    assert ["2", "2", "tcp", "150.0", "-", "1.50"] in [row[:6] for table in page.tables for row in table]
    assert "vMotion test of gpu" in (report / "training.html").read_text()
    assert "| 2 | w2 | esx1 | esx5 | - | - | 20.0 |" in (report / "training.md").read_text()
    assert "Nothing was measured with rdma." in (report / "training.md").read_text()
    assert "measured,2,2,tcp,150.0" in (report / "training.csv").read_text()
    assert json.loads((report / "training.json").read_text())["rows"][1]["speedup"] == 1.5


def test_writes_nothing_without_a_result(tmp_path: Path) -> None:
    variables = {**given(tmp_path), "report_vmotion_tests": "", "report_runs": "rdma-*"}
    done = Ansible({}, tmp_path).playbook("playbooks/report.yml", "-e", json.dumps(variables))
    assert done.rc == 2 and "could not write a report: it has no run that matches" in done.out, done.out
    assert not (tmp_path / "report").exists()


def test_names_the_option_for_a_verdict_without_folder(tmp_path: Path) -> None:
    done = Ansible({}, tmp_path).playbook("playbooks/judge.yml")
    assert done.rc == 2 and "Name the folder of the test: -e folder=FOLDER." in done.out, done.out


def test_unanswered_awx_question_keeps_the_inventory_value(tmp_path: Path) -> None:
    """AWX runs a file of its project, and passes an empty text for each question without an answer."""
    inventory = {"all": {"hosts": {"localhost": {}}, "vars": {**given(tmp_path), "report_title": "Of the inventory"}}}
    (tmp_path / "hosts.yml").write_text(json.dumps(inventory))
    (tmp_path / "report.yml").write_text("---\n- import_playbook: dml.vsphere.report\n")
    (tmp_path / "extravars").write_text(
        json.dumps({"awx_job_id": 7, "report_title": "", "report_dir": str(tmp_path / "shown")})
    )
    command = ["-i", str(tmp_path / "hosts.yml"), "-e", f"@{tmp_path / 'extravars'}"]

    done = Ansible({}, tmp_path).playbook(str(tmp_path / "report.yml"), *command)

    assert done.rc == 0, done.out
    assert (tmp_path / "shown" / "training.md").read_text().startswith("# Of the inventory\n")
