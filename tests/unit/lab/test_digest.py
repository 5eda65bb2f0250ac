# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The demo shows the changes of a playbook and names long tasks while they run; it keeps the complete output."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from pathlib import Path
from unittest import mock

import pytest

from lab import digest
from lab.digest import Digest

# The output of a playbook. Ansible ends some lines with a blank, here "~".
OUTPUT = """
PLAY [Nothing to see] ****

TASK [one : Look] ****
ok: [gpu]

PLAY [Prepare] ****

TASK [dml.vsphere.one : Loop] ****
ok: [gpu] => (item=a)
skipping: [gpu] => (item=b)~
included: y.yml for gpu

TASK [one : Plan] ****
--- before: esx01.lab: host profile
+++ after: esx01.lab: host profile
@@ -1,2 +1,2 @@
     'kept': 1
-    'gone': null
-    'mode': shared
+    'mode': direct 1
~

--- before: esx02.lab: host profile
+++ after: esx02.lab: host profile
@@ -1,2 +1,2 @@
-    'mode': shared
+    'mode': direct 2
~

changed: [gpu]

TASK [one : Change] ****
[WARNING]: esx01: the switch is not set
[WARNING]: esx02: the switch is not set
ok: [esx01]
changed: [esx02]
ok: [esx03]

TASK [one : Report] ****
ok: [gpu] =>~
    msg:
    - 'it is so:
        really'
    - and so

TASK [one : Alike] ****
ok: [w1] =>~
    msg: w1 has none.
ok: [w2] =>~
    msg: w2 has none.

TASK [one : Wait] ****
  esx01: reboots [0.0 s]
changed: [gpu]

RUNNING HANDLER [one : Nothing] ****
ok: [gpu]

PLAY RECAP ****
gpu                        : ok=1
""".replace("~", " ")
SHOWN = """
 Prepare
  Plan: esx01.lab, and 1 more alike: esx02.lab
    -    'mode': shared
    +    'mode': direct 1
  warning: esx01: the switch is not set
  changed: Change (esx02)
    it is so: really
    and so
    w1 has none.
    and 1 more alike: w2
    esx01: reboots [0.0 s]
"""
# Some users have PYTHONUNBUFFERED set already.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def digested(expected: str) -> str:
    short = Digest()
    taken = [shown for line in expected.splitlines(keepends=True) for shown in short.take(line)]
    return "".join([*taken, *short.end()])


def test_shows_only_changes_and_messages() -> None:
    assert digested(OUTPUT) == SHOWN


def test_colours_do_not_hide_what_a_line_is() -> None:
    message = "\nTASK [one] ****\n\x1b[0;32mok: [gpu]\x1b[0m\n\nTASK [two] ****\n\x1b[0;33mchanged: [gpu]\x1b[0m\n"
    assert digested(message) == "  changed: two (gpu)\n"


def test_a_failure_is_shown_whole() -> None:
    message = "TASK [one] ****\n[ERROR]: Task failed\nOrigin: x.yml\n\nfatal: [gpu]: FAILED! =>\n    msg: no\n"
    assert digested(message) == "  [ERROR]: Task failed\n  Origin: x.yml\n  fatal: [gpu]: FAILED! =>\n      msg: no\n"


def test_a_failure_that_the_playbook_ignores_is_not_shown() -> None:
    message = "TASK [one] ****\n[ERROR]: no\n\nfatal: [w1]: UNREACHABLE! =>\n    msg: no\n...ignoring\nchanged: [w2]\n"
    assert digested(message) == "  changed: one (w2)\n"


def test_a_long_difference_is_cut() -> None:
    lines = "".join(f"+    key{number}: {number}\n" for number in range(20))
    message = f"TASK [one] ****\n--- before: a: b\n+++ after: a: b\n@@ -0 +20 @@\n{lines} \n\nchanged: [gpu]\n"
    assert digested(message).splitlines()[-2:] == ["    +    key13: 13", "    ... and 6 more lines"]


class Opener(io.StringIO):
    """The shown output; a given word in it lets the program that waits at the gate continue."""

    def __init__(self, word: str, gate: Path) -> None:
        super().__init__()
        self._word, self._gate = word, gate
        os.mkfifo(gate)

    def write(self, text: str) -> int:
        if self._word in text:
            threading.Thread(target=self._gate.write_text, args=("go on",)).start()
        return super().write(text)


@pytest.mark.parametrize(
    "expected",
    [
        "",
        "ASYNC POLL on n1: jid=1.2 started=True finished=False\n",
        "FAILED - RETRYING: [n1]: Compile (9 retries left).\n",
    ],
    ids=["silent", "polled", "retried"],
)
def test_a_long_task_is_named_while_it_runs(expected: str, tmp_path: Path) -> None:
    task, gate = "TASK [one : Compile] ****\n", tmp_path / "gate"
    program = f"print({task + expected!r}, end=''); open({str(gate)!r}).read(); print('ok: [gpu]')"
    with (
        mock.patch.object(digest, "PATIENCE_SECONDS", 0.05),
        contextlib.redirect_stdout(Opener("Compile", gate)) as out,
    ):
        assert digest.run([sys.executable, "-c", program], tmp_path, ENVIRONMENT, tmp_path / "log") == 0
    assert out.getvalue() == "  Compile ...\n"
    assert (tmp_path / "log").read_text() == f"{task}{expected}ok: [gpu]\n"


def test_a_task_that_is_silent_for_long_gives_signs_of_life(capsys: pytest.CaptureFixture[str]) -> None:
    task, now = "TASK [one : Compile] ****\n", iter([0, 1, 3, 3, 31, 40, 64, 70, 70, 101.0])
    whole = io.StringIO()
    digest.show([task, None, None, None, None, "changed: [gpu]\n", None], whole, lambda: next(now))
    assert capsys.readouterr().out.splitlines() == [
        "  Compile ...",
        "  still running [37 s]",
        "  still running [61 s]",
        "  changed: Compile (gpu)",
    ]
    assert whole.getvalue() == f"{task}changed: [gpu]\n"


def test_does_not_wait_for_background_processes_of_a_command(tmp_path: Path) -> None:
    command = ["sh", "-c", "sleep 600 & echo $! > left; echo done"]
    with mock.patch.object(digest, "PATIENCE_SECONDS", 0.05):
        assert digest.run(command, tmp_path, ENVIRONMENT, tmp_path / "log") == 0
    # Were it waited for, no one would be left to be killed.
    os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


def test_the_whole_is_kept_and_the_exit_code_is_the_command_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "said").write_text(OUTPUT)
    command = ["sh", "-c", "cat said; exit 3"]
    assert digest.run(command, tmp_path, ENVIRONMENT, tmp_path / "log") == 3
    assert (tmp_path / "log").read_text() == OUTPUT
    assert capsys.readouterr().out == SHOWN
