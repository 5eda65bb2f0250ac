"""Horovod trains on two virtual machines over TCP and over RDMA, and goes on while both are migrated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.running import HOROVOD
from tests.integration.test_vmotion import TAGGED
from tests.lab.conftest import build_horovod
from tests.lab.machines.pair import NUMBERS, PATIENCE, conditions, devices, job, move_both, pair, rdma, transports_of
from tests.lab.places import USER, Place
from tests.lab.trial import give

pytestmark = pytest.mark.slow
# A framework and its process take as much.
MEMORY_MIB = 1536
VENV = "/opt/dml/horovod"
SOURCE = Path(__file__).parents[1] / "horovod_train.py"
PROGRAM = f"{VENV}/bin/python -u /home/{USER}/{SOURCE.name}"
LIMITS: dict[str, Any] = {"max_gap_s": 10 * PATIENCE, "resume_deadline_s": 10 * PATIENCE}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Two workers that have Horovod's environment as a read-only disk; nodes build it where nothing has left it."""
    build_horovod(tmp_path_factory.mktemp("built"))
    folder = tmp_path_factory.mktemp("machines")
    with pair(folder, TAGGED, "horovods", shares=[f"{HOROVOD}:{VENV}"], memory_mib=MEMORY_MIB) as made:
        for number in NUMBERS:
            give(made, number, SOURCE, 30 * PATIENCE)
        yield made


@pytest.mark.parametrize("transport", ["tcp", "rdma"])
def test_horovod_goes_on_while_both_workers_are_migrated(place: Place, tmp_path: Path, transport: str) -> None:
    before = {number: devices(place, number)[0]["sent_bytes"] for number in NUMBERS}
    speech = rdma(place) if transport == "rdma" else ()
    with job(place, tmp_path, speech, program=PROGRAM) as trial:
        move_both(place, trial)
        verdict = trial.judge(**LIMITS)
        assert verdict["verdict"] == "continuous", (verdict, conditions(place))
        assert transports_of(trial) == {transport}
        lines = map(json.loads, trial.records.read_text().splitlines())
        losses = [one["loss"] for one in lines if one["rank"] == 0 and "mark" not in one]
        assert losses[-1] < losses[0] / 2, "the training does not learn"
    sent = {number: devices(place, number)[0]["sent_bytes"] - count for number, count in before.items()}
    assert all((count > 10_000) is (transport == "rdma") for count in sent.values()), sent
