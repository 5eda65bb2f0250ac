"""playbooks/vmotion_test.yml killed as by kill -9: the next run goes on where it was, and begins no move twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.durable.program_journal import read
from plugins.module_utils.watch.watcher import is_watched
from tests.integration.ansible import Outcome
from tests.integration.killing import has_started, kill_all, tree, wait_for
from tests.integration.test_vmotion_test import LONG, WORKERS, Trial, trial
from tests.integration.test_worker_rules import by_hand, config, overrides

__all__ = ["trial"]  # the fixture


def folder(trial: Trial) -> Path:
    """The one folder of a test."""
    (found,) = (trial.folder / "tests").iterdir()
    return found


def entries(trial: Trial) -> list[str]:
    """The keys of the journal so far."""
    return [entry["key"] for path in (trial.folder / "tests").glob("*/journal.jsonl") for entry in read(path)]


def has(trial: Trial, *last: str) -> Callable[[], bool]:
    """Return whether the journal has these keys, one right after the other."""

    def is_shown() -> bool:
        found = entries(trial)
        return any(tuple(found[at : at + len(last)]) == last for at in range(len(found)))

    return is_shown


def holders(path: Path) -> list[int]:
    """The processes that have a file open."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == str(path):
                found.append(int(link.parts[2]))
        except OSError:  # it ended meanwhile
            continue
    return found


def killed(trial: Trial, when: Callable[[], bool], kill: Any = kill_all, **given: Any) -> list[int]:
    """Begin the test, and kill its controller at a moment; what is left of it."""
    running: subprocess.Popen[str] = trial.begin(**given)
    wait_for(lambda: when() or running.poll() is not None, LONG)
    assert running.poll() is None, running.communicate()[0]
    return list(kill(running))


def goes_on(trial: Trial, workers: list[str], **given: Any) -> dict[str, Any]:
    """Run the playbook again: it ends the test, and every worker has moved once; the verdict."""
    return has_ended(trial, workers, trial.run(vmotion_test_workers=workers, **given))


def has_ended(trial: Trial, workers: list[str], done: Outcome) -> dict[str, Any]:
    """Check the end of a continued test, and return its verdict."""
    assert done.rc == 0, done.out
    assert f"continues the test in {folder(trial)}" in done.out
    assert sorted(trial.moved()) == workers, "a move was started twice, or never"
    assert entries(trial)[-1] == "end"
    assert trial.free()
    assert not is_watched(folder(trial) / "records.jsonl")
    verdict = dict(json.loads(trial.kept("verdict.json")))
    assert (verdict["verdict"], verdict["moved"], verdict["breaches"]) == ("continuous", "all", [])
    assert json.loads(trial.kept("versions.json"))["collection"] == "1.1.0"
    return verdict


@pytest.mark.slow
def test_resumes_after_a_kill_during_a_move(trial: Trial) -> None:
    """The server goes on with the move; the next controller finds it, ended or under way, and begins no second one."""
    trial.train()
    by_hand(trial.vcenter, overrides)
    before = str(config(trial.vcenter).drsVmConfig)
    trial.vcenter.set_host("esx01.lab", vmotion_seconds=5)
    killed(trial, has_started(trial.vcenter, "RelocateVM_Task"), vmotion_test_workers=WORKERS[:1])
    assert entries(trial)[-1] == "request 1 1"
    left = holders(folder(trial) / "records.jsonl")
    assert left, "a watch outlives its controller"
    password = trial.vcenter.connection["password"].encode()
    assert not [pid for pid in left for one in tree(pid) if password in Path(f"/proc/{one}/environ").read_bytes()]
    assert str(config(trial.vcenter).drsVmConfig) != before
    done = trial.run(vmotion_test_workers=WORKERS[:1])
    assert "looks up in vCenter the move worker01: esx01.lab -> esx05.lab" in done.out, done.out
    verdict = has_ended(trial, WORKERS[:1], done)
    assert verdict["unproven"] == []
    (move,) = json.loads(trial.kept("moves.json"))
    assert (move["vsphere"]["host"], move["attached"]) == ({"before": "esx01.lab", "after": "esx05.lab"}, True)
    assert str(config(trial.vcenter).drsVmConfig) == before, "the DRS settings of the workers are as before"
    again = trial.ansible.playbook(
        "playbooks/judge.yml",
        "-e",
        json.dumps({"folder": str(trial.folder), "vmotion_test_limits": {"max_gap_s": 0.01}}),
    )
    assert again.rc == 0, again.out
    assert json.loads(trial.kept("verdict-2.json"))["verdict"] == "broken"
    assert json.loads(trial.kept("verdict.json")) == verdict, "the earlier verdict stays as it was"


@pytest.mark.slow
def test_resumes_after_controller_and_watch_are_killed(trial: Trial) -> None:
    trial.train()
    killed(trial, has(trial, "warm"), vmotion_test_workers=WORKERS[:1])
    records = folder(trial) / "records.jsonl"
    watching = holders(records)
    assert watching, "a watch outlives its controller"
    for pid in watching:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_watched(records))
    seen = trial.nodes.steps(0)[-1]["step"]
    wait_for(lambda: trial.nodes.steps(0)[-1]["step"] > seen + 5)
    verdict = goes_on(trial, WORKERS[:1])
    assert [text.partition(":")[0] for text in verdict["unproven"]] == ["observer's clock"], "nobody watched meanwhile"


@pytest.mark.slow
def test_refuses_a_second_run_of_the_same_test(trial: Trial) -> None:
    trial.train()
    trial.vcenter.set_host("esx01.lab", vmotion_seconds=20)
    running = trial.begin(vmotion_test_workers=WORKERS[:1])
    wait_for(has_started(trial.vcenter, "RelocateVM_Task"))
    second = trial.run(vmotion_test_workers=WORKERS[:1])
    assert second.rc == 2
    assert "another process writes it, because its run is in progress" in " ".join(second.out.split())
    assert running.communicate(timeout=LONG)[0]
    assert running.returncode == 0
    assert trial.moved() == WORKERS[:1]
