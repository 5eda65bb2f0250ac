"""playbooks/train.yml with a launcher that rewrites the manifest of a run: its command runs nowhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.integration.training import Playbook


def run(playbook: Playbook, **options: Any) -> tuple[int, str]:
    """Run the playbook without a program, and return its exit code and output."""
    command = playbook.command(**options)
    # An empty command would have precedence over that of the earlier run.
    given = {key: value for key, value in json.loads(command[-1]).items() if key != "training_command"}
    ran = playbook.ansible.run([*command[:-1], json.dumps(given)], timeout=600)
    return ran.returncode, " ".join(ran.stdout.split())


def kept(playbook: Playbook, name: str, results: str = "results") -> dict[str, Any]:
    return dict(json.loads((playbook.folder / results / name / "manifest.json").read_text()))


def lie(playbook: Playbook, name: str) -> Path:
    """Have the node report another command; return the file that it would write."""
    path, written = playbook.folder / "runs" / name / "manifest.json", playbook.folder / "written"
    lied = {"command": ["touch", str(written)], "words": ["touch", str(written)], "framework": "pytorch_ddp"}
    path.write_text(json.dumps({**json.loads(path.read_text()), **lied}))
    return written


@pytest.mark.slow
def test_command_of_a_rewritten_manifest_never_runs(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    started = playbook.run(5, 0.1, training_follow=False, training_name="one")
    assert started.returncode == 0, started.stdout
    own = kept(playbook, "one")
    written = lie(playbook, "one")

    code, text = run(playbook, training_name="one")
    assert code == 0, text[-3000:]
    assert "differs from" in text and "manifest.json in command, framework, words. The run is followed with" in text
    followed = kept(playbook, "one")
    assert {**followed, "end": 0} == {**own, "end": 0} and followed["end"]["state"] == "finished"

    code, text = run(playbook, training_repeat="one", training_name="two")
    assert code == 0, text[-3000:]
    assert kept(playbook, "two")["command"] == own["command"] and kept(playbook, "two")["end"]["steps"] == 5
    assert not written.exists()


@pytest.mark.slow
def test_another_controller_repeats_a_reported_run_on_request(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    started = playbook.run(5, 0.1, training_follow=False, training_name="one")
    assert started.returncode == 0, started.stdout
    own = kept(playbook, "one")
    shutil.rmtree(tmp_path / "results")

    code, text = run(playbook, training_name="one")
    assert code == 0 and "This controller has no manifest of the training run one." in text, text
    assert kept(playbook, "one")["reported"] is True

    code, text = run(playbook, training_repeat="one", training_name="two")
    assert code != 0 and "Another controller started the training run one:" in text
    assert not (tmp_path / "runs" / "two").exists()

    code, text = run(playbook, training_repeat="one", training_name="two", training_accept=["manifest"])
    assert code == 0, text[-3000:]
    assert kept(playbook, "two")["command"] == own["command"] and "reported" not in kept(playbook, "two")


@pytest.mark.slow
def test_new_run_ignores_a_planted_manifest(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    planted = tmp_path / "runs" / "one" / "manifest.json"
    planted.parent.mkdir(parents=True)
    node = {"name": "one", "run_dir": "/x", "nodes": ["n2"], "command": ["touch", "x"], "transport": "tcp"}
    planted.write_text(json.dumps({**node, "outputs": "/etc", "folder": "/x"}))

    ran = playbook.run(5, 0.1, training_name="one")

    assert ran.returncode == 0, ran.stdout
    own = kept(playbook, "one")
    assert own["command"][2] == str(playbook.nodes.script) and own["folder"] == ""
    assert own["nodes"] == [playbook.nodes.here, "n2", "n3", "n4"]
