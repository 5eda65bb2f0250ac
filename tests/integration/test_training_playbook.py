"""playbooks/train.yml with real mpirun: live lines, the result and the proof of its transport."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.training import Playbook


def watchers(run_dir: Path) -> list[str]:
    """Return what watches a run, on all nodes, which this machine plays."""
    found = [path.name for path in Path("/proc").glob("[0-9]*") if is_watcher(path, run_dir)]
    return [name for name in found if name != str(os.getpid())]


def is_watcher(process: Path, run_dir: Path) -> bool:
    try:
        words = (process / "cmdline").read_text(errors="replace")
    except OSError:  # it has ended
        return False
    return str(run_dir) in words and "class Folder" in words


@pytest.fixture
def playbook(tmp_path: Path) -> Playbook:
    return Playbook(tmp_path)


@pytest.mark.slow
def test_shows_and_measures_a_training_run(playbook: Playbook) -> None:
    ran = playbook.run(150, 0.05, training_steps=150, training_name="one")
    assert ran.returncode == 0, ran.stdout
    assert "step 150 of 150" in ran.stdout
    assert "images/s" in ran.stdout
    assert "slowest rank" in ran.stdout
    result = playbook.result("one")
    assert (result["nodes"], result["gpus"], result["transport"], result["steps"]) == (4, 4, "tcp", 150)
    assert 0 < result["images_per_sec"] < 4 * 8 / 0.05
    assert result["proof"]["ok"]
    assert result["job"]["state"] == "finished"


@pytest.mark.slow
def test_starts_a_run_that_is_followed_later(playbook: Playbook) -> None:
    arguments, options = (150, 0.05), {"training_steps": 150, "training_name": "one"}
    started = playbook.run(*arguments, **options, training_follow=False)
    assert started.returncode == 0, started.stdout
    assert "The training run one continues without this command" in " ".join(started.stdout.split())
    assert not (playbook.folder / "results" / "one.json").exists()
    job = playbook.run_file("one")
    followed = playbook.run(*arguments, **options)
    assert followed.returncode == 0, followed.stdout
    assert playbook.run_file("one") == job, "the second command follows the job of the first"
    assert (playbook.result("one")["steps"], playbook.result("one")["job"]["state"]) == (150, "finished")


@pytest.mark.slow
def test_new_controller_follows_the_job_without_missing_steps(playbook: Playbook) -> None:
    arguments, options = (600, 0.05), {"training_steps": 600, "training_name": "one", "training_silence": 60}
    job = playbook.kill_controller(playbook.begin(*arguments, **options), "one", rank=3)
    deadline = time.monotonic() + 30
    while watchers(playbook.folder / "runs" / "one"):
        assert time.monotonic() < deadline, "the watch outlives who asked for it"
        time.sleep(0.2)
    ran = playbook.run(*arguments, **options)
    assert ran.returncode == 0, ran.stdout
    result = playbook.result("one")
    assert result["job"]["launcher"] == job["launcher"] == playbook.run_file("one")["launcher"]
    assert (result["steps"], result["job"]["state"]) == (600, "finished")
    records = [json.loads(line) for line in Path(result["records"]).read_text().splitlines()]
    for rank in range(4):
        assert [record["step"] for record in records if record["rank"] == rank] == list(range(1, 601))


@pytest.mark.slow
def test_waits_for_a_job_beyond_its_last_step(playbook: Playbook) -> None:
    ran = playbook.run(1600, 0.05, training_steps=5, training_name="one")
    assert ran.returncode == 0, ran.stdout
    assert playbook.result("one")["job"]["state"] == "finished"
    assert len((playbook.folder / "runs" / "one" / "rank3.jsonl").read_text().splitlines()) == 1600


@pytest.mark.slow
@pytest.mark.parametrize("pause", [(), ("pause", 41)], ids=["at once", "after a pause"])
def test_records_count_more_steps_than_estimated(playbook: Playbook, pause: tuple[Any, ...]) -> None:
    ran = playbook.run(60, 0.5, *pause, training_steps=40, training_name="one")

    assert ran.returncode == 0, ran.stdout
    result = playbook.result("one")
    assert (result["job"]["state"], result["steps"]) == ("finished", 60)
    assert len((playbook.folder / "runs" / "one" / "rank3.jsonl").read_text().splitlines()) == 60
    manifest = json.loads((playbook.folder / "results" / "one" / "manifest.json").read_text())
    assert (manifest["end"]["state"], manifest["end"]["steps"]) == ("finished", 60)
    if not pause:
        # The pace is shown on, and the state of the job is only read again after the last step.
        assert "training: step 60, " in ran.stdout
        assert ran.stdout.count("FAILED - RETRYING") < 5


@pytest.mark.slow
@pytest.mark.slow
def test_silent_script_outlasts_the_silence_limit(playbook: Playbook) -> None:
    playbook.nodes.script.write_text("import sys, time; time.sleep(float(sys.argv[1]))")
    ran = playbook.run(40, training_silence=5, training_name="quiet")
    text = " ".join(ran.stdout.split())
    assert ran.returncode == 0, text
    assert "The training run quiet continues if this command ends" in text
    assert "-e training_name=quiet" in text
    assert "dml.vsphere.stop -e training_name=quiet" in text
    result = playbook.result("quiet")
    assert (result["asked"]["framework"], result["asked"]["options"]) == ("", [])
    assert "no step records on 4 ranks of 4 nodes" in text
