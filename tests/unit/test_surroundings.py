"""A test has the same result in each checkout, on each day and for each user."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

TESTS = Path(__file__).parents[1]
CHECKOUT = TESTS.parent
CONSTANT = 7654321987654321987
# A day, or seconds since 1970; 2099 stands for a time that never comes.
DATE = re.compile(r"\b20(?!99)[2-9]\d-[01]\d-[0-3]\d(?!\d)|\b(?:1[6-9]|2[01])\d{8}(?!\d)")
NOW = re.compile(r"\btime\.time\(\)|\bdatetime\.now\(|\bdate\.today\(")
# Their modules and playbooks read the clock.
REAL = ("attack", "integration", "kubernetes", "lab")


def test_examples_ignore_constants_of_loaded_modules(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Which modules are loaded, and taken for local, depends on the path of the checkout and on earlier tests."""
    drawn: set[int] = set()

    @settings(max_examples=2000)
    @given(st.integers(CONSTANT - 2**40, CONSTANT + 2**40))
    def draw(number: int) -> None:
        drawn.add(number)

    source = tmp_path_factory.mktemp("checkout") / "local.py"
    source.write_text(f"X = {CONSTANT}\n")
    module = ModuleType("local")
    module.__file__ = str(source)
    monkeypatch.setitem(sys.modules, "local", module)
    draw()

    assert len(drawn) > 1000 and CONSTANT not in drawn


def fixed_dates(source: str) -> list[str]:
    """The lines of a Python file with a fixed date, without its docstrings."""
    nodes = list(ast.walk(ast.parse(source)))
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in documents]
    dates = [node for node in constants if not isinstance(node.value, bytes) and DATE.search(str(node.value))]
    made = [
        node
        for node in nodes
        if isinstance(node, ast.Call) and re.match(r"(\w+\.)?datetime\(20\d\d", ast.unparse(node))
    ]
    return sorted({f"line {node.lineno}" for node in [*dates, *made]})


def test_no_fixed_date_is_compared_with_the_clock() -> None:
    """A test passes on the day on which it was written, and fails later; take the date from the clock."""
    found = {}
    for path in sorted(TESTS.rglob("*.py")):
        text, folder = path.read_text(), path.relative_to(TESTS).parts[0]
        if folder in REAL or (folder == "unit" and NOW.search(text)):
            found[path.relative_to(TESTS).as_posix()] = fixed_dates(text)

    assert len(found) > 150 and {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "date", ['"at 2026-11-22T07:12:03Z"', 'f"1795766400.5 {log}"', "1795766400", "datetime(2026, 3, 1)"]
)
def test_finds_a_fixed_date(date: str) -> None:
    assert fixed_dates(f"x = {date}") == ["line 1"] and fixed_dates('"""Since 2026-11-22."""\ny = "2099-01-01"') == []


@pytest.mark.parametrize("home", [None, "", "/nonexistent", "own"])
def test_user_without_home_gets_one_in_the_checkout(tmp_path: Path, home: str | None) -> None:
    """Go refuses to build without a place for its caches."""
    expected = str(tmp_path) if home == "own" else f"{CHECKOUT}/.cache/home"
    given = {key: value for key, value in os.environ.items() if key != "HOME" and not key.startswith("MAKE")}
    given |= {} if home is None else {"HOME": expected if home == "own" else home}
    show = ["make", "--file", "-", "--no-print-directory", "show"]
    rule = f"include {CHECKOUT}/Makefile\nshow:\n\t@echo $$HOME\n"
    done = subprocess.run(show, input=rule, cwd=CHECKOUT, env=given, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == expected
