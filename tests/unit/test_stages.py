"""A recorded run replaces the rows of its stages in the table of the documentation, and no others."""

from __future__ import annotations

import re
import subprocess
from datetime import date
from pathlib import Path

import pytest

from tools.stages import COLUMNS, Count, Outcome, commits_since, dated, recorded, rows_of

ROOT = Path(__file__).parents[2]
PAGE = """\
Before

| Stage | Commit | Day | Result | Tests | Seconds | Processor seconds | Commits since |
|---|---|---|---|---|---|---|---|
| `unit` | 1 | 2026-11-20 | passed | 9 passed | 20 | 31 | 0 |
| `integration` | 3 | 2026-11-22 | passed | 9 passed | 20 | 31 | 0 |

After
"""
README = "| | Python code and playbooks (not since 2026-01-01) | Simulated vCenter and ESXi | Real Linux guests |\n"


def outcome(name: str, good: bool, tests: Count) -> Outcome:
    return Outcome(name, 10, 20.4, 30.6, good, tests)


def test_run_replaces_its_own_rows_only() -> None:
    done = [outcome("unit", False, Count(9, 1)), outcome("setup", True, Count(1))]

    assert recorded(PAGE, done, "abc", "today", lambda commit: int(commit) + 1) == PAGE.replace(
        "| `unit` | 1 | 2026-11-20 | passed | 9 passed | 20 | 31 | 0 |",
        "| `unit` | abc | today | **failed** | 9 passed, **1 failed** | 20 | 31 | 0 |",
    ).replace(
        "| 9 passed | 20 | 31 | 0 |\n\n",
        "| 9 passed | 20 | 31 | 4 |\n| `setup` | abc | today | passed | 1 passed | 20 | 31 | 0 |\n\n",
    )


@pytest.mark.parametrize(
    ("path", "ages"), [("plugins/a.py", 1), ("roles/one/tasks/a.yml", 1), ("roles/one/README.md", 0), ("tests/a.py", 0)]
)
def test_commit_of_a_page_makes_no_stage_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, ages: int
) -> None:
    monkeypatch.chdir(tmp_path)
    commit = ["git", "-c", "user.name=one", "-c", "user.email=one@example.com", "commit", "-q", "-m", "one"]
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run([*commit, "--allow-empty"], check=True)
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).touch()
    subprocess.run(["git", "add", "."], check=True)
    subprocess.run(commit, check=True)

    assert commits_since("HEAD~1") == ages


@pytest.mark.parametrize(
    ("page", "code", "simulated"),
    [
        (PAGE, " (not since 2026-11-20)", ""),
        (PAGE.replace("2026-11-20", "2026-11-25"), "", ""),
        (PAGE.replace("22 | passed", "22 | **failed**"), " (failed on 2026-11-22)", " (failed on 2026-11-22)"),
    ],
)
def test_readme_names_stages_that_failed_or_are_old(page: str, code: str, simulated: str) -> None:
    assert dated(README, page, date(2026, 12, 1)) == (
        f"| | Python code and playbooks{code} | Simulated vCenter and ESXi{simulated} |"
        " Real Linux guests (no run recorded) |\n"
    )


def test_pages_have_the_tables() -> None:
    assert {"unit", "integration"} <= set(rows_of((ROOT / "docs" / "testing.md").read_text()))
    readme = (ROOT / "README.md").read_text()
    assert [column for column in COLUMNS if f"| {column}" not in readme] == []


def test_each_part_of_a_long_stage_is_a_stage() -> None:
    planned = subprocess.run(["make", "--dry-run", "test-full"], cwd=ROOT, capture_output=True, text=True, check=True)
    stages = set(re.findall(r"[\w-]+(?==\d)", planned.stdout))

    nodes = {f"nodes-{path.parent.name}" for path in (ROOT / "tests" / "lab").rglob("test_*.py")}
    scenarios = {f"molecule-{path.parent.name}" for path in (ROOT / "molecule").glob("*/molecule.yml")}

    assert nodes == {stage for stage in stages if stage.startswith("nodes-")} == set(COLUMNS["Real Linux guests"])
    assert scenarios == {stage for stage in stages if stage.startswith("molecule-")}
