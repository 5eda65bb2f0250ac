# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""vmotion_test_info finds the test that was not ended, and says where it is; one that has ended is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.module_utils.vmotion.folder.journal import NAME, Journal
from plugins.modules import vmotion_test_info
from tests.fakes.trial import Killed, World
from tests.unit.plugins.modules.test_continuity_verdict import call


def keep(world: World, folder: Path) -> Path:
    """The journal of a test in a folder."""
    folder.mkdir()
    with Journal(folder / NAME) as journal:
        for entry in world.journal:
            journal.append(**{key: value for key, value in entry.items() if key != "at"})
    return folder


def test_where_nothing_was_begun_nothing_is_found(tmp_path: Path) -> None:
    told = call(vmotion_test_info, cluster="gpu", dir=str(tmp_path))
    assert (told["found"], told["folder"], told["changed"]) == (False, "", False)


def test_a_test_that_was_killed_in_a_move_is_found_with_its_launcher_and_its_next_step(tmp_path: Path) -> None:
    world = World()
    world.dies_in_move = "under way"
    with pytest.raises(Killed):
        world.carry_out()
    folder = keep(world, tmp_path / "gpu-1")
    told = call(vmotion_test_info, cluster="gpu", dir=str(tmp_path))
    assert (told["found"], told["folder"], told["launcher"]) == (True, str(folder), "w1")
    assert (told["next_step"], told["moves"]) == ("move", [])
    world.write("controller")
    world.write("hold", run="two")
    world.write("watch")
    world.write("override")
    again = call(vmotion_test_info, cluster="gpu", dir=str(tmp_path), folder=str(keep(world, tmp_path / "again")))
    assert again["next_step"] == "look_up"


def test_one_that_has_ended_is_not_found_and_refused_by_name(tmp_path: Path) -> None:
    world = World()
    world.carry_out()
    folder = keep(world, tmp_path / "gpu-1")
    assert not call(vmotion_test_info, cluster="gpu", dir=str(tmp_path))["found"]
    named = call(vmotion_test_info, cluster="gpu", dir=str(tmp_path), folder=str(folder))
    assert "the test in it has ended; name another folder" in named["msg"]
