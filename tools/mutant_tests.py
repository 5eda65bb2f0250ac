# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs tests against changed code, in forks of a process that has pytest loaded already.

The quick way is for functions that only tests call: tests are collected once, and each fork puts the changed code into
the functions that are there. What runs at the import is tried in a fork that imports the changed file.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.machinery
import json
import math
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

# pylint: disable=unused-import # loaded before the forks, as all that is not ours
import hypothesis.strategies  # noqa: F401
import pytest
import yaml  # noqa: F401
from _pytest.runner import runtestprotocol

from tools.mutations import Mutant

# The tests of this house draw the same examples for each mutant; `mutants` is a profile of tests/unit/conftest.py.
PYTEST = ["-x", "-q", "-o", "cache_dir=.cache/mutants/pytest", "-p", "_hypothesis_pytestplugin",
          "--hypothesis-profile=mutants"]  # fmt: skip
# A mutant may loop or fill the memory; a machine at work elsewhere must not decide, so the processor's time counts.
TIMES, AT_LEAST_SECONDS = 5, 3
TOO_LONG, UNFIT = 99, 98
MEMORY_BYTES = 2 << 30
WALL_SECONDS = 1200


@dataclass(frozen=True)
class Measured:
    """The processor's time of each test, and the functions of the changed files that it comes through."""

    seconds: dict[str, float]
    reached: dict[str, set[tuple[str, int]]]

    def reaching(self, file: str, function: int | None) -> list[str]:
        """The tests that come through a function, quick ones first; all tests for what runs at the import."""
        found = [test for test, places in self.reached.items() if function is None or (file, function) in places]
        return sorted(found, key=lambda test: self.seconds[test])

    def limit(self, test: str) -> float:
        """How long a test may take before its mutant counts as one that never ends."""
        return max(AT_LEAST_SECONDS, TIMES * self.seconds[test])


