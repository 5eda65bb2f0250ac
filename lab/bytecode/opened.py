"""Records which files of the checkout a test file opens, itself and in the processes that it starts.

``make unit`` and ``make integration`` load it as a plugin of pytest, and Python's processes below them through
sitecustomize.py. At the end of such a run, .cache/opened has the table from which tools/quick.py selects tests.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TABLES = ROOT / ".cache" / "opened"
STAGES = ("tests/unit", "tests/integration")
# The file to which all processes of a run append, and the test file that runs now.
LOG, TEST = "DML_OPENED", "DML_OPENED_BY"
INSIDE = f"{ROOT}/"
LINK = ".ansible/collections/ansible_collections/dml/vsphere/"
FOREIGN = (".ansible/", ".cache/", ".git/", ".hypothesis/", ".venv/")
BUILT = {".cache/vcenter": "lab/vcenter/**", ".cache/govc": "lab/govc/**"}
# A test may replace these.
_open, _write, _close, _environment = os.open, os.write, os.close, os.environ
_SEEN: set[tuple[str, str]] = set()
_FAILED: set[str] = set()
_NOW = ""


def record() -> None:
    """Record from now on, until this process ends."""
    sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in {"open", "os.listdir", "os.scandir", "subprocess.Popen"}:
        return
    with contextlib.suppress(Exception):  # what this raises would be an error of the test
        if event == "subprocess.Popen":
            _note_command([os.fsdecode(word) for word in arguments[1]])
        elif isinstance(arguments[0], str | bytes | os.PathLike):
            _note(os.path.abspath(os.fsdecode(arguments[0])) + ("" if event == "open" else "/"))


def _note_command(words: list[str]) -> None:
    """Note the programs and files that a command names; git may list all files."""
    for before, word in itertools.pairwise(["", *words]):
        path = f"{word.replace('.', '/')}.py" if before == "-m" else word.partition("=")[2] or word
        if os.path.exists(path):  # a word may be anything, such as a password
            _note(os.path.abspath(path))
    if "ls-files" in words:
        _note(f"{INSIDE}**")


def _note(path: str) -> None:
    """Append a file, or a folder with its slash, and its reader to the log, once in this process."""
    if not path.startswith(INSIDE):
        return
    inside = path.removeprefix(INSIDE).removeprefix(LINK) or "./"
    inside = BUILT.get(inside, inside)
    test = _NOW or _environment.get(TEST, "")
    if inside.startswith(FOREIGN) or (test, inside) in _SEEN:
        return
    _SEEN.add((test, inside))
    if inside.endswith(".pyc"):
        inside = f"{inside.replace('__pycache__/', '').partition('.')[0]}.py"
    place, reader = _environment.get(LOG), _reader(sys._getframe(2)) or test
    if place and reader:
        log = _open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        _write(log, f"{reader}\t{inside}\n".encode())
        _close(log)


def _reader(frame: FrameType | None) -> str:
    """Return the file whose import or cached function reads now: it does so only once, for all tests that use it."""
    while frame:
        code = frame.f_code
        if code.co_filename.startswith(INSIDE):
            kept: Any = frame.f_globals.get(code.co_name)
            is_cached = hasattr(kept, "cache_info") and kept.__wrapped__.__code__ is code
            inside = code.co_filename.removeprefix(INSIDE).removeprefix(LINK)
            if (is_cached or code.co_name == "<module>") and not inside.startswith(FOREIGN):
                return inside
        frame = frame.f_back
    return ""


def pytest_configure(config: Any) -> None:
    """Record in this process, and in those that it starts."""
    if not hasattr(config, "workerinput"):
        TABLES.mkdir(parents=True, exist_ok=True)
        os.environ[LOG] = str(TABLES / f"{os.getpid()}.log")
    real = importlib.import_module

    def noted(name: str, package: str | None = None) -> Any:
        """Note a module that an earlier test of this process may have imported."""
        _note(f"{INSIDE}{name.replace('.', '/')}.py")
        return real(name, package)

    vars(importlib)["import_module"] = noted
    record()


def pytest_runtest_logstart(location: tuple[str, int | None, str]) -> None:
    """Record for the file of this test."""
    global _NOW  # noqa: PLW0603 # a test that replaces its environment is still this test
    _NOW = os.environ[TEST] = location[0]


def pytest_runtest_logreport(report: Any) -> None:
    """Keep the files whose tests fail: their record may lack what they would have opened."""
    if report.failed:
        _FAILED.add(report.location[0])


def pytest_sessionfinish(session: Any) -> None:
    """Write the table at the end of a run of all tests of a stage."""
    if hasattr(session.config, "workerinput"):
        return
    log = Path(os.environ[LOG])
    lines = {tuple(line.split("\t")) for line in log.read_text().splitlines()} if log.exists() else set()
    log.unlink(missing_ok=True)
    stage = next((each for each in STAGES if session.config.args == [each]), None)
    if stage is None or session.config.option.keyword:
        return
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    opened: dict[str, list[str]] = {}
    for reader, path in sorted(lines):
        if reader not in _FAILED:
            opened.setdefault(reader, []).append(path)
    table = TABLES / f"{Path(stage).name}.json"
    table.write_text(json.dumps({"commit": commit.strip(), "opened": opened}, indent=0))
