# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The demo says of each chapter whether its promise was kept, and its lab is bare."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import yaml

from lab import demo, digest
from lab.demo import CHAPTERS, Chapter, Demo
from lab.simulator import DATACENTRES, ROOT

WRITE = {"method": "PowerOnVM_Task", "name": "worker01"}


def told(chapter: Chapter, tmp_path: Path, *, code: int, writes: list[dict[str, str]]) -> tuple[str, bool, list[str]]:
    """What the demo says of a chapter whose run ended so, and the command that it ran."""
    vcenter: Any = SimpleNamespace(clear=lambda: None, writes=lambda: writes)
    with mock.patch.object(digest, "run", return_value=code) as run:
        line, kept = Demo(vcenter, {}, tmp_path).tell(1, chapter)
    return line, kept, run.call_args.args[0]


@pytest.mark.parametrize(
    ("chapter", "code", "writes", "kept"),
    [
        (Chapter("t", "site.yml"), 0, [WRITE], True),
        (Chapter("t", "site.yml"), 0, [], False),
        (Chapter("t", "site.yml"), 2, [WRITE], False),
        (Chapter("t", "site.yml", writes=False), 0, [], True),
        (Chapter("t", "site.yml", writes=False), 0, [WRITE], False),
        (Chapter("t", "teardown.yml", writes=False, fails=True), 2, [], True),
        (Chapter("t", "teardown.yml", writes=False, fails=True), 0, [], False),
        (Chapter("t", "teardown.yml", writes=False, fails=True), 2, [WRITE], False),
    ],
)
def test_a_broken_promise_is_seen(
    chapter: Chapter, code: int, writes: list[dict[str, str]], kept: bool, tmp_path: Path
) -> None:
    line, good, _command = told(chapter, tmp_path, code=code, writes=writes)
    assert good is kept
    assert f"{len(writes)} writes" in line and f"exit code {code}" in line


def test_hosts_are_set_back_to_the_first_evidence(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    for name in ("gpu-20260102T000000Z.json", "gpu-20260101T000000Z.json", "gpu-shared-settings.json"):
        (evidence / name).touch()
    _line, _kept, command = told(CHAPTERS[-1], tmp_path, code=0, writes=[WRITE])
    assert command[-4:] == ["-e", "confirm=true", "-e", f"rollback_evidence={evidence}/gpu-20260101T000000Z.json"]


def test_every_chapter_runs_a_playbook_that_there_is() -> None:
    assert all((ROOT / "playbooks" / chapter.playbook).exists() for chapter in CHAPTERS)


def test_without_root_the_guests_are_left_out_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[Chapter] = []

    def tell(_demo: Demo, _number: int, chapter: Chapter) -> tuple[str, bool]:
        ran.append(chapter)
        return chapter.title, True

    with (
        mock.patch.object(demo, "require", side_effect=demo.LabError("Nodes cannot be made: nobody is root.")),
        mock.patch.object(demo, "Simulator"),
        mock.patch.object(demo, "state", return_value={}),
        mock.patch.object(demo.tempfile, "mkdtemp", return_value=str(tmp_path)),
        mock.patch.object(Demo, "tell", tell),
    ):
        assert demo.main([]) == 0
    assert ran == [chapter for chapter in CHAPTERS if not chapter.in_guests]
    assert len(ran) < len(CHAPTERS)
    assert "Not shown: the guests, training, and vMotion under load. Nodes cannot be made" in capsys.readouterr().out


def test_it_is_shown_on_another_vsphere_and_without_guests_if_asked(tmp_path: Path) -> None:
    with (
        mock.patch.object(demo, "require", side_effect=AssertionError("nobody asks what guests need")),
        mock.patch.object(demo, "Simulator") as simulator,
        mock.patch.object(demo, "state", return_value={}),
        mock.patch.object(demo.tempfile, "mkdtemp", return_value=str(tmp_path)),
        mock.patch.object(Demo, "tell", lambda _demo, _number, chapter: (chapter.title, True)),
    ):
        assert demo.main(["--without-guests", "--release", "9.0", "--encryption", "off"]) == 0
    assert simulator.call_args.args == (DATACENTRES / "lab.yml", "--release=9.0", "--encryption=off")


def test_what_differs_from_before_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo._as_before({"a": "1"}, {"a": "1"})[1]
    line, good = demo._as_before({"a": "1", "b": "2"}, {"a": "3", "c": "4"})
    assert not good and "2 properties compared, 3 differ" in line
    assert "a: 1 became 3" in capsys.readouterr().out


def test_the_ready_data_centre_is_the_lab_with_its_network() -> None:
    lab, ready = (yaml.safe_load((DATACENTRES / f"{name}.yml").read_text()) for name in ("lab", "ready"))
    assert "switches" not in lab
    (switch,) = ready.pop("switches")
    assert switch["uplinks"] == ["vmnic2"]
    vmk1 = ready["host_defaults"]["vmkernel"].pop()
    assert (vmk1["device"], vmk1["switch"]) == ("vmk1", "rdma")
    assert ready == lab
