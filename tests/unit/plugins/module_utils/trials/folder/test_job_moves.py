"""The moves of a job from the facts of vMotion tests: also a running one, and not those of other jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.durable.program_journal import NAME as JOURNAL
from plugins.module_utils.durable.program_journal import FileJournal
from plugins.module_utils.trials.folder import trial_folder
from plugins.module_utils.trials.folder.job_moves import JobMoves, metrics
from tests.fakes.deaths import Killed
from tests.unit.simulation.world import World, dies

RUN = "/run/one"


def keep(world: World, folder: Path) -> Path:
    """Write the facts of a test, and return the path of its journal."""
    folder.mkdir(parents=True)
    trial_folder.write_json(folder / trial_folder.FACTS, world.files["facts"])
    (folder / JOURNAL).touch()
    return folder / JOURNAL


def at_time(world: World, began: float) -> World:
    """Return the test with its first move at another time."""
    world.files["facts"] = _shifted(world.files["facts"], began - world.facts.moves[0]["started"])
    return world


def _shifted(value: Any, seconds: float) -> Any:
    if isinstance(value, list):
        return [_shifted(each, seconds) for each in value]
    if not isinstance(value, dict):
        return value
    is_time = {key: key in ("at", "started", "completed") and isinstance(one, float) for key, one in value.items()}
    return {key: one + seconds if is_time[key] else _shifted(one, seconds) for key, one in value.items()}


def test_reads_the_moves_of_an_ended_test(tmp_path: Path) -> None:
    world = World()
    facts = world.carry_out()
    keep(world, tmp_path / "gpu-1")
    moves = JobMoves(tmp_path, RUN).since(0.0, 1e9)
    own = [move for move in facts.moves if not move["canary"]]
    assert [(move.worker, move.source, move.target, move.begin, move.until) for move in moves] == [
        (move["worker"], move["source"], move["target"], move["started"], move["completed"]) for move in own
    ]
    assert own and {move.kind for move in moves} == {"moved"}
    assert JobMoves(tmp_path, "/run/two").since(0.0, 1e9) == []
    assert JobMoves(tmp_path, RUN).since(moves[-1].until + 0.1, 1e9) == [], "an earlier job had the same name"
    assert JobMoves(tmp_path / "none", RUN).since(0.0, 1e9) == []


def dead_in_move() -> World:
    """Return a test whose controller died while the first worker moved."""
    world = World()
    world.site.arrive = lambda _move: dies(world)  # type: ignore[method-assign]
    with pytest.raises(Killed):
        world.carry_out()
    return world


def test_running_move_lasts_until_now(tmp_path: Path) -> None:
    world = dead_in_move()
    path = keep(world, tmp_path / "gpu-1")
    moves = JobMoves(tmp_path, RUN)
    assert moves.since(0.0, 1e9) == [], "no process runs the test"
    with FileJournal(path):
        (move,) = moves.since(0.0, 1e9)
    assert (move.kind, move.until) == ("running", 1e9)


def test_reads_new_facts_and_omits_damaged_ones(tmp_path: Path) -> None:
    world = dead_in_move()
    keep(world, tmp_path / "gpu-1")
    moves = JobMoves(tmp_path, RUN)
    assert moves.since(0.0, 1e9) == []
    whole = World()
    whole.carry_out()
    trial_folder.write_facts(tmp_path / "gpu-1", whole.facts)
    assert moves.since(0.0, 1e9)
    for number, text in enumerate(["[]", "{", '{"settings": {}}', '{"settings": {"cluster": "gpu"}}'], start=2):
        (tmp_path / f"gpu-{number}").mkdir()
        (tmp_path / f"gpu-{number}" / trial_folder.FACTS).write_text(text)
    assert len(moves.since(0.0, 1e9)) == len(JobMoves(tmp_path, RUN).since(0.0, 1e9)) == 2


def test_metrics_name_the_state_of_each_host() -> None:
    facts = World().carry_out()
    facts.settings["window"], facts.judged, facts.at_hand = {"hosts": ["esx1", "esx2"]}, None, "esx2"

    shown = metrics(facts, "one", 5.0, True)

    assert 'host="esx2",state="changing"} 1\n' in shown
    assert "dml_vmotion_test_verdict{" not in shown, "it is not known yet"
