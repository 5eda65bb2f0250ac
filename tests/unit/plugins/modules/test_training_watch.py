# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""training_watch as a module: its result says why it ended and what came from where."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args

from plugins.modules import training_watch


def test_the_result_names_the_end_and_the_source_of_each_value(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    (folder / "rank0.jsonl").write_text('{"step": 1}\n{"step": 2}\n')
    arguments = {
        "nodes": [{"name": "n1", "reach": ["sh", "-c"]}],
        "folder": str(folder),
        "records": str(tmp_path / "out.jsonl"),
        "stop": str(tmp_path / "stop"),
        "silence": 2.0,
    }
    answer = io.StringIO()
    with patch_module_args(arguments), redirect_stdout(answer), pytest.raises(SystemExit) as end:
        training_watch.main()
    result = json.loads(answer.getvalue())
    assert (end.value.code, result["ended"], result["unreadable"]) == (0, "silent", 0)
    assert (result["nodes"]["n1"]["lines"], result["changed"]) == (2, False)
    assert [json.loads(line)["step"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [1, 2]


HOLDER = """
import fcntl, sys, time
with open(sys.argv[1]) as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_watch_ends_after_a_while_without_attention(tmp_path: Path) -> None:
    """After a real kill -9: the kernel releases the lock of the killed process."""
    journal = tmp_path / "journal.jsonl"
    journal.touch()
    files = {"folder": str(tmp_path), "records": str(tmp_path / "out"), "stop": str(tmp_path / "stop")}
    options = {**files, "nodes": [], "attended": str(journal), "alone": 1.0}
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(journal)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout and holder.stdout.readline() == b"held\n"
        held = 4.0
        threading.Timer(held, holder.kill).start()
        began, answer = time.monotonic(), io.StringIO()
        with patch_module_args(options), redirect_stdout(answer), pytest.raises(SystemExit):
            training_watch.main()
        took = time.monotonic() - began
        assert holder.wait() == -signal.SIGKILL
    assert json.loads(answer.getvalue())["ended"] == "abandoned"
    assert took > held - 1.0, "the watch continues while a process holds the lock"


def test_the_watch_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    files = {"folder": str(tmp_path), "records": str(tmp_path / "out"), "stop": str(tmp_path / "stop")}
    with subprocess.Popen(["sleep", "60"]) as asking:
        killing = threading.Timer(1.0, asking.kill)
        killing.start()
        answer = io.StringIO()
        with (
            patch_module_args({**files, "nodes": [], "asked_by": asking.pid}),
            redirect_stdout(answer),
            pytest.raises(SystemExit),
        ):
            training_watch.main()
        assert asking.wait() < 0
    assert json.loads(answer.getvalue())["ended"] == "abandoned"


def test_a_file_of_records_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    files = {"folder": str(tmp_path), "records": str(tmp_path / "no" / "out"), "stop": str(tmp_path / "stop")}
    answer = io.StringIO()
    with patch_module_args({**files, "nodes": []}), redirect_stdout(answer), pytest.raises(SystemExit):
        training_watch.main()
    message = f"{tmp_path}/no/out: could not collect the records of the job: No such file or directory"
    assert json.loads(answer.getvalue())["msg"] == message