class _Loop:
    """A plugin of pytest that measures all tests, and then runs them against each mutant, instead of once."""

    def __init__(self, files: Iterable[str], mutants: Sequence[Mutant], jobs: int) -> None:
        self._files = {str(Path(file).resolve()): file for file in files}
        self._mutants, self._jobs = mutants, jobs
        self.known = Measured({}, {})
        self.codes: dict[int, int] = {}
        self.is_well = False
        self._at_import: set[tuple[str, int]] = set()
        self._functions: dict[str, list[FunctionType]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Any:
        """Note what runs while tests and all that they need are imported."""
        self._note(self._at_import)
        try:
            return (yield)
        finally:
            sys.setprofile(None)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """All of it."""
        items = {item.nodeid: item for item in session.items}
        passed = [self._measure(item) for item in items.values()]
        self.is_well = not session.testsfailed and bool(items) and all(passed)
        if self.is_well:
            self._try_all(items)
        return True

    def _measure(self, item: pytest.Item) -> bool:
        """Run one test unchanged: whether it passes."""
        began = time.process_time()
        self._note(self.known.reached.setdefault(item.nodeid, set()))
        try:
            return _passes(item)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            self.known.seconds[item.nodeid] = time.process_time() - began

    def _note(self, places: set[tuple[str, int]]) -> None:
        """From now on keep which functions of the changed files are called."""

        def note(frame: FrameType, event: str, argument: object) -> None:
            del argument
            file = self._files.get(frame.f_code.co_filename) if event == "call" else None
            if file:
                places.add((file, frame.f_code.co_firstlineno))

        sys.setprofile(note)
        threading.setprofile(note)

    def _try_all(self, items: Mapping[str, pytest.Item]) -> None:
        running: dict[int, int] = {}
        self._functions = _functions_of(self._files)
        # What a fork collects or only looks at is copied for it: what is there now is left alone.
        gc.collect()
        gc.freeze()
        for index, mutant in enumerate(self._mutants):
            if mutant.function is not None and (mutant.key.file, mutant.function) not in self._at_import:
                while len(running) >= self._jobs:
                    self._wait(running)
                running[_fork(functools.partial(self._try, mutant, items), None)] = index
        while running:
            self._wait(running)

    def _wait(self, running: dict[int, int]) -> None:
        child, status = os.wait()
        self.codes[running.pop(child)] = _code(status)

    def _try(self, mutant: Mutant, items: Mapping[str, pytest.Item]) -> int:
        """1 where a test notices the mutant, 0 where none does, ``UNFIT`` where its code does not fit in here."""
        _silence()
        signal.signal(signal.SIGPROF, lambda _signal, _frame: os._exit(TOO_LONG))
        if not _put(mutant.code, self._functions[mutant.code.co_filename]):
            return UNFIT
        for test in self.known.reaching(mutant.key.file, mutant.function):
            signal.setitimer(signal.ITIMER_PROF, self.known.limit(test))
            if not _passes(items[test]):
                return 1
        return 0


class _Limit:
    """A plugin of pytest that ends this process where a test takes longer than it may."""

    def __init__(self, known: Measured) -> None:
        self._known = known
        signal.signal(signal.SIGPROF, lambda _signal, _frame: os._exit(TOO_LONG))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Begin its time anew."""
        signal.setitimer(signal.ITIMER_PROF, self._known.limit(item.nodeid))
        return (yield)


def quickly(
    files: Sequence[str], tests: Sequence[str], mutants: Sequence[Mutant], jobs: int
) -> tuple[Measured, dict[int, int]]:
    """The measured tests, and for each mutant of a function, by its number, how the quick way ended."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.json"

        def work() -> int:
            loop = _Loop(files, mutants, jobs)
            code = int(pytest.main([*PYTEST, *tests], plugins=[loop]))
            reached = {test: sorted(places) for test, places in loop.known.reached.items()}
            told.write_text(json.dumps([loop.known.seconds, reached, list(loop.codes.items())]))
            return 0 if loop.is_well else code or 1

        if _code(os.waitpid(_fork(work, None), 0)[1]) != 0:
            raise SystemExit(f"The tests do not pass without any change: pytest {' '.join(tests)}")
        seconds, reached, codes = json.loads(told.read_text())
    places = {test: {tuple(place) for place in found} for test, found in reached.items()}
    return Measured(seconds, places), dict(codes)


def run_changed(mutant: Mutant, known: Measured) -> int:
    """The exit code of pytest with a file changed before it is imported, 0 where all tests pass."""
    tests = known.reaching(mutant.key.file, None)

    def work() -> int:
        _silence()
        _replace(mutant.code)
        code = int(pytest.main([*PYTEST, *tests], plugins=[_Limit(known)]))
        if code != pytest.ExitCode.USAGE_ERROR:
            return code
        # The change is in the name of a test, such as that of a parameter.
        return int(pytest.main([*PYTEST, *dict.fromkeys(test.partition("::")[0] for test in tests)]))

    child = _fork(work, math.ceil(sum(map(known.limit, tests))))
    return _code(os.waitpid(child, 0)[1])


def _passes(item: pytest.Item) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def _functions_of(files: Iterable[str]) -> dict[str, list[FunctionType]]:
    """The functions that are there now, by the file that they are written in."""
    found: dict[str, list[FunctionType]] = {file: [] for file in files}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename in found:
            found[one.__code__.co_filename].append(one)
    return found


def _put(code: CodeType, functions: Iterable[FunctionType]) -> bool:
    """Put changed code into all functions that have the code of the same place now; False where it does not fit."""
    changed = {(one.co_qualname, one.co_firstlineno): one for one in _inside(code)}
    for one in functions:
        try:
            one.__code__ = changed[one.__code__.co_qualname, one.__code__.co_firstlineno]
        except (KeyError, ValueError):
            return False
    return True


def _inside(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _inside(one)


def _replace(code: CodeType) -> None:
    """Let whoever imports a file get other code than is written in it."""
    usual = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        return code if os.path.realpath(loader.path) == code.co_filename else usual(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]


def _fork(work: Callable[[], int], seconds: int | None) -> int:
    """Some work in a process of its own, which ends with its code, 1 where it raises."""
    child = os.fork()
    if child:
        return child
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    code = 1
    with contextlib.suppress(BaseException):
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        code = work()
    sys.stdout.flush()
    os._exit(code)


def _silence() -> None:
    """Say nothing and take no more memory than a test may; whoever waits for ever is ended by an alarm."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(WALL_SECONDS)


def _code(status: int) -> int:
    """The exit code of a process, ``TOO_LONG`` where its time was over."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM):
        return TOO_LONG
    return os.waitstatus_to_exitcode(status)
