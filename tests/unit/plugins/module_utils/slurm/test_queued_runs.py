"""The list of runs shows the place of a run in Slurm's queue, or how Slurm ended it."""

from __future__ import annotations

import pytest

from plugins.module_utils.slurm.own_job import queued_runs
from plugins.module_utils.training.results import known_runs
from tests.unit.plugins.module_utils.training.results.test_manifest import a_manifest

from .test_own_job import WAIT, SlurmWorld

# The answer of squeue 22.05.8 with the user, the job and its comment: two attempts, and jobs of others.
ALL_JOBS = """\
dml|3|dml-one|FAILED|NonZeroExitCode|2026-11-29T03:00:00|dml|dml:r1
dml|4|dml-one|PENDING|Resources|2026-11-29T09:00:00|dml|dml:r1
anna|21_3|dml-s|PENDING|JobArrayTaskLimit|N/A|dml|dml:r3,r4
dml|5|dml-ended|TIMEOUT|TimeLimit|N/A|dml|dml:r5
dml|6|dml-done|COMPLETED|None|N/A|dml|dml:r6
dml|7|dml-trains|RUNNING|None|N/A|dml|dml:r7
carol|8|dml-a|b|PENDING|Resources|N/A|dml|dml:r8
dml|9|dml-proof|PENDING|Resources|N/A|dml|
bob|10|other|PENDING|Priority|N/A|dml|
"""


def test_list_shows_queued_and_ended_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SlurmWorld()
    world.queue = "10|dml\n4|dml\n21_3|dml\n"
    monkeypatch.setattr(world, "_squeue", lambda words, _o: {"stdout": world.queue if WAIT in words else ALL_JOBS})
    manifests = [a_manifest(name) for name in ("one", "ended", "done", "trains", "forgotten")]

    rows = known_runs.listed([], manifests, [], queued_runs(world, world.o))

    follow = "follow it with training_name"
    assert {row["name"]: (row["by"], row["state"], row["cause"]) for row in rows} == {
        "one": ("anna@desk", "waiting", "job 4: place 2 of 3, Resources, expected start 2026-11-29T09:00:00"),
        "s.3": ("anna", "waiting", "job 21_3: place 3 of 3, JobArrayTaskLimit"),
        "ended": (
            "anna@desk",
            "died",
            f"Slurm ended job 5 at its time limit: set training_slurm.time to a longer one (TIMEOUT); {follow}=ended",
        ),
        "done": ("anna@desk", "finished", f"Slurm job 6 is COMPLETED; {follow}=done"),
        "trains": ("anna@desk", "running", "Slurm job 7 is RUNNING"),
        "forgotten": ("anna@desk", "unknown", f"{follow}=forgotten"),
    }
    world.is_down = True
    assert queued_runs(world, world.o) == [] and "the queue of Slurm is unknown: slurm_load" in world.lines[-1]
