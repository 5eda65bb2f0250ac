"""Two nodes on which playbooks/train.yml trains for real, by the stack lab-cpu, and what is seen of it from outside."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from lab.running import Lab
from tests.integration.ansible import Ansible
from tests.lab.places import LOGIN, ansible_login

NAMES = ("n1", "n2")
USER = "debian"
PYTHON = "/opt/dml/horovod/bin/python"
RUNS = "/var/lib/dml/runs"
SERVED = "/srv/served"
# Horovod is compiled where no earlier lab has left it.
BUILD_SECONDS, RUN_SECONDS, STEP_SECONDS = 3600, 900, 300
JOBS = "sudo grep -las DML_RUN_ID= /proc/[0-9]*/environ; pgrep -x 'mpirun|orted'; pgrep -f '[s]upervisor.py'; true"
WATCHERS = "pgrep -f 'class [F]older'; true"
NODES = {"node_time_sync": "host", "node_limits": {"nofile": 4096}, "horovod_venv_shared": True}


class Cluster:
    """The nodes and the playbooks; ``served`` is a folder of this machine that both nodes read as SERVED."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder, self.served = lab, folder, folder / "served"
        self.ansible, self.runs = Ansible(lab.environment, folder), dict[str, str]()
        self.addresses = {name: str(lab.node(name, USER)["address"]) for name in NAMES}
        hosts = {name: {"ansible_host": address} for name, address in self.addresses.items()}
        self.inventory = folder / "hosts.yml"
        self.inventory.write_text(
            yaml.safe_dump({"workers": {"hosts": hosts, "vars": {**ansible_login(lab.key, USER), **NODES}}})
        )

    def build(self, stack: str = "lab-cpu", **more: Any) -> None:
        """Everything that training needs, by the playbook for guests."""
        result = json.dumps({"stack": stack, **more})
        built = self.ansible.playbook(
            "playbooks/guests.yml", "-i", str(self.inventory), "-e", result, timeout=BUILD_SECONDS
        )
        assert built.rc == 0, built.out

    def inside(self, name: str, command: str, check: bool = True, seconds: float = STEP_SECONDS) -> str:
        """Return what a command says on a node."""
        login = ["ssh", *LOGIN, "-i", str(self.lab.key), f"{USER}@{self.addresses[name]}", command]
        done = subprocess.run(login, capture_output=True, text=True, timeout=seconds, check=False)
        assert done.returncode == 0 or not check, f"{command}: {done.stdout} {done.stderr}"
        return done.stdout

    def harm(self, name: str, kind: str) -> None:
        """Do something to a node that it does not expect."""
        self.lab.hypervisor.ask("POST", f"/nodes/{name}/harm", {"kind": kind})

    def train(self, name: str, **variables: Any) -> tuple[str, dict[str, Any]]:
        """A run that ends well: what the playbook said, and the result that it kept."""
        code, result = self.end(self.begin(name, **variables))
        assert code == 0, result
        return result, dict(json.loads((self.folder / "results" / f"{name}.json").read_text()))

    def begin(self, name: str, **variables: Any) -> subprocess.Popen[str]:
        """Begin a run without waiting for it."""
        options = {"training_name": name, "training_results": str(self.folder / "results"), **variables}
        self.runs[name] = f"{variables.get('training_runs', RUNS)}/{name}"
        return self.ansible.start("playbooks/train.yml", "-i", str(self.inventory), "-e", json.dumps(options))

    def end(self, running: subprocess.Popen[str]) -> tuple[int, str]:
        """Wait for the end of a run: its code, and what it said, in one line."""
        output, _nothing = running.communicate(timeout=RUN_SECONDS)
        return running.returncode, " ".join(output.replace("\\n", " ").split())

    def records(self, name: str) -> list[dict[str, Any]]:
        """Return what arrived of a run at the controller by now, by its last watch."""
        watches = sorted(
            self.folder.glob(f"results/{name}/watch-*/records.jsonl"), key=lambda path: path.stat().st_mtime
        )
        lines = watches[-1].read_text().split("\n")[:-1] if watches else []
        return [json.loads(line) for line in lines]

    def steps(self, name: str, rank: int) -> list[dict[str, Any]]:
        """The optimizer steps of a rank, without the marks of phases."""
        return [one for one in self.records(name) if one["rank"] == rank and "mark" not in one]

    def summaries(self, name: str) -> list[dict[str, Any]]:
        """Return the summary of each rank of our benchmark, in the order of ranks."""
        return [
            json.loads(self.inside(node, f"cat {RUNS}/{name}/summary{rank}.json")) for rank, node in enumerate(NAMES)
        ]

    def started(self, name: str) -> float:
        """When the job began; 0 while it has not."""
        result = self.inside("n1", f"cat {self.runs[name]}/run.json", check=False)
        return float(json.loads(result)["started"]) if result else 0.0

    def ended(self, name: str) -> float:
        """When the job ended, as its supervisor noted it."""
        return float(json.loads(self.inside("n1", f"cat {self.runs[name]}/end.json"))["ended"])

    def trained(self, name: str, running: subprocess.Popen[str], step: int = 5) -> None:
        """Wait until both ranks have come so far."""

        def is_so() -> bool:
            assert running.poll() is None, running.communicate()
            return all(any(one["step"] >= step for one in self.steps(name, rank)) for rank in (0, 1))

        await_(is_so, f"both ranks of {name} come to step {step}")

    def left(self) -> list[str]:
        """Every process of any job on the nodes that answer."""
        return self._found(JOBS)

    def watchers(self, name: str) -> list[str]:
        """Return what watches a run: on the nodes that answer, and on this machine, by the lab's key."""
        found = self._found(WATCHERS)
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_text(errors="replace")
            except OSError:  # it has ended
                continue
            # Processes of nodes show here too, as those of other labs do; they have no such key.
            if self.runs[name] in words and str(self.lab.key) in words:
                found.append(f"here: {words}")
        return found

    def _found(self, command: str) -> list[str]:
        return [f"{node}: {line}" for node in NAMES for line in self.inside(node, command, check=False).splitlines()]


def await_(true: Callable[[], bool], what: str, seconds: float = STEP_SECONDS) -> None:
    """Wait for something to be true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.2)
