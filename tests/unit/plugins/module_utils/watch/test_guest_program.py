"""The program for a node reports the timers of its ranks, and none of their keys."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from plugins.module_utils.watch import guest_program
from tests.reuse import reused


def test_reports_a_ranks_environment_without_its_keys(tmp_path: Path) -> None:
    environment = {"HOROVOD_SECRET_KEY": "hush", "NCCL_API_TOKEN": "hush", "HOME": "hush", "NCCL_IB_TIMEOUT": "20"}
    program, pipe = ["sh", "-c", "echo runs; read -r line"], subprocess.PIPE
    with subprocess.Popen(program, env={**environment, "PATH": "/usr/bin:/bin"}, stdin=pipe, stdout=pipe) as rank:
        (tmp_path / "rank0.jsonl").write_text(json.dumps({"pid": rank.pid}) + "\n")
        try:
            # Its environment cannot be read before it runs.
            assert rank.stdout and rank.stdout.readline() == b"runs\n"
            assert guest_program.rank_environment(str(tmp_path)) == {"NCCL_IB_TIMEOUT": "20"}
        finally:
            rank.kill()


def test_does_not_read_a_process_with_reused_pid(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as rank:
        record = {"pid": rank.pid, "start": guest_program.start_ticks(rank.pid)}
        (tmp_path / "rank0.jsonl").write_text(json.dumps(record) + "\n")
        assert guest_program.rank_environment(str(tmp_path)) == {}
        rank.kill()
    with reused(rank.pid):
        assert guest_program.rank_environment(str(tmp_path)) is None


def test_rdma_devices_are_listed(tmp_path: Path) -> None:
    assert guest_program.rdma_devices(str(tmp_path / "none")) == []
    (tmp_path / "mlx5_1").mkdir()
    (tmp_path / "mlx5_0").mkdir()
    assert guest_program.rdma_devices(str(tmp_path)) == ["mlx5_0", "mlx5_1"]


def mpirun(folder: Path, name: str, script: str, **environment: str) -> subprocess.Popen[str]:
    """Run a program with the name of mpirun that prints the PID of a child; ``name`` is its first argument."""
    program = folder / "mpirun"
    if not program.exists():
        shutil.copy(shutil.which("sh") or "/bin/sh", program)
    command = [str(program), "-c", f"{script} & echo $!; wait", name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})


@contextlib.contextmanager
def two_launchers(folder: Path, **environment: str) -> Iterator[int]:
    """Run the mpirun of another job and that of ours; yield the PID of our rank."""
    started = [mpirun(folder, "theirs", "sleep 60"), mpirun(folder, "ours", "exec sleep 60", **environment)]
    children = [int(one.stdout.readline()) for one in started if one.stdout]
    try:
        yield children[1]
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for one in started:
            one.communicate(timeout=30)


def test_reports_the_launcher_of_the_rank_among_several(tmp_path: Path) -> None:
    with two_launchers(tmp_path) as rank:
        assert guest_program.launcher(str(tmp_path)) == [], "either may be it"
        (tmp_path / "rank0.jsonl").write_text(json.dumps({"pid": rank}) + "\n")
        assert guest_program.launcher(str(tmp_path))[3] == "ours"


def test_finds_the_launcher_on_nodes_without_ranks(tmp_path: Path) -> None:
    with two_launchers(tmp_path, DML_RECORDS=str(tmp_path)):
        assert guest_program.launcher(str(tmp_path))[3] == "ours"


def test_newest_file_is_the_checkpoint(tmp_path: Path) -> None:
    assert guest_program.checkpoint(str(tmp_path)) is None

    for name, age in (("step-20", 60), ("step-40", 0)):
        (tmp_path / name).write_bytes(b"weights")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    newest = guest_program.checkpoint(str(tmp_path))

    assert newest is not None
    assert (newest["path"], newest["bytes"], newest["verified"]) == (str(tmp_path / "step-40"), 7, None)
