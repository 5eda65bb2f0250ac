"""Two nodes become a cluster of Debian's Slurm, in whose queue runs wait, train and end."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import ROOT
from tests.lab.benchmark import BUILD_SECONDS, Cluster, await_
from tests.lab.conftest import computers

pytestmark = pytest.mark.slow
TAGS = "node,openmpi,slurm"
FOREVER = ["python", "train.py", "--steps", "1000000"]


class SlurmCluster:
    """Nodes with Slurm, and runs of a small program of MPI on them."""

    def __init__(self, nodes: Cluster, folder: Path) -> None:
        self.nodes, self.program = nodes, folder / "program"
        self.program.mkdir()
        shutil.copy(ROOT / "tests/lab/train.py", self.program)

    def guests(self, *more: str) -> Any:
        """Run the playbook for guests with Slurm."""
        options = json.dumps({"stack": "lab-cpu", "guest_slurm": True})
        words = ("-i", str(self.nodes.inventory), "--tags", TAGS, "-e", options, *more)
        return self.nodes.ansible.playbook("playbooks/guests.yml", *words, timeout=BUILD_SECONDS)

    def begin(self, name: str, command: list[str], **variables: Any) -> Any:
        """Submit a run, and follow it."""
        program = {"training_folder": str(self.program), "training_command": command, "training_steps_by": "script"}
        python = {"training_python": "/usr/bin/python3", "training_framework": "pytorch_ddp"}
        return self.nodes.begin(name, training_backend="slurm", **program, **python, **variables)

    def sweep(self, name: str, values: list[int]) -> Any:
        """Submit a run of both nodes for each number of steps, and follow them."""
        command = ["python", "train.py", "--steps", "{steps}"]
        return self.begin(name, command, training_sweep={"steps": values}, training_sweep_size=2)

    def stop(self, name: str) -> Any:
        """Run the playbook that stops a run, or a sweep."""
        named = {
            "training_name": name,
            "training_backend": "slurm",
            "training_results": str(self.nodes.folder / "results"),
        }
        playbook = ("playbooks/stop.yml", "-i", str(self.nodes.inventory))
        return self.nodes.ansible.playbook(*playbook, "-e", json.dumps(named))

    def end_of(self, run: str) -> str:
        """Return the end of a run according to its manifest."""
        known = json.loads((self.nodes.folder / "results" / run / "manifest.json").read_text())
        return str(known.get("end", {}).get("state"))

    def ask(self, command: str) -> str:
        """Return the output of a command of Slurm."""
        return self.nodes.inside("n1", command)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    folder = tmp_path_factory.mktemp("slurm")
    with computers(folder, "slurm-tests", str(folder)) as nodes:
        made = SlurmCluster(nodes, folder)
        built = made.guests()
        assert built.rc == 0, built.out
        yield made


def test_cluster_is_as_requested_and_stays_so(slurm: SlurmCluster) -> None:
    rows = slurm.ask("sinfo --Node --noheader --format='%N %T %P %c'").split("\n")[:-1]
    assert [row.split()[:3] for row in rows] == [["n1", "idle", "dml*"], ["n2", "idle", "dml*"]]
    proof = json.loads(slurm.ask("cat /etc/ansible/facts.d/dml_slurm.fact"))
    assert (proof["proven"], proof["nodes"], proof["versions"]) == (True, ["n1", "n2"], {"Slurm": "22.05.8"})

    again = slurm.guests()

    assert again.rc == 0, again.out
    assert set(re.findall(r"changed=(\d+)", again.out)) == {"0"}, again.out


def test_refuses_a_foreign_slurm_before_any_write(slurm: SlurmCluster) -> None:
    slurm.nodes.inside("n2", "sudo mv /etc/dml/slurm /etc/dml/hidden")
    try:
        refused = slurm.guests()
    finally:
        slurm.nodes.inside("n2", "sudo rm -rf /etc/dml/slurm && sudo mv /etc/dml/hidden /etc/dml/slurm")
    words = " ".join(refused.out.split())
    assert refused.rc != 0 and "n2 cannot become a node of a new Slurm cluster, because it has /etc/" in words, (
        refused.out
    )


def test_second_run_waits_until_the_first_is_stopped(slurm: SlurmCluster) -> None:
    first = slurm.begin("first", FOREVER)
    slurm.nodes.trained("first", first)
    second = slurm.begin("second", ["python", "train.py", "--steps", "30"])
    await_(lambda: "dml-second PENDING" in slurm.ask("squeue -h -o '%j %T'"), "the second run waits")

    stopped = slurm.stop("first")

    assert stopped.rc == 0, stopped.out
    code, output = slurm.nodes.end(first)
    assert code != 0 and "first on n1 was stopped" in output, output
    code, output = slurm.nodes.end(second)
    assert code == 0 and "in partition dml: place 1 of 1, Resources" in output, output
    assert json.loads((slurm.nodes.folder / "results/second.json").read_text())["steps"] == 30
    assert slurm.nodes.left() == [] and slurm.ask("squeue -h") == ""


def test_time_limit_and_killed_rank_have_their_cause(slurm: SlurmCluster) -> None:
    limited = slurm.begin("limited", FOREVER, training_slurm={"time": "1"})
    code, output = slurm.nodes.end(limited)
    assert code != 0 and "at its time limit: set training_slurm.time to a longer one (TIMEOUT)" in output, output

    killed = slurm.begin("killed", FOREVER, training_attempts=1)
    slurm.nodes.trained("killed", killed)
    slurm.nodes.inside("n2", f"sudo kill -9 {slurm.nodes.steps('killed', 1)[0]['pid']}")
    code, output = slurm.nodes.end(killed)
    assert code != 0 and "rank 1 on n2" in output and "signal 9 (Killed)" in output, output
    assert slurm.nodes.left() == []


def test_sweep_is_an_array_that_needs_no_controller(slurm: SlurmCluster) -> None:
    killed = slurm.sweep("sweep", [30, 31, 32])
    await_(lambda: len(slurm.ask("squeue -h --array --name=dml-sweep").splitlines()) == 3, "the array is submitted")
    killed.kill()
    await_(lambda: slurm.ask("squeue -h --array --name=dml-sweep") == "", "all its tasks have ended")

    code, output = slurm.nodes.end(slurm.sweep("sweep", [30, 31, 32]))

    assert code == 0 and "submitted as" not in output, output
    assert [slurm.end_of(f"sweep.{number}") for number in (1, 2, 3)] == ["finished"] * 3
    assert slurm.ask("squeue -h --array --states=all --name=dml-sweep -o %T").split() == ["COMPLETED"] * 3


def test_stop_ends_one_run_of_a_sweep_or_all(slurm: SlurmCluster) -> None:
    endless = slurm.sweep("endless", [10**6, 10**6 + 1, 10**6 + 2])
    await_(lambda: "run.json" in slurm.ask("sudo ls /var/lib/dml/runs/endless.1 || true"), "its first run trains")

    one = slurm.stop("endless.2")
    listed = slurm.ask("squeue -h --array --states=all --name=dml-endless -o '%K %T'")
    states = [line.split()[1] for line in sorted(listed.splitlines())]
    whole = slurm.stop("endless")

    assert (one.rc, whole.rc) == (0, 0), one.out + whole.out
    assert states == ["RUNNING", "CANCELLED", "PENDING"]
    code, output = slurm.nodes.end(endless)
    assert code != 0 and "3 of 3 runs did not finish" in output, output
    assert [slurm.end_of(f"endless.{number}") for number in (1, 2, 3)] == ["stopped"] * 3
    assert slurm.nodes.left() == [] and slurm.ask("squeue -h") == ""
