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

# The output of a playbook, and whether the demo shows it. Ansible ends some lines with a blank, here "~".
BLOCKS = (
    (True, "PLAY [Prepare] ****\n"),
    (False, "TASK [one : Look] ****\nok: [gpu]\n"),
    (
        False,
        "TASK [one : Loop] ****\nok: [gpu] => (item=a)\nskipping: [gpu] => (item=b)~\nincluded: y.yml for gpu\n",
    ),
    (True, "TASK [one : Change] ****\nok: [esx01]\nchanged: [esx02]\nok: [esx03]\n"),
    (True, "TASK [one : Tell] ****\nok: [gpu] =>~\n    msg:\n    - it is so\n"),
    (True, "TASK [one : Wait] ****\n  esx01: reboots [0.0 s]\nok: [gpu]\n"),
    (True, "TASK [one : Refuse] ****\nfatal: [gpu]: FAILED! =>~\n    msg: no\n"),
    (False, "RUNNING HANDLER [one : Nothing] ****\nok: [gpu]\n"),
    (True, "PLAY RECAP ****\ngpu                        : ok=1\n"),
)
SAID = "".join(f"\n{block}" for _shown, block in BLOCKS).replace("~", " ")
SHOWN = "".join(f"\n{block}" for shown, block in BLOCKS if shown).replace("~", " ")
# Some users have PYTHONUNBUFFERED set already.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def digested(said: str) -> str:
    short = Digest()
    return "".join(shown for line in said.splitlines(keepends=True) for shown in short.take(line))


def test_what_changed_or_was_told_is_shown_and_nothing_else() -> None:
    assert digested(SAID) == SHOWN


def test_colours_do_not_hide_what_a_line_is() -> None:
    said = "\nTASK [one] ****\n\x1b[0;32mok: [gpu]\x1b[0m\n\nTASK [two] ****\n\x1b[0;33mchanged: [gpu]\x1b[0m\n"
    assert digested(said) == "\nTASK [two] ****\n\x1b[0;33mchanged: [gpu]\x1b[0m\n"


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
    "said",
    [
        "",
        "ASYNC POLL on n1: jid=1.2 started=True finished=False\n",
        "FAILED - RETRYING: [n1]: Compile (9 retries left).\n",
    ],
    ids=["silent", "polled", "retried"],
)
def test_a_long_task_is_named_while_it_runs(said: str, tmp_path: Path) -> None:
    task, gate = "TASK [one : Compile] ****\n", tmp_path / "gate"
    program = f"print({task + said!r}, end=''); open({str(gate)!r}).read(); print('ok: [gpu]')"
    with (
        mock.patch.object(digest, "PATIENCE_SECONDS", 0.05),
        contextlib.redirect_stdout(Opener("Compile", gate)) as out,
    ):
        assert digest.run([sys.executable, "-c", program], tmp_path, ENVIRONMENT, tmp_path / "log") == 0
    assert out.getvalue() == f"{task}ok: [gpu]\n"
    assert (tmp_path / "log").read_text() == f"{task}{said}ok: [gpu]\n"


def test_a_task_that_is_silent_for_long_gives_signs_of_life(capsys: pytest.CaptureFixture[str]) -> None:
    task, now = "TASK [one : Compile] ****\n", iter([0, 1, 3, 3, 31, 40, 64, 70, 70, 101.0])
    whole = io.StringIO()
    digest.show([task, None, None, None, None, "changed: [gpu]\n", None], whole, lambda: next(now))
    assert (
        capsys.readouterr().out
        == f"{task}  still running [37 s]\n  still running [61 s]\nchanged: [gpu]\n  still running [31 s]\n"
    )
    assert whole.getvalue() == f"{task}changed: [gpu]\n"


def test_what_a_command_leaves_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    command = ["sh", "-c", "sleep 600 & echo $! > left; echo done"]
    with mock.patch.object(digest, "PATIENCE_SECONDS", 0.05):
        assert digest.run(command, tmp_path, ENVIRONMENT, tmp_path / "log") == 0
    # Were it waited for, no one would be left to be killed.
    os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


def test_the_whole_is_kept_and_the_exit_code_is_the_command_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "said").write_text(SAID)
    command = ["sh", "-c", "cat said; exit 3"]
    assert digest.run(command, tmp_path, ENVIRONMENT, tmp_path / "log") == 3
    assert (tmp_path / "log").read_text() == SAID
    assert capsys.readouterr().out == SHOWN
