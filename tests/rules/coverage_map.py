# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""docs/testing.md as data: the table of each of its sections, and whether the tests that it names exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
NAME = re.compile(r"`([\w/]+\.py)(?:::(test_\w+))?`")


def rows(text: str) -> list[list[str]]:
    """Return the cells of the rows of all tables in a Markdown text, without the headings of the tables."""
    found = [re.split(r"\s*(?<!\\)\|\s*", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    heads = [number - 1 for number, row in enumerate(found) if set("".join(row)) == {"-"}]
    return [row for number, row in enumerate(found) if number not in heads and number - 1 not in heads]


def section(heading: str) -> dict[str, str]:
    """Return the tests of each statement in a section, and fail if the section states something twice."""
    body = DOCUMENT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = {row[0]: row[-1] for row in rows(body)}
    assert len(found) == len(rows(body)), f"{heading} has two rows with the same first cell"
    return found


@cache
def files() -> tuple[str, ...]:
    """Return the paths of all Python files in tests."""
    return tuple(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py"))


@cache
def functions(path: str) -> frozenset[str]:
    """Return the names of the functions in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def missing(text: str) -> list[str]:
    """Return the tests that a text names by the end of their path, and that do not exist or are ambiguous."""
    wrong = []
    for end, name in NAME.findall(text):
        paths = [path for path in files() if f"/{path}".endswith(f"/{end}")]
        if len(paths) != 1 or (name and name not in functions(paths[0])):
            wrong.append(f"{end}::{name}: {paths}")
    return wrong
