"""playbooks/vmotion_test.yml on nodes: real Open MPI trains on four workers, which move ten times each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.places import Place
from tests.lab.rolling import inventory, moved, train
from tests.lab.trial import WORKERS

pytestmark = pytest.mark.slow
ROUNDS = int(os.environ.get("ROLLING_ROUNDS", "10"))
STUN = 5.0  # a shorter one drowns in the noise of a machine that is busy


def tcp(place: Place) -> dict[str, Any]:
    """The environment and the words of mpirun for TCP."""
    network = ".".join(place.address(1).split(".")[:3]) + ".0/24"
    arguments = ["--mca", "pml", "ob1", "--mca", "btl", "^openib", "--bind-to", "none"]
    for layer in ("btl", "oob"):
        arguments += ["--mca", f"{layer}_tcp_if_include", network]
    return {"environment": {}, "mpirun_arguments": arguments}


@pytest.fixture
def place(equipped: Place) -> Iterator[Place]:
    """Five hosts for four workers: one to spare, and the sixth out of service."""
    equipped.lab.control.set_host(free := equipped.free_hosts()[0], maintenance=True)
    yield equipped
    equipped.lab.control.set_host(free, maintenance=False)


def test_ten_rounds_in_a_row(place: Place, tmp_path: Path) -> None:
    where = inventory(place, tmp_path)
    place.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": STUN})
    train(place, where, tcp(place))
    limits = {"max_gap_s": 30, "resume_deadline_s": 60}
    evidence, verdict = moved(place, where, vmotion_test_rounds=ROUNDS, vmotion_test_limits=limits)
    assert len(verdict["moves"]) == ROUNDS * len(WORKERS)
    assert all(STUN - 0.5 <= one["gap_s"] < 30 for one in verdict["moves"]), "a stun was not seen as it was"
    timeline = json.loads((evidence / "timeline.json").read_text())
    assert {len(one["stays"]) for one in timeline["hosts"]} == {ROUNDS + 1}
    assert "worker01" in (evidence / "timeline.html").read_text()
