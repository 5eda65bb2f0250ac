"""Functions for the tests of Molecule's scenarios: nodes over ssh, and runs of a playbook that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import testinfra
import yaml
from testinfra.host import Host
from testinfra.utils.ansible_runner import AnsibleRunner

from lab.running import FOLDER

ROOT = Path(__file__).parents[1]
GUESTS = ROOT / "playbooks" / "guests.yml"
# The inventory that create of the scenario has written, with the connections to its nodes.
INVENTORY = str(FOLDER / f"molecule-{os.environ['MOLECULE_SCENARIO_NAME']}" / "inventory")
QUICK = {"ANSIBLE_PIPELINING": "1", "ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_NOCOLOR": "1"}
# Ansible's workers start separate sessions: only their namespace ends all of them at once.
LOOK_SECONDS = 30
LATE = 124  # the exit status of timeout
KILLABLE = ("unshare", "--pid", "--fork", "--kill-child")


def stack(name: str, folder: Path = ROOT / "stacks") -> dict[str, Any]:
    """Return a stack as its file has it."""
    return dict(yaml.safe_load((folder / f"{name}.yml").read_text()))


def workers() -> list[str]:
    """Return the names of the nodes under test."""
    return list(AnsibleRunner(INVENTORY).get_hosts("workers"))


def node(name: str) -> Host:
    """Return a node over ssh, as root."""
    return testinfra.get_host(f"ansible://{name}?ansible_inventory={INVENTORY}", sudo=True)


def run(host: Host, script: str) -> str:
    """Return the output of a script that must succeed."""
    done = host.run(f"export LC_ALL=C.UTF-8; {script}")
    assert done.rc == 0, done
    return str(done.stdout).strip()


def proof(host: Host, role: str) -> dict[str, Any]:
    """Return the proof that a role wrote on a node."""
    return dict(json.loads(run(host, f"cat /etc/ansible/facts.d/dml_{role}.fact")))


def debs(host: Host, names: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages that dpkg has installed."""
    output = run(host, "dpkg-query --show --showformat '${Package} ${Version}\\n' " + " ".join(names))
    return dict(line.split() for line in output.splitlines())


def start(
    *arguments: str | Path, cache: Path | None = None, out: int | IO[str] = subprocess.PIPE
) -> subprocess.Popen[str]:
    """Start ansible-playbook on the nodes; killing it leaves no process on this machine."""
    environment = {**os.environ, **QUICK, **({"DML_CACHE_DIR": str(cache)} if cache else {})}
    return subprocess.Popen(
        [*KILLABLE, "ansible-playbook", "-i", INVENTORY, *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        text=True,
    )


def meet(running: subprocess.Popen[str], host: Host, moment: str, then: str = "true") -> bool:
    """Wait for a condition on a node while a run lasts, and then run a command there at once."""
    script = f"until {moment}; do sleep 0.05; done; {then}"
    while running.poll() is None:
        met = host.run(f"timeout {LOOK_SECONDS} sh -c %s", script)
        if met.rc != LATE:
            return bool(met.rc == 0)
    return False
