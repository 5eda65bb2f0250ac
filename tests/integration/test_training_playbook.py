# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""playbooks/train.yml with real mpirun: live lines, the result and the proof of its transport."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT
from tests.integration.ansible import BIN, Ansible
from tests.integration.training import Nodes


class Playbook:
    """The playbook against the nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ansible = folder, Ansible({}, folder)
        self.nodes = Nodes(self.ansible, folder)
        names = [self.nodes.here, "n2", "n3", "n4"]
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        hosts = {"workers": {"hosts": dict.fromkeys(names, local)}}
        self.inventory = folder / "hosts.yml"
        self.inventory.write_text(yaml.safe_dump(hosts, sort_keys=False))

    def run(self, *arguments: Any, playbook: str = "train", **more: Any) -> subprocess.CompletedProcess[str]:
        variables = {
            "training_command": [sys.executable, "-u", str(self.nodes.script), *map(str, arguments)],
            "training_runs": str(self.folder / "runs"),
            "training_name": "one",
            "training_dir": str(self.folder / "library"),
            "training_results": str(self.folder / "results"),
            "training_remote_shell": str(self.nodes.shell),
            "training_remote_python": sys.executable,
            # One machine plays all nodes: their records lie in one folder.
            "training_watched": [self.nodes.here],
            **more,
        }
        command = [str(BIN / "ansible-playbook"), "-i", str(self.inventory), f"playbooks/{playbook}.yml"]
        environment = {**os.environ, **self.ansible.environment}
        return subprocess.run(
            [*command, "-e", json.dumps(variables)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def result(self, name: str = "one") -> dict[str, Any]:
        return dict(json.loads((self.folder / "results" / f"{name}.json").read_text()))


@pytest.fixture
def playbook(tmp_path: Path) -> Playbook:
    return Playbook(tmp_path)


@pytest.mark.slow
def test_a_training_run_is_shown_and_measured(playbook: Playbook) -> None:
    ran = playbook.run(150, 0.05, training_steps=150)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "step 150 of 150" in ran.stdout
    assert "images/s" in ran.stdout
    assert "slowest rank" in ran.stdout
    result = playbook.result()
    assert (result["nodes"], result["gpus"], result["transport"], result["steps"]) == (4, 4, "tcp", 150)
    assert 0 < result["images_per_sec"] < 4 * 8 / 0.05
    assert result["proof"]["ok"]
    assert result["job"]["state"] == "finished"
