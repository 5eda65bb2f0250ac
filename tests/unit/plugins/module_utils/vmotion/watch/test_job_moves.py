# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The moves of a job from the journals of vMotion tests: also a running one, and not those of other jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.vmotion.folder.journal import NAME, Journal
from plugins.module_utils.vmotion.watch.job_moves import JobMoves
from tests.fakes.trial import Killed, World

RUN = "/run/one"


def keep(world: World, folder: Path) -> Path:
    """Write the journal of a test with the times of its entries, and return its path."""
    folder.mkdir(parents=True)
    path = folder / NAME
    path.write_text("".join(json.dumps(entry) + "\n" for entry in world.journal))
    return path


def at_time(world: World, began: float) -> World:
    """Return the test with its first move at another time."""
    first = next(entry["move"]["started"] for entry in world.journal if entry["entry"] == "move")
    world.journal = [dict(_shifted(entry, began - first)) for entry in world.journal]
    return world


def _shifted(value: Any, seconds: float) -> Any:
    if isinstance(value, list):
        return [_shifted(each, seconds) for each in value]
    if not isinstance(value, dict):
        return value
    is_time = {key: key in ("at", "started", "completed") and isinstance(one, float) for key, one in value.items()}
    return {key: one + seconds if is_time[key] else _shifted(one, seconds) for key, one in value.items()}


def test_the_moves_of_a_test_that_has_ended(tmp_path: Path) -> None:
    world = World()
    state = world.carry_out()
    keep(world, tmp_path / "gpu-1")
    moves = JobMoves(tmp_path, RUN).since(0.0, 1e9)
    own = [move for move in state.moves if not move["canary"]]
    assert [(move.worker, move.source, move.target, move.begin, move.until) for move in moves] == [
        (move["worker"], move["source"], move["target"], move["started"], move["completed"]) for move in own
    ]
    assert own and {move.kind for move in moves} == {"moved"}
    assert JobMoves(tmp_path, "/run/two").since(0.0, 1e9) == []
    assert JobMoves(tmp_path, RUN).since(moves[-1].until + 0.1, 1e9) == [], "an earlier job had the same name"
    assert JobMoves(tmp_path / "none", RUN).since(0.0, 1e9) == []


def test_a_move_in_progress_lasts_until_now_while_its_test_runs(tmp_path: Path) -> None:
    world = World()
    world.dies_in_move = "under way"
    with pytest.raises(Killed):
        world.carry_out()
    path = keep(world, tmp_path / "gpu-1")
    moves = JobMoves(tmp_path, RUN)
    assert moves.since(0.0, 1e9) == [], "no process runs the test"
    with Journal(path):
        (move,) = moves.since(0.0, 1e9)
    assert (move.kind, move.until) == ("running", 1e9)


def test_new_entries_are_read_and_a_damaged_journal_is_left_out(tmp_path: Path) -> None:
    world = World()
    world.carry_out()
    path = keep(world, tmp_path / "gpu-1")
    whole = path.read_text()
    path.write_text("".join(whole.splitlines(keepends=True)[:3]))
    moves = JobMoves(tmp_path, RUN)
    assert moves.since(0.0, 1e9) == []
    path.write_text(whole)
    assert moves.since(0.0, 1e9)
    path.write_text(whole + '{"at": 1}\n')
    keep(world, tmp_path / "gpu-2")
    assert len(moves.since(0.0, 1e9)) == len(JobMoves(tmp_path, RUN).since(0.0, 1e9)) > 0
    (tmp_path / "gpu-3").mkdir()
    (tmp_path / "gpu-3" / NAME).write_text("[]\n")
    assert JobMoves(tmp_path, RUN).since(0.0, 1e9)
