"""playbooks/train.yml with a launcher that is rebooted: the next attempt starts once it answers again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import yaml

from tests.integration.training import Playbook

# The first attempt does not end by itself.
TRAIN = """
import os, sys, time
import dml_records
records = dml_records.start()
for number in range(1, 5 if os.environ["DML_RECORDS"].endswith("one-2") else 100000):
    time.sleep(0.05)
    records.step(images=1, loss=1.0)
"""
# A stand-in for Ansible's ssh to this machine, which does not answer while a file exists.
SSH = """#!/bin/sh
if [ -e {folder}/off ]; then echo "ssh: connect to host vm port 22: No route to host" >&2; exit 255; fi
for word; do :; done
exec sh -c "$word"
"""


@pytest.fixture
def playbook(tmp_path: Path) -> Playbook:
    """Return the playbooks with a launcher that is reached by ssh."""
    made = Playbook(tmp_path)
    made.nodes.script.write_text(TRAIN)
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH.format(folder=tmp_path))
    ssh.chmod(0o755)
    inventory = yaml.safe_load(made.inventory.read_text())
    by_ssh = {"ansible_connection": "ssh", "ansible_ssh_executable": str(ssh), "ansible_ssh_transfer_method": "piped"}
    inventory["workers"]["hosts"][made.nodes.here].update({**by_ssh, "training_reach": ["sh", "-c"]})
    made.inventory.write_text(yaml.safe_dump(inventory, sort_keys=False))
    return made


def power_off(playbook: Playbook) -> None:
    """Have the launcher end with all its processes, without a word to anybody."""
    playbook.nodes.run_dir = playbook.folder / "runs" / "one"
    job = playbook.nodes.training()
    (playbook.folder / "off").touch()
    for name in ("supervisor", "launcher"):
        os.kill(playbook.run_file("one")[name]["pid"], signal.SIGKILL)
    for pid in playbook.nodes.processes(job):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_rebooted_launcher_starts_the_next_attempt(playbook: Playbook) -> None:
    with playbook.shown(training_name="one", training_attempts=2, training_attempt_wait=300) as controller:
        assert controller.stdout is not None
        lines: list[str] = []
        for line in controller.stdout:
            if "training: step" in line and not any("training: step" in earlier for earlier in lines):
                power_off(playbook)
            lines.append(line)
            if "Wait for the launcher of the training job" in line:
                (playbook.folder / "off").unlink(missing_ok=True)
        text = " ".join("".join(lines).split())
    assert controller.returncode == 0, text
    assert "Attempt 2 of 2: the training run one failed with a machine: mpirun is gone and left no exit code" in text
    assert playbook.result("one-2")["job"]["state"] == "finished"
