"""playbooks/train.yml on nodes on which another run trains: refused, locked out, beside it, and after its end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT
from tests.integration.training import Playbook

# Jobs of other tests run on this machine too.
OURS = {"continued_runs": "(?!busy-7$)"}


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Playbook]:
    """Yield nodes on which the run busy-7 trains."""
    playbook = Playbook(tmp_path)
    started = playbook.run(100000, 0.1, training_follow=False, training_name="busy-7")
    assert started.returncode == 0, started.stdout
    playbook.nodes.run_dir = tmp_path / "runs" / "busy-7"
    playbook.nodes.training()
    yield playbook
    playbook.nodes.stop()


def outcome(playbook: Playbook, name: str, **options: Any) -> tuple[int, str]:
    ran = playbook.run(3, 0.1, training_name=name, **options)
    return ran.returncode, " ".join(ran.stdout.split())


def waits_for(playbook: Playbook, name: str) -> tuple[int, str]:
    """Run the playbook until it waits, stop the job that it waits for, and return how the playbook ended."""
    command = playbook.command(3, 0.1, training_name=name, training_wait=600, **OURS)
    environment, lines = playbook.ansible.environment, []
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        for line in running.stdout:
            lines.append(line)
            if "waits at most 600 s for its end" in line:
                assert playbook.nodes.stop().rc == 0
    return running.returncode, " ".join("".join(lines).split())


@pytest.mark.slow
def test_second_run_fails_waits_or_shares_busy_nodes(busy: Playbook) -> None:
    code, text = outcome(busy, "refused", **OURS)
    assert code != 0 and "the training job busy-7 of " in text and " (step " in text, text
    assert "stop it, with -e training_wait=SECONDS or the playbook dml.vsphere.stop" in text
    assert not (busy.folder / "runs" / "refused").exists()
    code, text = outcome(busy, "locked")
    assert code != 0 and "NodeBusyError: " in text and " trains busy-7 of " in text, text
    assert "dml.vsphere.stop -e training_name=busy-7 ends it" in text
    code, text = outcome(busy, "beside", training_share_nodes=True, **OURS)
    assert code == 0, text
    assert busy.nodes.look()["state"] == "running"
    code, text = waits_for(busy, "after")
    assert code == 0 and "The new run waits at most 600 s for its end" in text, text
    assert busy.result("after")["steps"] == 3
    manifest = json.loads((busy.folder / "results" / "after" / "manifest.json").read_text())
    assert (manifest["port"], manifest["end"]["state"]) == (29500, "finished")


# Nothing listens there.
OFF = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


@pytest.fixture
def with_one_off(tmp_path: Path) -> Playbook:
    """Return nodes of which the first one is off."""
    playbook = Playbook(tmp_path)
    inventory = yaml.safe_load(playbook.inventory.read_text())
    inventory["workers"]["hosts"] = {"n0": OFF, **inventory["workers"]["hosts"]}
    playbook.inventory.write_text(yaml.safe_dump(inventory, sort_keys=False))
    return playbook


@pytest.mark.slow
def test_node_that_is_off_does_not_block_others(with_one_off: Playbook) -> None:
    code, text = outcome(with_one_off, "others", training_nodes=[with_one_off.nodes.here, "n2"])
    assert code == 0 and "UNREACHABLE" in text, text
    code, text = outcome(with_one_off, "counted", training_nodes=["4"])
    assert code == 0, text
    manifest = json.loads((with_one_off.folder / "results" / "counted" / "manifest.json").read_text())
    assert manifest["nodes"] == [with_one_off.nodes.here, "n2", "n3", "n4"]


FIND = """
- hosts: workers
  gather_facts: false
  any_errors_fatal: true
  tasks:
    - ansible.builtin.include_role: {name: dml.vsphere.training, tasks_from: find}
    - ansible.builtin.assert: {that: training_started.run_dir is defined}
"""


@pytest.mark.slow
def test_node_that_is_off_hides_no_job(with_one_off: Playbook) -> None:
    nodes = with_one_off.nodes
    options = {"training_name": "on", "training_nodes": [nodes.here, "n2"], "training_follow": False}
    started = with_one_off.run(100000, 0.1, **options)
    assert started.returncode == 0, started.stdout
    nodes.run_dir = with_one_off.folder / "runs" / "on"
    nodes.until(lambda job: bool(job["job"]))
    (find := with_one_off.folder / "find.yml").write_text(FIND)
    words = [str(find) if each.endswith("train.yml") else each for each in with_one_off.command(training_name="on")]
    found = with_one_off.ansible.run(words, timeout=600)
    assert nodes.stop().rc == 0
    assert found.returncode == 0, found.stdout


def test_node_that_is_off_is_refused_when_needed(with_one_off: Playbook) -> None:
    code, text = outcome(with_one_off, "all")
    assert (
        code != 0 and "n0: could not train on it: no answer to the question for its facts; start it, or leave" in text
    )
    assert not (with_one_off.folder / "results" / "all").exists()
