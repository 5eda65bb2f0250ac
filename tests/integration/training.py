"""Nodes that real mpirun trains on: processes of this machine, each with its own host name, reached as by ssh."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from lab.simulator import ROOT
from tests.integration.ansible import BIN, PYTHON, Ansible, Outcome

FILES = Path(__file__).parents[2] / "roles" / "training" / "files"
DEADLINE = 90.0
# A playbook begins to train, on a machine that may have more to do.
BEGIN_SECONDS = 600.0
# Only root may give itself a host name; others may in a user namespace, where they are root.
UNSHARE = "--uts" if os.geteuid() == 0 else "--user --map-root-user --uts"
REMOTE_SHELL = """#!/bin/sh
# A stand-in for ssh, on this machine under another host name. Nodes named in the file down do not answer.
node=$1; shift
if grep -qsx "$node" {folder}/down; then
  echo "ssh: connect to host $node port 22: No route to host" >&2; exit 255
fi
exec unshare {unshare} sh -c 'hostname "$0" && exec sh -c "$1"' "$node" "$*"
"""
# Writes the records as a training does; argv: steps, seconds of each, and what to do at which step.
SCRIPT = """
import os, subprocess, sys, time
import dml_records
records = dml_records.start()
if sys.argv[3:] == ["leave"]:
    subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
steps, seconds = int(sys.argv[1]), float(sys.argv[2])
for number in range(1, steps + 1):
    time.sleep(seconds + (6 if sys.argv[3:] == ["pause", str(number)] else 0))
    records.step(images=8, loss=1.0 / number)
    if sys.argv[3:] == ["fail", str(records.rank)] and number == 3:
        raise RuntimeError("the loss went away")
"""


def one_card() -> list[str]:
    """mpirun's words for the card that leads out of this machine: the network of a lab goes while the job runs."""
    routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    card = next((route[0] for route in routes if route[1] == "00000000"), "")
    return [word for layer in ("btl", "oob") if card for word in ("--mca", f"{layer}_tcp_if_include", card)]


def need_mpirun() -> None:
    """Fail where no mpirun can be tried: what is not tested must not look tested."""
    lacking = [name for name in ("mpirun", "unshare") if not shutil.which(name)]
    assert not lacking, f"this machine lacks {', '.join(lacking)}: run make setup-tests"


