"""The watch as a process that outlives the playbook, and writes why it ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from plugins.module_utils import runner
from plugins.module_utils.watch.watch_process import watch_records, why_ended
from plugins.module_utils.watch.watcher import is_watched
from plugins.plugin_utils.controller import start_watch
from tests.lab.places import until

HOLDER = """
import fcntl, sys, time
with open(sys.argv[1]) as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(60)
"""


def options(place: Path, **more: Any) -> dict[str, Any]:
    files = {"folder": str(place), "records": str(place / "out.jsonl"), "stop": str(place / "stop")}
    return {**files, "nodes": [], **more}


def watched(place: Path, **more: Any) -> dict[str, Any]:
    return runner.outcome(lambda: watch_records(**options(place, **more)))


def test_the_result_names_the_ending_and_each_source(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    (folder / "rank0.jsonl").write_text('{"step": 1}\n{"step": 2}\n')
    nodes = [{"name": "n1", "reach": ["sh", "-c"]}]

    result = watched(tmp_path, nodes=nodes, folder=str(folder), silence=2.0)

    assert (result["ended"], result["unreadable"], result["nodes"]["n1"]["lines"]) == ("silent", 0, 2)
    assert [json.loads(line)["step"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [1, 2]


def test_the_watch_ends_after_a_while_without_attention(tmp_path: Path) -> None:
    """After a real kill -9: the kernel releases the lock of the killed process."""
    journal = tmp_path / "journal.jsonl"
    journal.touch()
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(journal)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout and holder.stdout.readline() == b"held\n"
        held = 4.0
        threading.Timer(held, holder.kill).start()
        began = time.monotonic()
        result = watched(tmp_path, attended=str(journal), alone=1.0)
        took = time.monotonic() - began
        assert holder.wait() == -signal.SIGKILL
    assert result["ended"] == "abandoned"
    assert took > held - 1.0, "the watch continues while a process holds the lock"


def test_the_watch_ends_with_its_starting_process(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as asking:
        threading.Timer(1.0, asking.kill).start()
        result = watched(tmp_path, started_by=asking.pid)
        assert asking.wait() < 0
    assert result["ended"] == "abandoned"


def test_reports_a_record_file_that_cannot_be_written(tmp_path: Path) -> None:
    failed = watched(tmp_path, records=str(tmp_path / "no" / "out"))

    message = f"{tmp_path}/no/out: could not collect the records of the job: No such file or directory"
    assert (failed["failed"], failed["msg"]) == (True, message)


def test_the_background_watch_reports_why_it_ended(tmp_path: Path) -> None:
    records = tmp_path / "out.jsonl"

    assert start_watch(options(tmp_path, silence=60.0)) == {}

    until(lambda: is_watched(records), "the watch runs", 30)
    (tmp_path / "stop").touch()
    until(lambda: why_ended(str(records)) == "stopped", "the watch ended", 30)
    assert (tmp_path / "out.jsonl.watch").stat().st_mode & 0o777 == 0o600


def test_reports_a_watch_that_cannot_start(tmp_path: Path) -> None:
    failed = start_watch(options(tmp_path, records=str(tmp_path / "no" / "out")))

    assert failed["msg"] == f"{tmp_path}/no/out.watch: could not start the watch: No such file or directory"


def test_the_last_line_reports_a_watch_error(tmp_path: Path) -> None:
    records = tmp_path / "out.jsonl"
    assert why_ended(str(records)) == ""

    with (tmp_path / "out.jsonl.watch").open("w") as output:
        output.write("Traceback:\nModuleNotFoundError: No module named 'fcntl'\n")

    assert why_ended(str(records)).startswith("ModuleNotFoundError")
