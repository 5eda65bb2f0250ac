# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names of labs: a lab that ends removes its folder, which must be no one else's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab import __main__ as command
from lab import running
from lab.hypervisor import __main__ as hypervisor
from lab.machines.machines import Machines
from lab.nodes import network
from lab.nodes.programs import LabError
from lab.running import Desired, Lab


@pytest.mark.parametrize("name", ["machines", "podman", "shared", "", ".", "..", "../shared", "/tmp/x", "a/b"])
def test_a_lab_cannot_have_the_folder_of_anything_else(name: str) -> None:
    with pytest.raises(LabError, match="A lab cannot be named"):
        Lab(name)


@pytest.mark.parametrize("name", ["default", "membersgw0", "machines-traces", "a.b"])
def test_a_lab_has_its_own_folder(name: str, tmp_path: Path) -> None:
    assert Lab(name, tmp_path).folder == tmp_path / name


def test_guards_everything_that_labs_share() -> None:
    inside = {path.name for path in vars(running).values() if isinstance(path, Path) and path.parent == running.FOLDER}
    assert inside == {"machines", "podman", "shared"}


def test_such_a_name_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["lab", "--name", "machines", "down"])
    assert command.main() == 1
    assert capsys.readouterr().err.startswith("A lab cannot be named 'machines'")


def test_nodes_are_requested_by_name_or_with_an_rdma_card(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def node(_lab: Lab, name: str, user: str, **more: Any) -> dict[str, Any]:
        return {"instance": name, "user": user, **more}

    monkeypatch.setattr(Lab, "facts", lambda *_: {"pid": 1})
    monkeypatch.setattr(Lab, "node", node)
    monkeypatch.setattr(sys, "argv", ["lab", "node", "--user", "u", "n1", "n2=10.216.1.2/24"])
    assert command.main() == 0
    assert json.loads(capsys.readouterr().out) == [
        {"instance": "n1", "user": "u", "rdma_address": ""},
        {"instance": "n2", "user": "u", "rdma_address": "10.216.1.2/24"},
    ]


def test_the_connections_to_nodes_are_an_inventory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def node(_lab: Lab, name: str, user: str, **_more: Any) -> dict[str, Any]:
        return {"instance": name, "address": "10.0.0.2", "user": user, "port": "22", "identity_file": "/key"}

    path = tmp_path / "inventory" / "nodes.json"
    monkeypatch.setattr(Lab, "facts", lambda *_: {"pid": 1})
    monkeypatch.setattr(Lab, "node", node)
    monkeypatch.setattr(sys, "argv", ["lab", "node", "--inventory", str(path), "n1"])
    assert command.main() == 0
    written = json.loads(path.read_text())["all"]
    connection = {"ansible_host": "10.0.0.2", "ansible_user": "debian", "ansible_ssh_private_key_file": "/key"}
    assert written["hosts"] == {"n1": connection}
    assert "StrictHostKeyChecking=no" in written["vars"]["ansible_ssh_common_args"]


@pytest.mark.parametrize("kind", ["--machines", "--kubernetes"])
def test_only_plain_nodes_have_another_debian(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    words = ["lab", "--kubernetes"] if kind == "--kubernetes" else ["lab"]
    more = [kind] if kind == "--machines" else []
    monkeypatch.setattr(Lab, "facts", lambda *_: {})
    monkeypatch.setattr(sys, "argv", [*words, "node", "--suite", "trixie", *more, "n1"])
    assert command.main() == 1
    assert "have Debian bookworm: --suite is for plain nodes." in capsys.readouterr().err


def test_machines_get_the_requested_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[list[str]] = []

    def begin(command: list[str], **_more: Any) -> Any:
        started.append(command[3:])  # after python -m lab.hypervisor
        return SimpleNamespace(poll=lambda: 1)

    lab = Lab("memory", tmp_path)
    lab.folder.mkdir()
    monkeypatch.setattr(subprocess, "Popen", begin)
    with pytest.raises(LabError, match="It has no output"):
        lab._start_hypervisor(Desired(None, machines=True, memory_mib=1536), "")
    monkeypatch.setattr(sys, "argv", ["hypervisor", *started[0]])
    monkeypatch.setattr(hypervisor.roots, "ensure", lambda *_: Path("/roots"))
    monkeypatch.setattr(hypervisor.accelerator, "detect", lambda _roots: "qemu")
    made = hypervisor._machines(hypervisor._parsed(), network.Network(lab.lab))
    assert isinstance(made, Machines) and made.memory_mib == 1536
