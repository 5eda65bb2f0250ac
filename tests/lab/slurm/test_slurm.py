"""Two nodes become a cluster of Debian's Slurm, in whose queue runs wait, train and end."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import ROOT, Simulator, environment
from tests.integration.ansible import Ansible
from tests.integration.killing import kill_all
from tests.lab.benchmark import BUILD_SECONDS, NAMES, Cluster, await_
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
        options = "stack=lab-cpu guest_slurm=true slurm_accounting=true"
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

    def stop(self, name: str, **more: Any) -> Any:
        """Run the playbook that stops a run, or a sweep."""
        return self.play("stop", training_name=name, **more)

    def play(self, name: str, **variables: Any) -> Any:
        """Run a playbook for runs in Slurm."""
        given = {"training_backend": "slurm", "training_results": str(self.nodes.folder / "results"), **variables}
        playbook = (f"playbooks/{name}.yml", "-i", str(self.nodes.inventory))
        return self.nodes.ansible.playbook(*playbook, "-e", json.dumps(given))

    def kill(self, name: str, daemon: str) -> None:
        """Kill a daemon of Slurm on a node."""
        self.nodes.inside(name, f"sudo pkill -9 -x {daemon}")
        await_(lambda: self.nodes.inside(name, f"pgrep -x {daemon} || true") == "", f"{daemon} has ended")

    def start(self, name: str, daemon: str) -> None:
        """Start a daemon again, as its administrator does."""
        self.nodes.inside(name, f"sudo systemctl restart {daemon}")

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
        for name in NAMES:
            # Slurm takes any file for a GPU.
            nodes.inside(name, "sudo touch /dev/nvidia0")
        built = made.guests()
        assert built.rc == 0, built.out
        yield made


def test_cluster_is_as_requested_and_stays_so(slurm: SlurmCluster) -> None:
    rows = slurm.ask("sinfo --Node --noheader --format='%N %T %P %G'").split("\n")[:-1]
    assert [row.split() for row in rows] == [["n1", "idle", "dml*", "gpu:1"], ["n2", "idle", "dml*", "gpu:1"]]
    assert slurm.ask("sacctmgr --noheader --parsable2 show cluster format=Cluster") == "dml\n"
    proof = json.loads(slurm.ask("cat /etc/ansible/facts.d/dml_slurm.fact"))
    assert (proof["proven"], proof["nodes"], proof["versions"]) == (True, ["n1", "n2"], {"Slurm": "22.05.8"})

    again = slurm.guests()

    assert again.rc == 0, again.out
    assert set(re.findall(r"changed=(\d+)", again.out)) == {"0"}, again.out


@pytest.mark.parametrize(
    ("name", "mark", "words"),
    [
        ("n2", "slurm", "n2 cannot become a node of a new Slurm cluster, because it has /etc/"),
        ("n1", "slurm/database", "n1 cannot get the database of slurmdbd, because it has one in /var/lib/mysql"),
    ],
)
def test_refuses_a_foreign_slurm_before_any_write(slurm: SlurmCluster, name: str, mark: str, words: str) -> None:
    slurm.nodes.inside(name, f"sudo mv /etc/dml/{mark} /etc/dml/hidden")
    try:
        refused = slurm.guests()
    finally:
        slurm.nodes.inside(name, f"sudo rm -rf /etc/dml/{mark} && sudo mv /etc/dml/hidden /etc/dml/{mark}")
    assert refused.rc != 0 and words in " ".join(refused.out.split()), refused.out


@pytest.fixture
def users(slurm: SlurmCluster) -> dict[str, dict[str, Any]]:
    """Two users of Slurm with an account each, and the variables with which they train with a GPU of each node."""
    add = "sudo sacctmgr --immediate add"
    for name in NAMES:
        slurm.nodes.inside(name, "id anna || sudo useradd --create-home --uid 4711 anna")
    for user, account in (("dml", "vision"), ("anna", "speech")):
        slurm.ask(f"{add} account {account}; {add} user {user} account={account}; true")
    gpu = {"options": ["--gres=gpu:1"]}
    return {
        "dml": {"training_slurm": {"account": "vision", **gpu}},
        "anna": {
            "training_slurm": {"account": "speech", **gpu},
            "training_user": "anna",
            "training_runs": "/home/anna/runs",
            "training_dir": "/home/anna/training",
        },
    }


def test_second_user_waits_until_the_first_run_is_stopped(slurm: SlurmCluster, users: dict[str, Any]) -> None:
    first = slurm.begin("first", FOREVER, **users["dml"])
    slurm.nodes.trained("first", first)
    second = slurm.begin("second", ["python", "train.py", "--steps", "30"], **users["anna"])
    await_(lambda: "anna speech PENDING" in slurm.ask("squeue -h -o '%u %a %T'"), "the run of the second user waits")
    listed = " ".join(slurm.play("runs").out.split())

    stopped = slurm.stop("first", **users["dml"])

    assert stopped.rc == 0, stopped.out
    assert re.search(r" second \S+ .* waiting .* job [0-9]+: place 1 of 1, Resources", listed), listed
    code, output = slurm.nodes.end(first)
    assert code != 0 and "first on n1 was stopped" in output, output
    code, output = slurm.nodes.end(second)
    assert code == 0 and "in partition dml: place 1 of 1, Resources" in output, output
    assert json.loads((slurm.nodes.folder / "results/second.json").read_text())["steps"] == 30
    assert slurm.nodes.left() == [] and slurm.ask("squeue -h") == ""


def test_audit_has_the_gpu_hours_of_both_users(slurm: SlurmCluster, tmp_path: Path) -> None:
    """After the runs of the test before; each had two GPUs as long as sacct says."""
    inventory = tmp_path / "clusters.yml"
    inventory.write_text("clusters: {hosts: {gpu: {ansible_connection: local}}}\n")
    jobs = "--noheader --parsable2 --allocations --name=dml-first,dml-second --format=Account,User,ElapsedRaw"
    hours: dict[tuple[str, str], float] = {}
    for account, user, seconds in (row.split("|") for row in slurm.ask(f"sudo sacct --allusers {jobs}").split()):
        hours[account, user] = hours.get((account, user), 0.0) + 2 * int(seconds) / 3600
    with Simulator() as centre:
        ansible = Ansible({**slurm.nodes.lab.environment, **environment(centre.facts)}, tmp_path)
        options = {"audit_slurm": "n1", "audit_dir": str(tmp_path / "kept")}
        words = ("-i", str(inventory), "-i", str(slurm.nodes.inventory), "--limit", "clusters")
        done = ansible.playbook("playbooks/audit.yml", *words, "-e", json.dumps(options))

    assert done.rc == 0, done.out
    report = json.loads((tmp_path / "kept/gpu.json").read_text())["slurm"]
    assert set(hours) == {("vision", "dml"), ("speech", "anna")}, hours
    assert {(one["account"], one["user"]): one["gpu_hours"] for one in report} == pytest.approx(hours, abs=0.01)


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
    whole = slurm.stop("endless")

    assert (one.rc, whole.rc) == (0, 0), one.out + whole.out
    assert sorted(listed.splitlines()) == ["1 RUNNING", "3 PENDING"], "Slurm forgets a task that it never started"
    code, output = slurm.nodes.end(endless)
    assert code != 0 and "3 of 3 runs did not finish" in output, output
    assert [slurm.end_of(f"endless.{number}") for number in (1, 2, 3)] == ["stopped"] * 3
    assert slurm.nodes.left() == [] and slurm.ask("squeue -h") == ""


def test_job_survives_the_daemons_of_slurm(slurm: SlurmCluster) -> None:
    running = slurm.begin("daemons", ["python", "train.py", "--steps", "1000000"])
    slurm.nodes.trained("daemons", running)
    slurm.kill("n2", "slurmd")
    slurm.kill("n1", "slurmctld")
    slurm.nodes.trained("daemons", running, slurm.nodes.steps("daemons", 0)[-1]["step"] + 20)

    refused = slurm.stop("daemons")
    slurm.start("n1", "slurmctld")
    slurm.start("n2", "slurmd")
    stopped = slurm.stop("daemons")

    words = " ".join(refused.out.split())
    assert refused.rc != 0 and "Unable to contact slurm controller" in words and "start slurmctld" in words, words
    assert stopped.rc == 0 and slurm.end_of("daemons") == "stopped", stopped.out
    code, output = slurm.nodes.end(running)
    assert code != 0 and "daemons on n1 was stopped" in output, output
    assert slurm.nodes.left() == []


def test_waiting_run_survives_slurmctld(slurm: SlurmCluster) -> None:
    first = slurm.begin("holds", FOREVER)
    slurm.nodes.trained("holds", first)
    second = slurm.begin("waits", ["python", "train.py", "--steps", "30"])
    await_(lambda: "dml-waits PENDING" in slurm.ask("squeue -h -o '%j %T'"), "the second run waits")
    slurm.kill("n1", "slurmctld")
    listed = slurm.play("runs")
    slurm.start("n1", "slurmctld")

    assert slurm.stop("holds").rc == 0
    code, output = slurm.nodes.end(second)
    assert code == 0, output
    assert "the queue of Slurm is unknown: " in listed.out and "slurmctld" in listed.out, listed.out
    assert slurm.nodes.end(first)[0] != 0 and slurm.nodes.left() == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_controller_trains_once(slurm: SlurmCluster, moment: str) -> None:
    """A controller dies while its sbatch is on its way, which reaches Slurm after that of the next one, or before."""
    name = f"killed{moment}"
    late = "until [ -e /tmp/go ]; do sleep 0.2; done\n" if moment == "before" else ""
    script = f'#!/bin/sh\ntouch /tmp/asked\n{late}/usr/bin/sbatch "$@"\nsleep 600\n'
    slurm.nodes.inside("n1", f"sudo rm -f /tmp/asked /tmp/go; sudo tee /usr/local/bin/sbatch <<'E'\n{script}E\n")
    slurm.nodes.inside("n1", "sudo chmod 755 /usr/local/bin/sbatch")
    try:
        killed = slurm.begin(name, ["python", "train.py", "--steps", "300"])
        jobs = f"squeue --noheader --states=all --name=dml-{name} --format=%i"
        await_(lambda: "asked" in slurm.ask("ls /tmp") and bool(late or slurm.ask(jobs)), "sbatch was called")
        kill_all(killed)
    finally:
        slurm.nodes.inside("n1", "sudo rm /usr/local/bin/sbatch")
    again = slurm.begin(name, ["python", "train.py", "--steps", "300"])
    slurm.nodes.trained(name, again)
    slurm.nodes.inside("n1", "touch /tmp/go")

    code, output = slurm.nodes.end(again)

    assert code == 0 and slurm.end_of(name) == "finished", output
    await_(lambda: slurm.ask("squeue -h") == "", "Slurm has no job left")
    columns = "--noheader --parsable2 --allocations --format=State,ExitCode"
    ended = slurm.ask(f"sudo sacct --allusers --name=dml-{name} {columns}").split()
    assert ended == ["COMPLETED|0:0", *(["FAILED|78:0"] if late else [])], ended
    steps = [one["step"] for one in slurm.nodes.steps(name, 0)]
    assert steps == list(range(1, 301)), "the run trained once"


def test_full_disk_at_the_start_is_named(slurm: SlurmCluster) -> None:
    first = slurm.begin("fills", FOREVER)
    slurm.nodes.trained("fills", first)
    second = slurm.begin("full", ["python", "train.py", "--steps", "30"], training_runs="/dev/shm/runs")
    await_(lambda: "dml-full PENDING" in slurm.ask("squeue -h -o '%j %T'"), "the second run waits")
    slurm.nodes.inside("n1", "sudo dd if=/dev/zero of=/dev/shm/much bs=4k 2> /dev/null; true")
    try:
        assert slurm.stop("fills").rc == 0
        code, output = slurm.nodes.end(second)
    finally:
        slurm.nodes.inside("n1", "sudo rm -f /dev/shm/much")
    assert code != 0 and "no space left on n1:/dev/shm/runs/full, whose file system" in " ".join(output.split()), output
    assert slurm.nodes.end(first)[0] != 0 and slurm.nodes.left() == [] and slurm.ask("squeue -h") == ""
