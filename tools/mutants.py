"""Changes a sample of each room's code, one at a time; a test must notice: ``python -m tools.mutants [ROOM]...``.

A change is `<=` for `<`, `or` for `and`, a condition turned round, a number one higher, or a statement left out. The
sample depends only on the code: code edited elsewhere leaves it as it is. Tests are collected and measured once. For
each change a fork replaces the code of the function, and runs the tests that execute the changed line.
tests/mutants.txt has the changes noticed and drawn in each room. If fewer are noticed, the run fails and prints the
others; ``--all`` tries every change of the rooms named, ``--write`` records the scores.
"""

from __future__ import annotations

import argparse
import ast
import functools
import gc
import hashlib
import itertools
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import coverage
import pytest
from _pytest.runner import runtestprotocol

CODE, TESTS, SCORES = Path("plugins/module_utils"), Path("tests/unit/plugins"), Path("tests/mutants.txt")
# How many changes of each room are drawn: more where a mistake gives a wrong verdict or a wrong order of moves.
DRAWN = {
    "cluster": 20, "continuity": 80, "core": 20, "durable": 20, "fabric": 20, "guests": 30, "hosts": 40,
    "kubernetes": 30, "maintenance": 40, "moves/checks": 20, "moves/move": 20, "moves/plan": 40, "plan.py": 10,
    "runner.py": 20, "training": 40, "trials/checks": 10, "trials/evidence": 20, "trials/folder": 20,
    "trials/steps": 20, "usage": 20, "watch": 30, "workers": 40,
}  # fmt: skip
# Tests beside those of the room's mirror that run its code.
DEATHS = "../simulation/test_deaths.py"
OTHER_TESTS = {
    "plan.py": ["module_utils/test_runner.py"], "hosts": ["modules", DEATHS], "kubernetes": ["modules"],
    "trials/steps": ["module_utils/trials/programs", DEATHS], "workers": ["modules"],
}  # fmt: skip
# These take long, or measure time.
IGNORED = ("test_large.py", "test_generated.py", "test_log_cost.py")
PYTEST = ["-q", "--hypothesis-profile=mutants", *(f"--ignore-glob=*/{name}" for name in IGNORED)]
# How a fork says what its tests found. Any other end, except by a time limit, is a mistake of this tool.
NOTICED, MISSED, ERROR = 10, 11, 12
OTHER: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
# Sentences for people, and what no test can notice.
LEFT_ALONE = (ast.JoinedStr, ast.Import, ast.ImportFrom)


# The replacement of each kind of part of a function; None: no change. All variables of the function must stay.
CHANGES: dict[type, Callable[[Any], ast.AST | None]] = {
    ast.Compare: lambda node: ast.Compare(node.left, [OTHER[type(node.ops[0])](), *node.ops[1:]], node.comparators),
    ast.BoolOp: lambda node: ast.BoolOp(OTHER[type(node.op)](), node.values),
    ast.BinOp: lambda node: ast.BinOp(node.left, OTHER[type(node.op)](), node.right)
    if type(node.op) in OTHER else None,
    ast.UnaryOp: lambda node: node.operand if isinstance(node.op, ast.Not) else None,
    ast.If: lambda node: ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse),
    ast.While: lambda node: ast.While(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse),
    ast.IfExp: lambda node: ast.IfExp(node.test, node.orelse, node.body),
    ast.Constant: lambda node: ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
    if isinstance(node.value, (int, float)) else None,
    ast.Continue: lambda _node: ast.Break(),
    ast.Break: lambda _node: ast.Continue(),
    ast.Return: lambda node: None if isinstance(node.value, (ast.Constant, type(None)))
    else ast.Return(ast.IfExp(ast.Constant(False), node.value, ast.Constant(None))),
    ast.Raise: lambda node: ast.If(ast.Constant(False), [node], []),
    ast.Expr: lambda node: None if isinstance(node.value, ast.Constant) else ast.If(ast.Constant(False), [node], []),
}  # fmt: skip


class Mutant(NamedTuple):
    """One change: its file, its number there, the lines of its statement up to it, and its words."""

    file: Path
    number: int
    lines: range
    change: str


def places(node: ast.AST, at: int = 0) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, int]]:
    """Return the parts of all functions below a node: the parent, the field, the part, and its statement's line."""
    is_function = isinstance(node, (ast.FunctionDef, ast.Lambda))
    for name, value in ast.iter_fields(node):
        # The other fields of a function are used when it is defined.
        if (is_function and name != "body") or name == "annotation":
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not isinstance(child, LEFT_ALONE):
                starts = (is_function and not at) or (at and isinstance(child, ast.stmt))
                inside = getattr(child, "lineno", at) if starts else at
                if inside:
                    yield node, name, index, child, inside
                yield from places(child, inside)


