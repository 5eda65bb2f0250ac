"""Runs make targets one after another, compares their times with budgets, and prints the number of all tests.

python tools/stages.py TARGET=SECONDS ...

With RECORD=1, a run of committed files writes its results to the table of stages in docs/testing.md, with the number of
commits since each run. The head of the README's table names the columns whose stages failed or are older than ten days.
"""

from __future__ import annotations

import datetime
import os
import re
import resource
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REPORTS = Path(".cache/reports")
PAGE, README = Path("docs/testing.md"), Path("README.md")
TABLE = re.compile(r"(\| Stage \| Commit .*\n\|[-|]+\n)((?:\|.*\n)*)")
# A commit that changes these makes a result old, unless it changes pages only.
SUBJECT = ("plugins", "roles", "playbooks", ":!*.md")
# The stages that show what a column of the README's table says.
COLUMNS = {
    "Python code and playbooks": ("unit", "integration"),
    "Simulated vCenter and ESXi": ("integration",),
    "Real Linux guests": ("nodes-guests", "nodes-machines", "nodes-moves", "nodes-slurm", "nodes-training"),
    "Real Kubernetes": ("kubernetes",),
}


@dataclass(frozen=True)
class Count:
    """The number of tests of a stage."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class Outcome:
    """The result of a stage."""

    name: str
    budget: int
    seconds: float
    processor: float  # seconds of processor time of its processes, but for those that it left to themselves
    good: bool
    tests: Count

    @property
    def line(self) -> str:
        """Return a row of the final table."""
        late = "  over budget" if self.seconds > self.budget else ""
        word = "passed" if self.good else "FAILED"
        return (
            f"{self.name:<14} {word:<7} {self.seconds:>7.0f} s  of {self.budget:>4} s  {self.processor:>7.0f} s{late}"
        )


def counted(report: Path) -> Count:
    """Return the number of tests in a JUnit report, or zero if the stage writes no report."""
    if not report.exists():
        return Count()
    suites = list(ET.parse(report).getroot().iter("testsuite"))
    total, failures, errors, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    return Count(max(0, total - failed - skipped), failed, skipped)


def carry_out(name: str, budget: int) -> Outcome:
    """Run a make target, regardless of the results of other targets."""
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    print(f"\n===== {name}", flush=True)
    start, used = time.monotonic(), processor_seconds()
    good = subprocess.run(["make", "--keep-going", name], stdin=subprocess.DEVNULL, check=False).returncode == 0
    tests = counted(report)
    if not report.exists() or (not good and not tests.failed):
        # A stage without a report counts as one test, and so does a failure that the report does not show.
        tests = Count(tests.passed + good, tests.failed + (not good), tests.skipped)
    return Outcome(name, budget, time.monotonic() - start, processor_seconds() - used, good, tests)


def processor_seconds() -> float:
    """Return the processor time of all ended children and their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows_of(page: str) -> dict[str, list[str]]:
    """Return the cells of the table of stages by stage."""
    place = TABLE.search(page)
    if place is None:
        raise ValueError("the page has no table of stages")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in place[2].splitlines()]
    return {row[0].strip("`"): row for row in rows}


def recorded(page: str, outcomes: list[Outcome], commit: str, day: str, since: Callable[[str], int]) -> str:
    """Return a page whose table of stages has the results of a run; other stages keep theirs."""
    rows = {name: [*row[:7], str(since(row[1]))] for name, row in rows_of(page).items()}
    for one in outcomes:
        tests = f"{one.tests.passed} passed" + (f", **{one.tests.failed} failed**" if one.tests.failed else "")
        result = "passed" if one.good else "**failed**"
        times = [f"{seconds:.0f}" for seconds in (one.seconds, one.processor)]
        rows[one.name] = [f"`{one.name}`", commit, day, result, tests, *times, "0"]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows.values())
    return TABLE.sub(lambda place: place[1] + table, page)


def dated(readme: str, page: str, today: datetime.date) -> str:
    """Return the README whose table names in its head the columns whose stages failed, or did not run in ten days."""
    rows = rows_of(page)
    for column, stages in COLUMNS.items():
        found = [rows[stage] for stage in stages if stage in rows]
        failed = [row[2] for row in found if row[3] != "passed"]
        day = min((row[2] for row in found), default="")
        note = ""
        if len(found) < len(stages):
            note = " (no run recorded)"
        elif failed:
            note = f" (failed on {max(failed)})"
        elif today - datetime.date.fromisoformat(day) > datetime.timedelta(days=10):
            note = f" (not since {day})"
        readme = re.sub(rf"\| {column}(?: \([^)]*\))? \|", f"| {column}{note} |", readme)
    return readme


def commits_since(commit: str) -> int:
    """Return the number of commits after this one that changed what users run."""
    return int(_git("rev-list", "--count", f"{commit}..HEAD", "--", *SUBJECT))


def record(outcomes: list[Outcome]) -> None:
    """Write the results to the tables, unless other files differ from the commit that was tested."""
    if changed := _git("status", "--porcelain", "--", ".", *(f":!{path}" for path in (PAGE, README))):
        raise SystemExit(f"the results are not recorded, because files differ from the commit:\n{changed}")
    today = datetime.datetime.now(datetime.UTC).date()
    commit = _git("rev-parse", "--short=8", "HEAD")
    PAGE.write_text(recorded(PAGE.read_text(), outcomes, commit, today.isoformat(), commits_since))
    README.write_text(dated(README.read_text(), PAGE.read_text(), today))


def _git(*arguments: str) -> str:
    git = ["git", "--no-optional-locks", *arguments]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def main(arguments: list[str]) -> int:
    expected = [(name, int(budget)) for name, _equals, budget in (text.partition("=") for text in arguments)]
    outcomes = [carry_out(name, budget) for name, budget in expected]
    print("\n===== seconds per stage, of its budget for a warm machine with two cores, and of processor time")
    for outcome in outcomes:
        print(outcome.line)
    seconds, processor = (sum(getattr(outcome, key) for outcome in outcomes) for key in ("seconds", "processor"))
    print(f"{'all':<14} {'':<7} {seconds:>7.0f} s{'':<11} {processor:>7.0f} s")
    passed, failed, skipped = (sum(getattr(o.tests, key) for o in outcomes) for key in ("passed", "failed", "skipped"))
    print(f"\n{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    if os.environ.get("RECORD"):
        record(outcomes)
    return 0 if all(outcome.good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
