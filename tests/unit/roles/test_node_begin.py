"""The report of the shell about a node before any module runs there."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.rendering import value

SCRIPT = Path(__file__).parents[3] / "roles" / "node" / "files" / "begin.sh"


def program(folder: Path, name: str, text: str) -> None:
    """A program of the node."""
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def lines_of(folder: Path, *interpreters: str, patience: int = 5) -> list[str]:
    """Return what the script says on a node that has these programs and no others of its kind."""
    for tool in ("sh", "timeout", "sleep"):
        (folder / tool).symlink_to(shutil.which(tool) or "")
    command = ["/bin/sh", str(SCRIPT), str(patience), *interpreters]
    done = subprocess.run(command, env={"PATH": str(folder)}, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_reports_the_first_interpreter_found(tmp_path: Path) -> None:
    program(tmp_path, "python3.8", 'echo python 3.8 "$3"')
    program(tmp_path, "python3", 'echo python 3.6 "$3"')
    assert lines_of(tmp_path, "python3.9", "python3.8", "python3") == ["python 3.8 python3.8"]


def test_a_node_without_python_reports_no_interpreter(tmp_path: Path) -> None:
    assert lines_of(tmp_path, "python3.9", "/usr/bin/python3-of-nobody") == []


@pytest.mark.parametrize("code", [0, 1, 2])
def test_reports_the_end_of_the_first_boot(tmp_path: Path, code: int) -> None:
    program(tmp_path, "cloud-init", f'[ "$*" = "status --wait" ] && echo ......status: done && exit {code}; exit 9')
    assert lines_of(tmp_path) == [f"cloud-init {code}"]


def test_waits_for_the_first_boot_with_a_deadline(tmp_path: Path) -> None:
    program(tmp_path, "cloud-init", "sleep 60")
    began = time.monotonic()
    assert lines_of(tmp_path, patience=1) == ["cloud-init 124"]
    assert 1 <= time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("reported", "version"),
    [("cloud-init 0\r\npython 3.6 /usr/bin/python3\r\n", "3.6"), ("python 3.12 x", "3.12"), ("", "0")],
)
def test_reads_the_version_from_shell_output(reported: str, version: str) -> None:
    assert value("node", "__node_python", __node_begun={"stdout": reported}) == version


def test_queries_only_a_named_interpreter() -> None:
    assert value("node", "__node_pythons", ansible_python_interpreter="/opt/python/bin/python3") == [
        "/opt/python/bin/python3"
    ]
    assert "/usr/bin/python3" in value("node", "__node_pythons", ansible_python_interpreter="auto")


@pytest.mark.parametrize("count", [1, 2, 400])
def test_a_login_per_node_shows_mutual_reach(count: int) -> None:
    peers = [f"n{number}" for number in range(count)]
    met = [value("node", "__node_next", node_peers=peers, inventory_hostname=name) for name in peers]
    assert sorted(met) == sorted(peers)
    assert all(name != peer for name, peer in zip(peers, met, strict=True)) or count == 1
