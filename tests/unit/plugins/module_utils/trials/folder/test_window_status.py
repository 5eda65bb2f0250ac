"""The state of a window names the hosts that runs took out of service, and how to return those that were left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.trials.folder import trial_folder
from plugins.module_utils.trials.folder.window_status import lines, unfinished
from tests.unit.plugins.module_utils.trials.folder.test_unfinished import keep
from tests.unit.simulation.world import World

FREE: dict[str, Any] = {"held": False, "over": None}
HELD = {"held": True, "owner": "bob", "run": "one", "since": "then", "over": None}
LEFT = "gpu: esx5 is out of service (maintenance), and no run continues it: the playbook hosts finishes its change"


@pytest.mark.parametrize(
    ("lock", "begin", "advises"),
    [(FREE, LEFT, True), ({**HELD, "over": "it died"}, LEFT, True), (HELD, "gpu: esx5 is out of service", False)],
    ids=["free", "over", "held"],
)
def test_status_names_hosts_that_a_rollout_left(lock: dict[str, Any], begin: str, advises: bool) -> None:
    out = [{"host": "esx5", "why": "maintenance", "ours": True}, {"host": "esx6", "why": "maintenance", "ours": False}]

    _holder, *shown = lines("gpu", lock, None, out)

    assert len(shown) == 1 and shown[0].startswith(begin)
    assert ("esxi_power with state=in_service returns it as it is" in shown[0]) == advises


def test_status_shows_the_progress_of_an_unfinished_window(tmp_path: Path) -> None:
    facts = World().carry_out()
    facts.at_hand = "esx1"

    assert [line for line in lines("gpu", FREE, tmp_path) if "in progress" in line] == []
    trial_folder.write_facts(tmp_path, facts)

    _holder, folder, progress, *_others, advice = lines("gpu", FREE, tmp_path)
    assert folder == f"gpu: the unfinished window on this controller is in {tmp_path}"
    assert "in progress esx1; remaining none" in progress
    assert advice.endswith("or this one with window_action=end")


def test_last_of_the_unfinished_windows_is_shown(tmp_path: Path) -> None:
    """A test is not a window, and a window that has ended is not unfinished."""
    window = {"hosts": ["esx1"]}
    for name in ("gpu-1", "gpu-2"):
        keep(World(window=window), tmp_path / name)
    keep(World(window=window), tmp_path / "gpu-3", is_ended=True)
    keep(World(), tmp_path / "gpu-4")

    assert unfinished(tmp_path, trial_folder.Cluster("gpu")) == tmp_path / "gpu-2"
