"""playbooks/observe.yml: others move workers of a real mpirun; each move is found, attributed, judged and reported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from lab.simulator import USERNAME
from plugins.module_utils.watch.watcher import is_watched
from tests.govc import output
from tests.integration.ansible import PYTHON
from tests.integration.killing import kill_all, tree, wait_for, wait_for_end
from tests.integration.releases import NEWEST
from tests.integration.test_vmotion_test import LONG, PROGRAM, WORKERS, Trial, trial
from tests.integration.workers import host

__all__ = ["trial"]  # the fixture
pytestmark = [pytest.mark.release(NEWEST), pytest.mark.parametrize("encryption", ["on"])]

# No rank runs on the last worker.
BUSY, IDLE = WORKERS[:3], WORKERS[3]


class Observation:
    """The playbook observe on the cluster of a job whose nodes are all this machine."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.inventory = trial, trial.folder / "observe.yml"
        here = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON, "ansible_become": False}
        groups = {"clusters": {"hosts": {"gpu": here}}, "workers": {"hosts": dict.fromkeys(WORKERS, here)}}
        self.inventory.write_text(json.dumps({"all": {"children": groups}}))
        # The jobs of other tests run on this machine too.
        trial.nodes.run_dir = trial.folder / f"run-{uuid4()}"
        started = trial.nodes.start(
            command=[sys.executable, "-u", str(PROGRAM)], hosts=[{"name": name} for name in BUSY]
        )
        assert started.rc == 0, started.out
        trial.nodes.until(lambda job: bool(job["job"]) and len(trial.nodes.steps(2)) >= len(BUSY))
        trial.vcenter.clear()

    def begin(self, **variables: Any) -> subprocess.Popen[str]:
        given = {
            "observe_run": self.trial.nodes.run_dir.name,
            "observe_interval": 3,
            "observe_seconds": LONG,
            "training_watched": BUSY[:1],
            "vmotion_test_dir": str(self.trial.folder / "tests"),
            "vmotion_test_warmup_steps": 2,
            "vmotion_test_steps": 5,
            "vmotion_test_limits": {"max_gap_s": 60, "resume_deadline_s": 30},
            **variables,
        }
        return self.trial.ansible.start("playbooks/observe.yml", "-i", str(self.inventory), "-e", json.dumps(given))

    def values(self, key: str) -> list[dict[str, Any]]:
        """Return the values in the journals whose keys begin so."""
        found = (self.trial.folder / "tests").glob("*/journal.jsonl")
        entries = [json.loads(line) for path in found for line in path.read_text().splitlines(keepends=False)]
        return [entry["value"] for entry in entries if entry["key"].startswith(key)]

    def has(self, key: str) -> bool:
        """Return whether a journal has the key."""
        return bool(self.values(key))

    def until_judged(self, running: subprocess.Popen[str], times: int = 1) -> None:
        """Wait until the job was judged that often from now on."""
        before = len(self.values("judged "))
        wait_for(lambda: len(self.values("judged ")) >= before + times or running.poll() is not None, LONG)
        assert running.poll() is None, running.communicate()[0]

    def found(self, name: str) -> bool:
        readings = self.values("others ")
        return bool(readings) and any(move["worker"] == name and move["completed"] for move in readings[-1]["moves"])


@pytest.mark.slow
def test_attributes_and_judges_events_caused_by_other_users(trial: Trial) -> None:
    watched = Observation(trial)
    running = watched.begin()
    watched.until_judged(running)
    output(trial.vcenter, "vm.migrate", "-host", "esx05.lab", BUSY[0])
    wait_for(lambda: watched.found(BUSY[0]) or running.poll() is not None, LONG)
    output(trial.vcenter, "vm.power", "-off", IDLE)
    output(trial.vcenter, "vm.power", "-on", IDLE)
    theirs = len(trial.vcenter.writes())
    wait_for(lambda: bool(watched.values("others ")[-1]["power"]) or running.poll() is not None, LONG)
    # Steps after the move, without which it cannot be judged.
    watched.until_judged(running, 2)
    ask_for_end(trial)
    text = " ".join(running.communicate(timeout=LONG)[0].split())
    assert running.returncode == 0, text
    assert f"{BUSY[0]}: esx01.lab -> esx05.lab, moved by {USERNAME}" in text
    assert f"{IDLE}: VmPoweredOffEvent" in text and f"by {USERNAME}" in text
    verdict = json.loads(trial.kept("verdict.json"))
    assert (verdict["verdict"], verdict["breaches"]) == ("continuous", [])
    (judged,) = verdict["moves"]
    assert (judged["worker"], judged["ranks"], judged["moved"]) == (BUSY[0], [0], True) and judged["gap_s"] is not None
    notes = " ".join(verdict["notes"])
    assert f"moved by others: {USERNAME} moved {BUSY[0]} from esx01.lab to esx05.lab" in notes and IDLE in notes
    assert BUSY[0] in trial.kept("timeline.html") and verdict["cost"]["goodput"] > 0
    assert len(trial.vcenter.writes()) == theirs, "the observation wrote to vCenter"


