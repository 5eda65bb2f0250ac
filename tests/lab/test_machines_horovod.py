# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Horovod trains on two virtual machines over TCP and over RDMA, and goes on while both are migrated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.demo import SHARED
from lab.kubernetes.images import has_horovod
from lab.running import HOROVOD
from tests.integration.test_vmotion import TAGGED
from tests.lab.conftest import computers
from tests.lab.machines import NUMBERS, PATIENCE, conditions, devices, job, pair, rdma
from tests.lab.places import USER, Place

pytestmark = pytest.mark.slow
# A framework and its process take as much.
MEMORY_MIB = 1536
VENV = "/opt/dml/horovod"
SOURCE = Path(__file__).parent / "horovod_train.py"
PROGRAM = f"{VENV}/bin/python -u /home/{USER}/{SOURCE.name}"
LIMITS: dict[str, Any] = {"max_gap_s": 10 * PATIENCE, "resume_deadline_s": 10 * PATIENCE}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Two workers that have Horovod's environment as a read-only disk; nodes build it where nothing has left it."""
    if not has_horovod(HOROVOD):
        HOROVOD.mkdir(parents=True, exist_ok=True)
        with computers(tmp_path_factory.mktemp("built"), "horovod", SHARED) as made:
            made.build()
    folder = tmp_path_factory.mktemp("machines")
    with pair(folder, TAGGED, "horovods", shares=[f"{HOROVOD}:{VENV}"], memory_mib=MEMORY_MIB) as made_pair:
        for number in NUMBERS:
            text = f"cat > {SOURCE.name} <<'END_OF_PROGRAM'\n{SOURCE.read_text()}END_OF_PROGRAM"
            made_pair.inside(number, text, seconds=30 * PATIENCE)
        yield made_pair


@pytest.mark.parametrize("transport", ["tcp", "rdma"])
def test_horovod_goes_on_while_both_workers_are_migrated(place: Place, tmp_path: Path, transport: str) -> None:
    before = {number: devices(place, number)[0]["sent_bytes"] for number in NUMBERS}
    speech = rdma(place) if transport == "rdma" else ()
    with job(place, tmp_path, speech, program=PROGRAM) as trial:
        place.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": 1})
        sources = trial.at()
        moves = [trial.move(number, place.free_hosts()[0]) for number in (2, 1)]
        assert all(move["ok"] for move in moves), moves
        assert all(trial.at()[name] != host for name, host in sources.items())
        verdict = trial.judge(**LIMITS)
        assert verdict["verdict"] == "continuous", (verdict, conditions(place))
        assert {spoken for look in trial.transports for each in look.values() for spoken in each.values()} == {
            transport
        }
        lines = map(json.loads, trial.records.read_text().splitlines())
        losses = [one["loss"] for one in lines if one["rank"] == 0 and "mark" not in one]
        assert losses[-1] < losses[0] / 2, "the training does not learn"
    sent = {number: devices(place, number)[0]["sent_bytes"] - count for number, count in before.items()}
    assert all((count > 10_000) is (transport == "rdma") for count in sent.values()), sent
