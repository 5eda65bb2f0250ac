"""Signals to the ranks that records identify: real processes, and others that must not get one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given

from plugins.module_utils.watch import signal_program
from plugins.module_utils.watch.node_programs import signal_ranks
from tests.fakes.foreign import json_text

FILES = Path(__file__).parents[5] / "roles" / "training" / "files"
TRAIN = """
import signal, sys
import dml_records
records = dml_records.start()
records.step(images=1, loss=1.0)
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))
print("ready", flush=True)
signal.pause()
"""
HERE = [{"name": "n1", "reach": ["sh", "-c"]}]


def rank(folder: Path, number: int) -> subprocess.Popen[str]:
    variables = {"RANK": str(number), "WORLD_SIZE": "12", "DML_RECORDS": str(folder), "PYTHONPATH": str(FILES)}
    words = [sys.executable, "-c", TRAIN]
    process = subprocess.Popen(words, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "ready\n"
    return process


def test_each_rank_gets_the_signal_once_all_nodes_answer(tmp_path: Path) -> None:
    ranks = [rank(tmp_path, number) for number in (0, 10)]
    silent: list[Any] = [*HERE, {"name": "n2", "reach": ["false"]}]

    found = signal_ranks(HERE, str(tmp_path), "")
    refused = signal_ranks(silent, str(tmp_path), "USR1")
    alive = [process.poll() for process in ranks]
    sent = signal_ranks(HERE, str(tmp_path), "USR1")

    assert found == sent == {"ranks": ["0", "10"], "size": 12, "errors": {}}
    assert refused == {"ranks": [], "size": 0, "errors": {"n2": "it ended with 1"}} and alive == [None, None]
    for process in ranks:
        with process:
            assert process.wait(10) == 7
    assert signal_ranks(HERE, str(tmp_path), "USR1")["ranks"] == []


def test_no_process_that_took_the_number_of_a_rank_is_signalled(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ticks = int(Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
        for number, more in enumerate(({"start": ticks + 1, "boot_id": boot}, {"start": ticks, "boot_id": "other"})):
            (tmp_path / f"rank{number}.jsonl").write_text(json.dumps({"pid": process.pid, **more}) + "\n")
        (tmp_path / "rank2.jsonl").symlink_to("/etc/passwd")

        assert signal_ranks(HERE, str(tmp_path), "TERM") == {"ranks": [], "size": 0, "errors": {}}

        assert process.poll() is None
        process.kill()


@given(json_text({"pid": 1, "start": 2, "boot_id": "b"}))
def test_odd_records_identify_no_rank(record: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rank0.jsonl").write_bytes(record.encode("utf-8", "surrogatepass") + b"\n")
        assert signal_program.ranks_in(folder) == ({}, 0)
