# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The reports of virsh and the guest agent about a move: its progress, and whether the guest is intact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.machines import health, jobs
from lab.machines.health import Condition
from lab.nodes.programs import LabError

# As virsh 9.0 prints it.
RUNNING = """\
Job type:         Unbounded
Operation:        Outgoing migration
Time elapsed:     1204         ms
Data processed:   120.250 MiB
Data remaining:   361.500 MiB
Data total:       482.016 MiB
Memory bandwidth: 100.000 MiB/s
Normal pages:     30784
"""
BEFORE = Condition("aaaa", 0.25, 10)


def test_sizes_are_bytes_and_times_seconds() -> None:
    result = jobs.read(RUNNING)
    assert result["Time elapsed"] == 1.204
    assert result["Data remaining"] == 361.5 * 1024 * 1024
    assert (result["Operation"], result["Normal pages"]) == ("Outgoing migration", 30784)


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        (RUNNING, 25),
        (RUNNING.replace("361.500 MiB", "0.000 B"), 99),
        (RUNNING.replace("361.500 MiB", "1.000 GiB"), 0),
        ("Job type:         None\n", None),
        ("", None),
        (RUNNING.replace("482.016 MiB", "0.000 B"), None),
    ],
)
def test_how_far_a_migration_is(text: str, percent: int | None) -> None:
    assert jobs.percent(jobs.read(text)) == percent


@pytest.mark.parametrize(
    ("after", "reported", "why"),
    [
        (Condition("aaaa", 0.3, 90), "", ""),
        (Condition("aaaa", -5.9, 90), "[  9.1] systemd[1]: time has been changed\n", ""),
        (Condition("bbbb", 0.3, 90), "", "it rebooted: its boot id was aaaa and is bbbb"),
        (Condition("aaaa", -12.0, 90), "", "its clock drifted by -12.2 s from this machine's, in a stun of 6.0 s"),
        (Condition("aaaa", 3500.0, 90), "", "its clock drifted by +3499.8 s from this machine's, in a stun of 6.0 s"),
        (
            Condition("aaaa", 0.3, 90),
            "fine\n[   81.3] list_add corruption. prev->next should be next (x), but was y.\n",
            "its kernel logged: [   81.3] list_add corruption. prev->next should be next (x), but was y.",
        ),
        (
            Condition("aaaa", 0.3, 90),
            "[   99.0] Kernel panic - not syncing: x\n",
            "its kernel logged: [   99.0] Kernel panic - not syncing: x",
        ),
    ],
)
def test_whether_a_guest_came_through_whole(after: Condition, reported: str, why: str) -> None:
    assert health.doubt(BEFORE, after, 6.0, reported) == why


def test_condition_is_read_by_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health.time, "time", lambda: 1000.0)
    answers = {
        "guest-get-time": 1002500000000,
        "guest-file-open": 1001,
        "guest-file-read": {"count": 5, "buf-b64": "YWFhYQo=", "eof": False},
        "guest-file-close": {},
    }
    requested: list[str] = []

    def ask(command: dict[str, Any]) -> Any:
        requested.append(command["execute"])
        return answers[command["execute"]]

    console = tmp_path / "console.log"
    console.write_text("0123456789")
    assert health.read(ask, console) == Condition("aaaa", 2.5, 10)
    assert requested == list(answers), "what was opened is closed"


def test_quotes_the_refusal_of_an_agent() -> None:
    assert health.answer('{"return": 7}') == 7
    with pytest.raises(LabError, match="CommandNotFound"):
        health.answer('{"error": {"class": "CommandNotFound"}}')
