"""The program vmotion_test finds an unfinished test and its folder, and refuses one that has ended by its name."""

from __future__ import annotations

from pathlib import Path

from plugins.module_utils.durable.program import END, START
from plugins.module_utils.durable.program_journal import NAME, FileJournal
from plugins.module_utils.trials.folder import trial_folder
from plugins.module_utils.trials.folder.continued_settings import STARTED_AGAIN
from tests.fakes.programs import run
from tests.unit.simulation.world import World


def keep(world: World, folder: Path, *, is_ended: bool = False) -> Path:
    """Write the journal and the facts of a test into a folder."""
    folder.mkdir(parents=True)
    with FileJournal(folder / NAME) as journal:
        journal.write(START, world.settings)
        for key, value in world.values.items():
            journal.write(key, value)
        if is_ended:
            journal.write(END, {"passed": True, "said": ""})
    if "facts" in world.files:
        trial_folder.write_facts(folder, world.facts)
    return folder


def test_without_a_test_nothing_is_found(tmp_path: Path) -> None:
    answer = run("vmotion_test", cluster="gpu", dir=str(tmp_path))
    assert (answer["found"], answer["folder"]) == (False, "")


def test_finds_the_folder_of_an_unfinished_test(tmp_path: Path) -> None:
    started = keep(World(), tmp_path / "gpu-1")

    answer = run("vmotion_test", cluster="gpu", dir=str(tmp_path))

    assert (answer["found"], answer["folder"], answer["replaced"]) == (True, str(started), False)


def test_window_continues_with_the_next_attempt_of_its_job(tmp_path: Path) -> None:
    window = {"hosts": ["esx1"]}
    world, started = World(window=window), {"run_dir": "/run/two", "launcher": "w2", "kubernetes": {}}
    world.values[STARTED_AGAIN] = started
    keep(world, tmp_path / "gpu-1")

    answer = run("vmotion_test", cluster="gpu", dir=str(tmp_path), window=window, **started)

    assert answer.get("found"), answer


def test_an_empty_journal_is_not_a_test(tmp_path: Path) -> None:
    (tmp_path / "gpu-1").mkdir()
    (tmp_path / "gpu-1" / NAME).touch()
    assert not run("vmotion_test", cluster="gpu", dir=str(tmp_path))["found"]
    assert not run("vmotion_test", cluster="gpu", dir=str(tmp_path), folder=str(tmp_path / "gpu-1"))["found"]


def test_ignores_an_ended_test_and_refuses_its_name(tmp_path: Path) -> None:
    world = World()
    world.carry_out()
    folder = keep(world, tmp_path / "gpu-1", is_ended=True)
    assert not run("vmotion_test", cluster="gpu", dir=str(tmp_path))["found"]
    named = run("vmotion_test", cluster="gpu", dir=str(tmp_path), folder=str(folder))
    assert "the test in it has ended; name another folder" in named["msg"]