class Nodes:
    """The nodes, and the modules against them."""

    def __init__(self, ansible: Ansible, folder: Path) -> None:
        need_mpirun()
        self._ansible, self.folder = ansible, folder
        self.run_dir = folder / "run"
        self.script = folder / "train.py"
        self.script.write_text(SCRIPT)
        self.shell = folder / "reach"
        self.shell.write_text(REMOTE_SHELL.format(folder=folder, unshare=UNSHARE))
        self.shell.chmod(0o755)
        self.here = socket.gethostname()

    def options(self, *arguments: Any, **more: Any) -> dict[str, Any]:
        """Return what starts a job on four nodes, the launcher one of them."""
        return {
            "run_dir": str(self.run_dir),
            "command": [sys.executable, "-u", str(self.script), *map(str, arguments)],
            "hosts": [{"name": self.here}, {"name": "n2"}, {"name": "n3"}, {"name": "n4"}],
            "environment": {"PYTHONPATH": str(FILES)},
            "mpirun_arguments": ["--mca", "btl", "tcp,self", "--bind-to", "none", *one_card()],
            "remote_shell": str(self.shell),
            "remote_python": sys.executable,
            "script": str(self.script),
            **more,
        }

    def start(self, *arguments: Any, **more: Any) -> Outcome:
        return self._ansible.module("training_job", **self.options(*arguments, **more))

    def check(self, *arguments: Any, **more: Any) -> Outcome:
        return self._ansible.module("training_job", check=True, **self.options(*arguments, **more))

    def stop(self) -> Outcome:
        return self._ansible.module("training_job", run_dir=str(self.run_dir), state="stopped")

    def look(self) -> dict[str, Any]:
        """Return what training_info reports."""
        outcome = self._ansible.module("training_info", gather=["job"], run_dir=str(self.run_dir))
        assert outcome.rc == 0, outcome.msg
        return dict(outcome.result["job"])

    def ended(self) -> dict[str, Any]:
        """Return what it reports when the job does not run any more."""
        return self.until(lambda job: job["state"] != "running")

    def until(self, expected: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the job is so."""
        deadline = time.monotonic() + DEADLINE
        while not expected(job := self.look()):
            assert time.monotonic() < deadline, job
            time.sleep(0.2)
        return job

    def steps(self, rank: int) -> list[dict[str, Any]]:
        """The records of a rank, whole lines only."""
        path = self.run_dir / f"rank{rank}.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def training(self, steps: int = 2) -> dict[str, Any]:
        """Wait until every rank has made that many steps and MPI's namespace is known."""
        return self.until(lambda job: bool(job["job"]) and all(len(self.steps(rank)) >= steps for rank in range(4)))

    def processes(self, job: dict[str, Any]) -> list[int]:
        """Every process on this machine with the job's mark, and MPI's daemons of it."""
        mark, daemon, found = f"DML_RUN_ID={job['run_id']}".encode(), str(int(job["job"] or 1) - 1).encode(), []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
                state = (path / "stat").read_bytes().rsplit(b")", 1)[1].split()[0]
                is_daemon = words[0].endswith(b"orted") and daemon in words
                if state != b"Z" and (is_daemon or mark in (path / "environ").read_bytes()):
                    found.append(int(path.name))
            except OSError:
                continue
        return found


class Playbook:
    """The playbooks against the nodes."""

    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        self.folder, self.ansible = folder, Ansible(environment or {}, folder)
        self.nodes = Nodes(self.ansible, folder)
        names = [self.nodes.here, "n2", "n3", "n4"]
        local = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON}
        hosts = {"workers": {"hosts": dict.fromkeys(names, local)}}
        self.inventory = folder / "hosts.yml"
        self.inventory.write_text(yaml.safe_dump(hosts, sort_keys=False))

    def command(self, *arguments: Any, playbook: str = "train", **more: Any) -> list[str]:
        """The command that runs a playbook with the training script and its arguments."""
        variables = {
            "training_command": [sys.executable, "-u", str(self.nodes.script), *map(str, arguments)],
            "training_runs": str(self.folder / "runs"),
            "training_dir": str(self.folder / "library"),
            "training_results": str(self.folder / "results"),
            "training_remote_shell": str(self.nodes.shell),
            "training_remote_python": sys.executable,
            # One machine plays all nodes: their records lie in one folder.
            "training_watched": [self.nodes.here],
            # The jobs of other tests run here too: none of them counts as a second job.
            "continued_runs": ".*",
            **more,
        }
        playbook_file = f"playbooks/{playbook}.yml"
        return [str(BIN / "ansible-playbook"), "-i", str(self.inventory), playbook_file, "-e", json.dumps(variables)]

    def run(self, *arguments: Any, **more: Any) -> subprocess.CompletedProcess[str]:
        return self.ansible.run(self.command(*arguments, **more), timeout=600)

    def begin(self, *arguments: Any, **more: Any) -> subprocess.Popen[bytes]:
        """Begin a playbook in its own session, without waiting for it."""
        return subprocess.Popen(
            self.command(*arguments, **more),
            cwd=ROOT,
            env=self.ansible.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def shown(self, *arguments: Any, **more: Any) -> subprocess.Popen[str]:
        """Begin a playbook in its own session, to read what it shows."""
        return subprocess.Popen(
            self.command(*arguments, **more),
            cwd=ROOT,
            env=self.ansible.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run_file(self, name: str) -> dict[str, Any]:
        """Return the job in the run directory of a run; nothing while there is none."""
        path = self.folder / "runs" / name / "run.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def kill_controller(self, controller: subprocess.Popen[bytes], name: str, rank: int) -> dict[str, Any]:
        """Kill it as soon as a rank of the run has made a step; who the job is."""
        records = self.folder / "runs" / name / f"rank{rank}.jsonl"
        deadline = time.monotonic() + BEGIN_SECONDS
        try:
            while not (records.exists() and records.stat().st_size):
                assert controller.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)
        finally:
            os.killpg(controller.pid, signal.SIGKILL)
            controller.wait()
        return self.run_file(name)

    def result(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.folder / "results" / f"{name}.json").read_text()))
