# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The demo shows of a playbook what happened, names what takes long while it runs, and keeps the whole."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from lab import digest
from lab.digest import Digest

# Ansible ends some lines with a blank, here "~".
SAID = """
PLAY [Prepare] ****

TASK [one : Look] ****
ok: [gpu]

TASK [one : Look at each] ****
ok: [gpu] => (item=a)
skipping: [gpu] => (item=b)~
included: /x/tasks/more.yml for gpu

TASK [one : Change] ****
ok: [esx01]
changed: [esx02]
ok: [esx03]

TASK [one : Tell] ****
ok: [gpu] =>~
    msg:
    - it is so

TASK [one : Wait] ****
  esx01: reboots [0.0 s]
ok: [gpu]

TASK [one : Refuse] ****
fatal: [gpu]: FAILED! =>~
    msg: no

RUNNING HANDLER [one : Nothing] ****
ok: [gpu]

PLAY RECAP ****
gpu                        : ok=1
""".replace("~", " ")
SHOWN = """
PLAY [Prepare] ****

TASK [one : Change] ****
ok: [esx01]
changed: [esx02]
ok: [esx03]

TASK [one : Tell] ****
ok: [gpu] =>~
    msg:
    - it is so

TASK [one : Wait] ****
  esx01: reboots [0.0 s]
ok: [gpu]

TASK [one : Refuse] ****
fatal: [gpu]: FAILED! =>~
    msg: no

PLAY RECAP ****
gpu                        : ok=1
""".replace("~", " ")


def digested(said: str) -> str:
    short = Digest()
    return "".join(shown for line in said.splitlines(keepends=True) for shown in short.take(line))


def test_what_changed_or_was_told_is_shown_and_nothing_else() -> None:
    assert digested(SAID) == SHOWN


def test_colours_do_not_hide_what_a_line_is() -> None:
    said = "\nTASK [one] ****\n\x1b[0;32mok: [gpu]\x1b[0m\n\nTASK [two] ****\n\x1b[0;33mchanged: [gpu]\x1b[0m\n"
    assert digested(said) == "\nTASK [two] ****\n\x1b[0;33mchanged: [gpu]\x1b[0m\n"


def test_a_long_task_is_named_while_it_runs(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    program = f"print('TASK [one : Compile] ****', flush=True); open({str(gate)!r}).read(); print('ok: [gpu]')"
    shown: list[str] = []

    def show(lines: Iterator[str]) -> None:
        new = list(lines)
        shown.extend(new)
        if any("Compile" in line for line in new):
            threading.Thread(target=gate.write_text, args=("go on",)).start()

    with mock.patch.object(digest, "PATIENCE_SECONDS", 0.05), mock.patch.object(digest, "_show", show):
        assert (
            digest.run(["timeout", "20", sys.executable, "-c", program], tmp_path, dict(os.environ), tmp_path / "log")
            == 0
        )
    assert shown == ["TASK [one : Compile] ****\n", "ok: [gpu]\n"]


def test_the_whole_is_kept_and_the_exit_code_is_the_command_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "said").write_text(SAID)
    command = ["sh", "-c", "cat said; exit 3"]
    assert digest.run(command, tmp_path, dict(os.environ), tmp_path / "log") == 3
    assert (tmp_path / "log").read_text() == SAID
    assert capsys.readouterr().out == SHOWN
