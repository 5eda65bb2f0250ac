"""A recorded run replaces the rows of its stages in the table of the documentation, and no others."""

from __future__ import annotations

from pathlib import Path

from tools.stages import TABLE, Count, Outcome, recorded

PAGE = """\
Before

| Stage | Commit | Day |
|---|---|---|
| `unit` | 1 | old |
| `attack` | 1 | old |

After
"""


def outcome(name: str, good: bool, tests: Count) -> Outcome:
    return Outcome(name, 10, 20.4, 30.6, good, tests)


def test_a_run_replaces_its_own_rows_only() -> None:
    done = [outcome("unit", False, Count(9, 1)), outcome("setup", True, Count(1))]

    assert recorded(PAGE, done, "abc", "today") == PAGE.replace(
        "| `unit` | 1 | old |", "| `unit` | abc | today | **failed** | 9 passed, **1 failed** | 20 | 31 |"
    ).replace(
        "| `attack` | 1 | old |\n", "| `attack` | 1 | old |\n| `setup` | abc | today | passed | 1 passed | 20 | 31 |\n"
    )


def test_the_documentation_has_the_table() -> None:
    assert TABLE.search((Path(__file__).parents[2] / "docs" / "testing.md").read_text())
