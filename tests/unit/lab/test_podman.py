# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The end of a killed container is seen at once, and one that does not end is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from lab.nodes import podman
from lab.nodes.nodes import Nodes
from lab.nodes.podman import Podman
from lab.nodes.programs import LabError


def seen(*statuses: str) -> Any:
    """Return the replacement of podman's description, with one status after another."""
    return mock.patch.object(Podman, "inspect", side_effect=[{"State": {"Status": status}} for status in statuses])


@pytest.mark.parametrize("end", ["stopped", "exited"])
def test_the_end_is_awaited(end: str, tmp_path: Path) -> None:
    with seen("running", "stopping", end) as requested:
        Podman(tmp_path).await_end("n1")
    assert requested.call_count == 3


def test_a_container_that_does_not_end_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podman, "END_SECONDS", 0)
    with seen("running", "running"), pytest.raises(LabError, match="n1 is running 0 s after SIGKILL"):
        Podman(tmp_path).await_end("n1")


def test_a_node_that_is_switched_off_is_awaited_without_an_exit_code(tmp_path: Path) -> None:
    requested: Any = mock.Mock(store=tmp_path)
    nodes = Nodes("lab", tmp_path, requested, mock.Mock())
    nodes.known["n1"] = mock.Mock(cards=())
    nodes.stop("n1")
    assert [call.args[0] for call in requested.call_args_list] == ["kill"]
    requested.await_end.assert_called_once_with("lab-n1")
