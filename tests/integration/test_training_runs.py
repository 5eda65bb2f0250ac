"""playbooks/runs.yml and stop.yml, and a run that another controller follows by its name, with real mpirun."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.training import Playbook


@pytest.fixture
def playbook(tmp_path: Path) -> Playbook:
    return Playbook(tmp_path)


def words(playbook: Playbook, name: str, **options: Any) -> tuple[int, str]:
    """Run a playbook that needs root, and return its exit code and output."""
    ran = playbook.run(playbook=name, ansible_become=False, **options)
    return ran.returncode, " ".join(ran.stdout.split())


def with_lost_workers(playbook: Playbook) -> str:
    """Return the inventory with sixty more workers, the first of them too; the file ``contacted`` shows a contact."""
    ssh = playbook.folder / "ssh"
    ssh.write_text(f"#!/bin/sh\ntouch {playbook.folder}/contacted\nexit 255\n")
    ssh.chmod(0o755)
    hosts = yaml.safe_load(playbook.inventory.read_text())["workers"]["hosts"]
    lost = {f"a{number}": {"ansible_ssh_executable": str(ssh)} for number in range(60)}
    return yaml.safe_dump({"workers": {"hosts": {**lost, **hosts}}}, sort_keys=False)


def kept(folder: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((folder / name / "manifest.json").read_text()))


@pytest.mark.slow
def test_another_controller_lists_and_follows_a_run(playbook: Playbook) -> None:
    started = playbook.run(600, 0.1, training_follow=False, training_name="one-7", training_environment={"A": "b"})
    assert started.returncode == 0, started.stdout
    assert "dml.vsphere.stop -e training_name=one-7" in " ".join(started.stdout.split())
    launched = kept(playbook.folder / "results", "one-7")
    assert launched["nodes"] == [playbook.nodes.here, "n2", "n3", "n4"]
    assert "end" not in launched and "b" not in launched["asked"]["environment"].values()
    code, listed = words(playbook, "runs")
    assert code == 0 and f"one-7 {launched['asked_by']} " in listed and " running " in listed, listed
    other = playbook.folder / "other"
    followed = playbook.run(training_command=[], training_name="one-7", training_results=str(other))
    assert followed.returncode == 0, followed.stdout
    manifest = kept(other, "one-7")
    assert (manifest["end"]["state"], manifest["end"]["steps"], manifest["command"]) == (
        "finished",
        600,
        launched["command"],
    )
    assert manifest["end"]["images_per_sec"] > 0
    assert (manifest["asked_by"], manifest["started"]) == (launched["asked_by"], launched["started"])
    assert json.loads((other / "one-7.json").read_text())["asked"] == launched["asked"]
    code, compared = words(playbook, "runs", training_results=str(other), training_compare="one-7,one-7")
    assert code == 0 and "all other settings equal equal" in compared, compared


def reads_ask_no_other_worker(playbook: Playbook) -> None:
    playbook.inventory.write_text(with_lost_workers(playbook))
    code, result = words(playbook, "logs", training_name="two-7")
    assert code == 0 and "The training run two-7 is running." in result, result
    code, result = words(playbook, "exec", training_name="two-7", training_exec=["sh", "-c", "echo $0 '{ }'; pwd"])
    assert code == 0 and f"n4: {playbook.folder}/runs/two-7" in result and "n2: sh { }" in result, result


@pytest.mark.slow
def test_stops_a_run_by_its_name(playbook: Playbook) -> None:
    started = playbook.run(100000, 0.1, training_follow=False, training_name="two-7")
    assert started.returncode == 0, started.stdout
    playbook.nodes.run_dir = playbook.folder / "runs" / "two-7"
    job = playbook.nodes.training()
    for name, sentence in (("", "name a run that"), ("two-8", "No worker runs a training job with the name two-8")):
        code, result = words(playbook, "stop", training_name=name)
        assert code != 0 and sentence in result
    reads_ask_no_other_worker(playbook)
    path, by = (
        playbook.folder / "results" / "two-7" / "manifest.json",
        kept(playbook.folder / "results", "two-7")["asked_by"],
    )
    path.write_text(path.read_text().replace(f'"{by}"', '"anna@there"'))
    code, result = words(playbook, "stop", training_name="two-7")
    assert code == 0, result
    assert playbook.nodes.look()["state"] == "stopped"
    assert playbook.nodes.processes(job) == []
    end = kept(playbook.folder / "results", "two-7")["end"]
    assert end["state"] == "stopped" and end["steps"] > 0 and end["cause"] == f"stopped by {by}", "not by its starter"
    code, result = words(playbook, "runs", training_compare="two-7,two-7")
    assert code == 0 and " stopped " in result, result
    assert not (playbook.folder / "contacted").exists(), "no other worker was asked"
    code, result = words(playbook, "logs", training_name="two-8")
    assert code != 0 and (playbook.folder / "contacted").exists(), "all are asked for an unknown run"