def mutants(file: Path) -> Iterator[tuple[str, Mutant]]:
    """Return all changes of a file, each with the word by which it is drawn."""
    seen: set[str] = set()
    for number, (*_place, node, first) in enumerate(places(ast.parse(file.read_text()))):
        if changed := CHANGES.get(type(node), lambda _node: None)(node):
            # The words come from the changed part only, so that a line added above changes no sample.
            change = f"{short(node)}  ->  {short(changed)}"
            while (key := f"{file.name} {change}") in seen:
                change += " "
            seen.add(key)
            lines = range(first, getattr(getattr(node, "test", node), "lineno", first) + 1)
            yield hashlib.sha256(key.encode()).hexdigest(), Mutant(file.resolve(), number, lines, change)


def short(node: ast.AST) -> str:
    """Return the code of a part in one line; of a statement with a body only its condition."""
    if isinstance(node, (ast.If, ast.While)):
        return f"if {short(node.test)}"
    return " ".join(ast.unparse(ast.fix_missing_locations(node)).split())


def inner(code: CodeType) -> Iterator[CodeType]:
    """Return the code of all functions in compiled code."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from inner(each)


def replace(mutant: Mutant, functions: list[FunctionType]) -> None:
    """Give the loaded functions of a file the changed code."""
    tree = ast.parse(mutant.file.read_text())
    before = set(inner(compile(tree, str(mutant.file), "exec", dont_inherit=True)))
    parent, name, index, node, _first = next(itertools.islice(places(tree), mutant.number, None))
    changed: Any = CHANGES[type(node)](node)
    ast.copy_location(changed, node)
    if index is None:
        setattr(parent, name, changed)
    else:
        getattr(parent, name)[index] = changed
    after = set(inner(compile(ast.fix_missing_locations(tree), str(mutant.file), "exec", dont_inherit=True)))
    # Two functions of a line may have the same name, and only one is changed.
    codes = {(each.co_qualname, each.co_firstlineno): each for each in after - before}
    of_file = [each for each in functions if each.__code__.co_filename == str(mutant.file)]
    count = 0
    for each in of_file:
        new = codes.get((each.__code__.co_qualname, each.__code__.co_firstlineno))
        if new and each.__code__ not in after:
            each.__code__ = new
            count += 1
    if not count:
        raise LookupError(f"no loaded function has the code of {mutant}")


class Loop:
    """A plugin of pytest that measures all collected tests, and then runs them on each change."""

    def __init__(self, drawn: list[Mutant]) -> None:
        self.drawn, self.noticed, self.problem = drawn, [False] * len(drawn), "pytest ran no test"
        self.items: dict[str, pytest.Item] = {}
        self.seconds: dict[str, float] = {}
        self.running: dict[int, int] = {}
        files = sorted({str(each.file) for each in drawn})
        self.coverage = coverage.Coverage(data_file=None, include=files, messages=False, config_file=False)
        # Python's monitoring notes a line only in the first test that runs it.
        self.coverage.set_option("run:core", "ctrace")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all of it in the place of pytest's loop."""
        if session.testsfailed:
            raise session.Interrupted("a file of tests cannot be collected")
        self.items = {item.nodeid: item for item in session.items}
        self.coverage.start()
        failed = [name for name in self.items if not self.measure(name)]
        self.coverage.stop()
        self.problem = f"these fail on the code as it is: {', '.join(failed)}" if failed else ""
        # Changed code must compute all values again that the tests left in a cache.
        for each in gc.get_objects():
            if isinstance(each, functools._lru_cache_wrapper):
                each.cache_clear()
        if not failed:
            self.try_all()
        return True

    def measure(self, name: str) -> bool:
        """Run one test on the code as it is, and return whether it passes."""
        self.coverage.switch_context(name)
        start = time.process_time()
        has_passed = passes(self.items[name])
        self.seconds[name] = time.process_time() - start
        return has_passed

    def try_all(self) -> None:
        """Run the tests of each change in a fork; and all of them in one without a change, to see that they pass."""
        data = self.coverage.get_data()
        contexts = {file: data.contexts_by_lineno(file) for file in data.measured_files()}
        functions = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
        all_found: set[str] = set()
        for number, mutant in enumerate(self.drawn):
            of_lines = contexts.get(str(mutant.file), {})
            found = {test for line in mutant.lines for test in of_lines.get(line, ())} & set(self.items)
            all_found |= found
            if found:
                self.fork(number, functools.partial(replace, mutant, functions), found)
        self.fork(len(self.drawn), lambda: None, all_found)
        while self.running:
            self.wait()

    def fork(self, number: int, change: Callable[[], None], tests: set[str]) -> None:
        """Run tests, quick ones first, on a change in a new process, as soon as a processor is free."""
        while len(self.running) >= (os.cpu_count() or 1):
            self.wait()
        if child := os.fork():
            self.running[child] = number
            return
        code, stderr, nothing = ERROR, os.dup(2), os.open(os.devnull, os.O_WRONLY)
        try:
            change()
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            failed = next(filter(self.fails, sorted(tests, key=self.seconds.__getitem__)), "")
            if failed and number == len(self.drawn):
                os.write(stderr, f"{failed} fails without a change\n".encode())
            code = NOTICED if failed else MISSED
        except BaseException:
            os.dup2(stderr, 2)
            traceback.print_exc()
        finally:
            os._exit(code)

    def fails(self, test: str) -> bool:
        """Return whether a test fails. The processor's time counts too, because others may use the machine."""
        signal.alarm(int(60 + 20 * self.seconds[test]))
        signal.setitimer(signal.ITIMER_PROF, 3 + 5 * self.seconds[test])
        return not passes(self.items[test])

    def wait(self) -> None:
        """Wait for a fork, and not for a program that a test left. A test that its time limit ends has failed."""
        child, status = os.wait()
        if child in self.running:
            number, code = self.running.pop(child), os.waitstatus_to_exitcode(status)
            is_noticed = code in {NOTICED, -signal.SIGPROF, -signal.SIGALRM}
            if not is_noticed and code != MISSED:
                self.problem = f"a process ended with {code} on the change {self.drawn[number:][:1]}"
            elif number < len(self.drawn):
                self.noticed[number] = is_noticed
            elif is_noticed:
                self.problem = "a test fails in a new process without a change"


