# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The modules that list jobs and runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from plugins.modules import training_jobs_info, training_runs_info

from ..module_utils.training.test_busy import job
from .test_continuity_verdict import call

NODES = {
    "w1": {"jobs": [job("one", launched_here=True)], "reach": ["sh"]},
    "w2": {"jobs": [job("one")], "reach": ["sh"]},
    "w3": {"unreachable": True},
}


def names(**options: Any) -> list[str]:
    return [each["name"] for each in call(training_jobs_info, **options)["jobs"]]


def test_the_jobs_of_this_node_by_their_names(tmp_path: Path) -> None:
    marks = {"DML_RECORDS": str(tmp_path / "nightly-7")}
    with subprocess.Popen(["sleep", "600"], env={**os.environ, **marks}) as started:
        try:
            while "nightly-7" not in names():
                assert started.poll() is None
            assert names(name="nightly-7") == ["nightly-7"]
            assert names(name="nightly") == []
            assert "nightly-7" not in names(ignored="nightly-[0-9]")
            assert "nightly-7" in names(ignored="another")
        finally:
            started.kill()
    assert "ignored is not a regular expression" in call(training_jobs_info, ignored="[")["msg"]
    assert call(training_jobs_info, reach=["ssh", "w1"])["reach"] == ["ssh", "w1"]
    assert call(training_jobs_info)["node"] == os.uname().nodename.lower()
    assert call(training_jobs_info, node="n1.example.com")["node"] == "n1.example.com"


def test_the_only_run_has_its_launcher_and_the_connections() -> None:
    found = call(training_runs_info, nodes=NODES, single=True, watched=["w2", "w3", "w9"], user="anna")
    assert (found["launcher"], found["run_dir"], found["user"], found["found"]) == ("w1", "/runs/one", "anna", True)
    assert found["nodes"] == [{"name": "w2", "reach": ["sh"]}, {"name": "w3", "reach": []}]
    assert [(run["name"], run["nodes"]) for run in found["runs"]] == [("one", ["w1", "w2"])]
    assert "run_dir" not in call(training_runs_info, nodes=NODES)


def test_a_node_without_a_run_has_no_connections() -> None:
    found = call(training_runs_info, nodes={"w1": {"jobs": []}, "w2": {"unreachable": True}}, single=True)
    assert (found["runs"], "run_dir" in found) == ([], False)


def test_a_named_run_is_the_only_one_in_the_result_beside_others() -> None:
    """The user, the step and the pods of the run are read from the first of the returned runs."""
    two = {"w1": {"jobs": [job("one", launched_here=True)]}, "w2": {"jobs": [job("two", launched_here=True)]}}
    found = call(training_runs_info, nodes=two, single=True, name="two")
    assert (found["run_dir"], found["launcher"], [run["name"] for run in found["runs"]]) == ("/runs/two", "w2", ["two"])
    lost = call(training_runs_info, nodes={**two, "w3": {"msg": "no route"}}, single=True, name="three")
    reason = "no worker that could be read runs a training job with the name three; running are one, two"
    assert (lost["runs"], lost["why"]) == ([], f"{reason}; unreadable are w3 (no route)")


def test_several_runs_and_a_run_without_its_launcher_are_refused() -> None:
    two = {"w1": {"jobs": [job("one"), job("two")]}}
    assert "one, two run there; choose one by its name" in call(training_runs_info, nodes=two, single=True)["msg"]
    lost = {"w2": {"jobs": [job("one")]}}
    assert "no node has its run file" in call(training_runs_info, nodes=lost, single=True)["msg"]


def test_the_launcher_of_a_run_on_kubernetes_is_not_a_node() -> None:
    nodes = {
        "w1": {"jobs": [job("one")], "node": "n1"},
        "w2": {"jobs": [job("one")], "node": "n2"},
        "w3": {"unreachable": True},
    }
    place = {"namespace": "train", "kubeconfig": "/root/admin.conf", "context": ""}
    found = call(training_runs_info, nodes=nodes, single=True, kubernetes=place)
    names = {"n1": "w1", "n2": "w2"}
    assert found["kubernetes"] == {"namespace": "train", "kubeconfig": "/root/admin.conf", "names": names}
    assert (found["launcher"], found["run_dir"]) == ("", "/runs/one")