JUDGED = '"key": "judged 1"'
HOOK = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"


@pytest.mark.slow
def test_signal_ends_with_report_and_breach_runs_hook(trial: Trial) -> None:
    watched, report = Observation(trial), trial.folder / "reported.jsonl"
    running = watched.begin(observe_hook=[sys.executable, "-c", HOOK, str(report)])
    watched.until_judged(running, 2)
    every = tree(running.pid)
    os.kill(running.pid, signal.SIGTERM)
    running.communicate(timeout=LONG)
    wait_for_end(every)
    (end,) = [value for value in watched.values("end") if isinstance(value, dict)]
    assert end["passed"] and json.loads(trial.kept("verdict.json"))["verdict"] == "continuous"
    assert "continuous" in trial.kept("timeline.html") and not report.exists()
    assert trial.vcenter.writes() == [] and trial.nodes.look()["state"] == "running"
    again = watched.begin(
        observe_hook=[sys.executable, "-c", HOOK, str(report)], vmotion_test_dir=str(trial.folder / "tests" / "more")
    )
    wait_for(lambda: bool(list((trial.folder / "tests" / "more").glob("*/records.jsonl"))), LONG)
    wait_for(lambda: JUDGED in _journal(trial.folder / "tests" / "more") or again.poll() is not None, LONG)
    os.kill(trial.nodes.steps(2)[-1]["pid"], signal.SIGKILL)
    text = again.communicate(timeout=LONG)[0]
    assert again.returncode == 2 and "broken" in text, text
    (call,) = [json.loads(line) for line in report.read_text().splitlines()]
    assert call["verdict"] == "broken" and {event["kind"] for event in call["events"]} == {"broken"}


def _journal(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("*/journal.jsonl"))


@pytest.mark.slow
def test_report_keeps_every_move_after_records_are_dropped(trial: Trial) -> None:
    watched = Observation(trial)
    running = watched.begin(observe_keep_seconds=20, vmotion_test_limits={"max_gap_s": 60, "resume_deadline_s": 5})
    # The first records are dropped before the move.
    wait_for(lambda: any(watched.values("rolled")) or running.poll() is not None, LONG)
    output(trial.vcenter, "vm.migrate", "-host", "esx05.lab", BUSY[0])
    wait_for(lambda: host(trial.vcenter, BUSY[0]) == "esx05.lab")
    wait_for(lambda: any(roll["moves"] for roll in watched.values("rolled")) or running.poll() is not None, LONG)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=LONG)
    verdict = json.loads(trial.kept("verdict.json"))
    (window,) = [one for one in verdict["earlier"] if one["moves"]]
    assert [move["worker"] for move in window["moves"]] == [BUSY[0]] and window["rows"][0]["gap_s"] is not None
    assert verdict["windows"] >= 3 and verdict["verdict"] == "continuous", verdict
    page = next(name for name in window["files"] if name.endswith(".html"))
    assert "esx05.lab" in trial.kept(page) and BUSY[0] in trial.kept("timeline.html")


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["measured", "judged 2", "end of the watch"])
def test_observation_continues_after_its_controller_is_killed(trial: Trial, moment: str) -> None:
    """The next one finds the move of others once, calls the command once for it, and judges the job as continuous."""
    watched, calls = Observation(trial), trial.folder / "calls.jsonl"
    options = {"observe_hook": [sys.executable, "-c", HOOK, str(calls)], "observe_stall_seconds": 0.001}
    running = watched.begin(**options)
    if moment != "measured":
        watched.until_judged(running)
        output(trial.vcenter, "vm.migrate", "-host", "esx05.lab", BUSY[0])
        wait_for(lambda: watched.values("hook ") or running.poll() is not None, LONG)
    if moment == "end of the watch":
        ask_for_end(trial)
    wait_for(lambda: watched.has(moment) or running.poll() is not None, LONG)
    assert running.poll() is None, running.communicate()[0]
    kill_all(running)
    theirs = trial.vcenter.writes()

    again = watched.begin(**options)
    if moment != "end of the watch":
        watched.until_judged(again, 2)
        ask_for_end(trial)
    text = " ".join(again.communicate(timeout=LONG)[0].split())

    assert again.returncode == 0, text
    verdict = json.loads(trial.kept("verdict.json"))
    assert (verdict["verdict"], verdict["breaches"]) == ("continuous", [])
    moved = [] if moment == "measured" else [BUSY[0]]
    assert [move["worker"] for move in verdict["moves"]] == moved
    assert len(calls.read_text().splitlines() if calls.exists() else []) == len(moved)
    assert trial.vcenter.writes() == theirs, "the observation wrote to vCenter"
    assert not is_watched(next((trial.folder / "tests").glob("gpu-*")) / "records.jsonl")


def ask_for_end(trial: Trial) -> None:
    """Ask for the end of the observation, as its user does."""
    next((trial.folder / "tests").glob("gpu-*")).joinpath("end").touch()
