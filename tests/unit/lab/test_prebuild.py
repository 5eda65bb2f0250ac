# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Horovod is compiled beside the first chapters of the demo, and the first chapter that needs it waits for it."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab import digest, prebuild
from lab.chapters import Chapter
from lab.demo import Demo
from lab.prebuild import Prebuild

SECONDS = 30


class Hypervisor:
    """Takes requests, and can refuse them."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []

    def ask(self, verb: str, path: str) -> None:
        """Keep a request."""
        self.requests.append((verb, path))


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> tuple[Prebuild, Hypervisor]:
    """Return a build whose playbook is a script."""
    program = tmp_path / "playbook"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(prebuild, "PLAYBOOK", program)
    monkeypatch.setattr(prebuild, "HOROVOD", tmp_path)
    hypervisor = Hypervisor()
    lab: Any = SimpleNamespace(node=lambda *_name: {"address": "10.0.1.99"}, environment={}, hypervisor=hypervisor)
    return Prebuild(lab, tmp_path), hypervisor


def test_the_first_chapter_that_needs_horovod_waits_for_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    building, hypervisor = made(tmp_path, monkeypatch, f"sleep 0.5; touch {tmp_path}/horovod.sha256")
    seen: list[bool] = []
    monkeypatch.setattr(digest, "run", lambda *_run: seen.append((tmp_path / "horovod.sha256").exists()) or 0)
    vcenter: Any = SimpleNamespace(clear=lambda: None, writes=list)
    demo = Demo(vcenter, {}, tmp_path, prebuild=building)
    with building.running():
        for needs_horovod in (False, True, True):
            demo.play(1, Chapter("t", "site.yml", writes=False, in_guests=True, needs_horovod=needs_horovod))
    assert seen == [False, True, True]
    assert hypervisor.requests == [("DELETE", "/nodes/builder")]
    assert "10.0.1.99" in (tmp_path / "builder.json").read_text()


def test_a_build_that_fails_is_reported_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    building, _hypervisor = made(tmp_path, monkeypatch, "echo no compiler; exit 2")
    with building.running():
        building.finish()
    assert "failed" in (shown := capsys.readouterr().out) and str(building.log) in shown
    assert building.log.read_text() == "no compiler\n"


def test_a_demo_that_ends_early_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    building, _hypervisor = made(tmp_path, monkeypatch, f"touch {tmp_path}/started; exec sleep {10 * SECONDS}")
    began = time.monotonic()
    with building.running():
        while not (tmp_path / "started").exists():
            assert time.monotonic() < began + SECONDS
    assert time.monotonic() < began + 2 * SECONDS


def test_a_node_that_does_not_start_is_reported_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    building, hypervisor = made(tmp_path, monkeypatch, "")

    def refuse(*_name: str) -> None:
        raise RuntimeError("PUT /nodes/builder: 400 no memory")

    building._lab.node = refuse  # type: ignore[assignment,method-assign]
    with building.running():
        building.finish()
    assert "failed" in capsys.readouterr().out
    assert "no memory" in building.log.read_text() and hypervisor.requests == []