def passes(item: pytest.Item) -> bool:
    """Return whether one test passes."""
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def score(room: str, are_all: bool) -> tuple[int, int]:
    """Return how many changes of a room its tests notice, and how many were tried; print the others."""
    files = [CODE / room] if room.endswith(".py") else sorted((CODE / room).rglob("*.py"))
    drawn = [mutant for _key, mutant in sorted(each for file in files for each in mutants(file))]
    loop = Loop(drawn if are_all else drawn[: DRAWN[room]])
    mirror = TESTS / "module_utils" / room
    tests = [mirror] if mirror.is_dir() else sorted(mirror.parent.glob(f"test_{mirror.stem}*.py"))
    tests += [TESTS / each for each in OTHER_TESTS.get(room, ())]
    if pytest.main([*PYTEST, *map(str, tests)], plugins=[loop]) or loop.problem:
        raise SystemExit(f"The tests of {room} were not tried on its changes: {loop.problem}")
    for mutant, is_noticed in zip(loop.drawn, loop.noticed, strict=True):
        if not is_noticed:
            print(f"{mutant.file.relative_to(Path.cwd())}:{mutant.lines[-1]}: {mutant.change}")
    return sum(loop.noticed), len(loop.drawn)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("rooms", nargs="*", default=list(DRAWN))
    parser.add_argument("--all", action="store_true", help="try every change, and compare no score")
    parser.add_argument("--write", action="store_true", help=f"record the scores in {SCORES}")
    options = parser.parse_args()
    scores = {} if options.all else dict(line.split() for line in SCORES.read_text().splitlines())
    fallen = []
    for room in options.rooms:
        noticed, tried = score(room, options.all)
        before = scores.get(room, "0")
        print(
            f"{room}: {noticed} of {tried} changes noticed, {before} before; {sum(os.times()[:4]):.0f} s so far",
            flush=True,
        )
        if options.write:
            scores[room] = f"{noticed}/{tried}"
            SCORES.write_text("".join(f"{name} {found}\n" for name, found in sorted(scores.items())))
        elif not options.all and Fraction(noticed, tried) < Fraction(before):
            fallen.append(room)
    if fallen:
        print(f"Fewer changes are noticed than {SCORES} has: {', '.join(fallen)}", file=sys.stderr)
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
