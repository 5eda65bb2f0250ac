# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Changes the code that decides, one small change at a time, and sees that for each some test fails.

python -m tools.mutants [--again] [PACKAGE ...]

tests/mutants.yml names the packages, their tests, and each change that no test can notice with the reason. A change
that is neither noticed nor in that list fails the run, and so does an entry of that list that is no longer true.
``--again`` tries only those that nobody noticed in the run before.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tools import mutant_tests
from tools.mutations import Key, Mutant, mutants_of

LIST = Path("tests/mutants.yml")
KEPT = Path(".cache/mutants")
KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"


@dataclass(frozen=True)
class Package:
    """Files that are changed, and the tests that should notice."""

    name: str
    files: Sequence[str]
    tests: Sequence[str]

    @property
    def kept(self) -> Path:
        """Where the survivors of the last run are kept."""
        return KEPT / f"{self.name}.json"


@dataclass
class Outcome:
    """What became of the mutants of a package."""

    package: Package
    seconds: float = 0.0
    by_end: dict[str, list[Key]] = field(default_factory=dict)

    def add(self, end: str, key: Key) -> None:
        """Count one more."""
        self.by_end.setdefault(end, []).append(key)

    def count(self, end: str) -> int:
        """How many came to that end."""
        return len(self.by_end.get(end, []))

    @property
    def alive(self) -> list[Key]:
        """The changes that no test noticed."""
        return self.by_end.get(SURVIVED, [])


def packages_of(listed: Mapping[str, Any]) -> list[Package]:
    """The packages of the list, their patterns for files and tests resolved."""
    return [
        Package(name, list(_resolved(one["files"])), list(_resolved(one["tests"])))
        for name, one in listed["packages"].items()
    ]


def excused_by(listed: Mapping[str, Any]) -> dict[Key, str]:
    """The changes that no test can notice, and why."""
    return {
        Key(one["file"], one["where"], one["line"], one["was"], one["becomes"]): one["why"]
        for one in listed["survivors"] or []
    }


def _resolved(patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        found = sorted(str(path) for path in Path().glob(pattern))
        if not found:
            raise SystemExit(f"{LIST}: {pattern} is no file")
        yield from found


def try_all(package: Package, only: frozenset[Key] | None, jobs: int) -> Outcome:
    """Run the tests of a package against each of its mutants."""
    began, outcome = time.monotonic(), Outcome(package)
    mutants = [one for file in package.files for one in mutants_of(file, Path(file).read_text())]
    mutants = [one for one in mutants if only is None or one.key in only]
    known, codes = mutant_tests.quickly(package.files, package.tests, mutants, jobs)
    with ThreadPoolExecutor(jobs) as pool:
        for mutant, code in zip(mutants, pool.map(lambda one: _code_of(one, known, codes), enumerate(mutants))):
            outcome.add(TIMED_OUT if code == mutant_tests.TOO_LONG else KILLED if code else SURVIVED, mutant.key)
    outcome.seconds = time.monotonic() - began
    return outcome


def _code_of(numbered: tuple[int, Mutant], known: mutant_tests.Measured, codes: Mapping[int, int]) -> int:
    number, mutant = numbered
    code = codes.get(number, mutant_tests.UNFIT)
    return mutant_tests.run_changed(mutant, known) if code == mutant_tests.UNFIT else code


def faults_of(outcome: Outcome, excused: Mapping[Key, str], is_whole: bool) -> list[str]:
    """What is wrong with a package: changes that nobody noticed, and excuses that are no longer true."""
    alive, files = set(outcome.alive), set(outcome.package.files)
    faults = [f"no test notices {key}" for key in outcome.alive if key not in excused]
    if is_whole:
        faults += [
            f"{LIST} lists what is noticed or gone: {key}" for key in excused if key.file in files and key not in alive
        ]
    return faults


def _row(outcome: Outcome, faults: Sequence[str], excused: Mapping[Key, str]) -> str:
    total = sum(map(len, outcome.by_end.values()))
    listed = sum(key in excused for key in outcome.alive)
    killed = outcome.count(KILLED) + outcome.count(TIMED_OUT)
    return (
        f"{outcome.package.name:<16} {total:>5} mutants  {killed:>5} noticed ({outcome.count(TIMED_OUT)} by their time)"
        f"  {listed:>4} listed with a reason  {len(faults):>4} faults  {outcome.seconds:>6.0f} s"
    )


def _keep(outcome: Outcome, excused: Mapping[Key, str]) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    left = [key for key in outcome.alive if key not in excused]
    outcome.package.kept.write_text(json.dumps([key._asdict() for key in left], indent=1))


def _before(package: Package) -> frozenset[Key]:
    return (
        frozenset(Key(**one) for one in json.loads(package.kept.read_text())) if package.kept.exists() else frozenset()
    )


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("packages", nargs="*")
    options.add_argument("--again", action="store_true")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = options.parse_args(arguments)
    listed = yaml.safe_load(LIST.read_text())
    packages, excused = packages_of(listed), excused_by(listed)
    unknown = set(asked.packages) - {one.name for one in packages}
    if unknown:
        raise SystemExit(f"{LIST} has no package {', '.join(sorted(unknown))}")
    rows, faults = [], []
    for package in packages:
        if not asked.packages or package.name in asked.packages:
            print(f"== {package.name}", flush=True)
            outcome = try_all(package, _before(package) if asked.again else None, asked.jobs)
            wrong = faults_of(outcome, excused, is_whole=not asked.again)
            _keep(outcome, excused)
            rows.append(_row(outcome, wrong, excused))
            print("\n".join([*wrong, rows[-1]]), flush=True)
            faults += wrong
    print("\n".join(["", *rows]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
