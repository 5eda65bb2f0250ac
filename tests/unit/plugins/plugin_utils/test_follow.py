"""Events are shown whole, in order, once each, and odd lines end nothing."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.progress import Progress
from plugins.plugin_utils import follow


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "events"
    path.touch(mode=0o600)
    return path


def test_shows_messages_of_many_threads_without_mixing_lines(file: Path) -> None:
    shown: list[dict[str, Any]] = []
    progress = Progress(str(file))

    def work(host: str) -> None:
        for step in range(50):
            progress.report(host, f"step {step}")

    with follow.Follower(str(file), shown.append):
        threads = [threading.Thread(target=work, args=(f"esx{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(shown) == 400
    for number in range(8):
        mine = [event["what"] for event in shown if event["about"] == f"esx{number}"]
        assert mine == [f"step {step}" for step in range(50)]


def test_shows_a_line_once_it_is_complete(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, Any]] = []
    seen = threading.Event()
    monkeypatch.setattr(follow, "POLL_SECONDS", 0.01)

    def show(event: dict[str, Any]) -> None:
        shown.append(event)
        seen.set()

    line = json.dumps({"about": "esx1", "what": "is down", "seconds": 1.5})
    with follow.Follower(str(file), show), file.open("a") as events:
        events.write(line[:10])
        events.flush()
        assert not seen.wait(0.2)
        events.write(line[10:] + "\n")
        events.flush()
        assert seen.wait(10)
    assert [follow.line_of(event) for event in shown] == ["  esx1: is down [1.5 s]"]


@pytest.mark.parametrize(
    "odd", ["no json", "[]", '{"about": "x"}', '"text"', "\x1b[31m", '{"about": 1, "what": 2, "seconds": "x"}']
)
def test_an_invalid_line_does_not_end_the_reader(file: Path, odd: str) -> None:
    shown: list[dict[str, Any]] = []
    with follow.Follower(str(file), shown.append):
        file.write_text(odd + "\n")
        Progress(str(file)).report("esx1", "is down")
    assert [event["what"] for event in shown][1:] == ["is down"]
    assert "\x1b" not in follow.line_of(shown[0])


def test_the_file_is_private_and_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow.constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    with follow._private_file() as path:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert not os.path.exists(path)


def test_reports_nothing_without_a_file_and_refuses_links(tmp_path: Path, file: Path) -> None:
    Progress(None).report("esx1", "is down")
    link = tmp_path / "link"
    link.symlink_to(file)
    with pytest.raises(OSError, match="Too many levels"):
        Progress(str(link))
    with pytest.raises(FileNotFoundError):
        Progress(str(tmp_path / "absent"))
