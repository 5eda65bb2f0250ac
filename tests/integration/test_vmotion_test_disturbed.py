"""DRS moves workers at random moments, and the clock of vCenter is set, while a vMotion test moves workers."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections.abc import Iterator

import pytest

from lab.simulator import USERNAME, Simulator
from plugins.module_utils.errors import CollectionError
from tests.integration.faults import last_sentence
from tests.integration.killing import wait_for
from tests.integration.test_vmotion_test import LONG, WORKERS, Trial, trial
from tests.integration.test_worker_rules import config
from tests.integration.workers import host, move

__all__ = ["trial"]  # the fixture

HOSTS = [f"esx{number:02}.lab" for number in range(1, 6)]


@contextlib.contextmanager
def others(vcenter: Simulator, seed: int) -> Iterator[list[str]]:
    """Move random workers to random hosts until the end of the block; yield the workers of the moves that succeeded."""
    chance, over, moved = random.Random(seed), threading.Event(), list[str]()

    def work() -> None:
        while not over.wait(chance.uniform(0.2, 4)):
            name = chance.choice(WORKERS)
            # A host without a free GPU refuses, and so does a worker that moves now.
            with contextlib.suppress(CollectionError):
                move(vcenter, name, chance.choice(HOSTS))
                moved.append(name)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield moved
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("encryption", ["on"])
@pytest.mark.parametrize("seed", range(4))
def test_verdict_counts_random_moves_by_other_users(trial: Trial, seed: int) -> None:
    """The test ends by itself; it misses no move, claims none of others as its own, and leaves the cluster as found."""
    trial.train()
    before = str(config(trial.vcenter).drsVmConfig)
    with others(trial.vcenter, seed) as moved:
        running = trial.begin(vmotion_test_steps=5)
        text = running.communicate(timeout=LONG)[0]
    verdict = json.loads(trial.kept("verdict.json"))
    theirs = [one["worker"] for one in verdict["moves"] if one["worker"] in moved]
    assert moved and theirs, "no one moved anything: this test shows nothing"
    assert any(f"moved by others: {USERNAME} moved" in note for note in verdict["notes"]), verdict["notes"]
    if running.returncode:
        assert last_sentence(text), text
    else:
        assert (verdict["verdict"], verdict["moved"]) == ("continuous", "all")
    assert verdict["verdict"] != "broken", verdict["breaches"]
    assert trial.nodes.look()["state"] == "running"
    assert trial.free() and str(config(trial.vcenter).drsVmConfig) == before
    assert len({host(trial.vcenter, name) for name in WORKERS}) == len(WORKERS), "two workers share a GPU"


@pytest.mark.slow
@pytest.mark.parametrize("encryption", ["on"])
@pytest.mark.parametrize("jump", [-900.0, 3600.0])
def test_clock_change_during_moves_makes_the_verdict_inconclusive(trial: Trial, jump: float) -> None:
    """Events have the time of vCenter's clock: nothing is concluded from them, and the test ends by itself."""
    trial.train()
    with others(trial.vcenter, 7):
        running = trial.begin(vmotion_test_steps=5)
        # The moves of others begin before the test has read the clock for the first time.
        journals = trial.folder / "tests"
        wait_for(
            lambda: any('"key": "request 1 1"' in one.read_text() for one in journals.glob("*/journal.jsonl")), LONG
        )
        trial.vcenter.ask("PUT", "/clock", {"offset_seconds": jump})
        text = running.communicate(timeout=LONG)[0]
    verdict = json.loads(trial.kept("verdict.json"))
    assert verdict["verdict"] == "inconclusive", (verdict["breaches"], verdict["unproven"])
    assert any("vCenter's clock was set by" in one for one in verdict["unproven"]), verdict["unproven"]
    assert running.returncode and last_sentence(text), text
    assert trial.nodes.look()["state"] == "running" and trial.free()
