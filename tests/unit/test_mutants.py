# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Mutation tests: which changes there are, which tests are asked, and what fails the run."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import yaml

from tools import mutants
from tools.mutant_tests import Measured
from tools.mutations import Key, mutants_of

SOURCE = textwrap.dedent(
    '''
    """Not changed."""
    MOST = 3

    class Box:
        @property
        def is_full(self) -> bool:
            """Not changed either."""
            return self.size >= MOST and not self.open

    def first(items, default="none"):
        for item in items:
            if item is None:
                continue
            return f"found {item}"
        return default
    '''
)


def changes(source: str) -> list[tuple[str, str, str]]:
    return [(one.key.where, one.key.was, one.key.becomes) for one in mutants_of("box.py", source)]


def test_each_place_is_changed_and_docstrings_and_sentences_are_not() -> None:
    assert changes(SOURCE) == [
        ("module", "3", "4"),
        ("Box.is_full", "self.size >= MOST and (not self.open)", "self.size >= MOST or not self.open"),
        ("Box.is_full", "self.size >= MOST", "self.size > MOST"),
        ("Box.is_full", "not self.open", "self.open"),
        ("first", "'none'", "'XXnoneXX'"),
        ("first", "item is None", "not item is None"),
        ("first", "item is None", "item is not None"),
        ("first", "continue", "break"),
        ("first", "return f'found {item}'", "return None"),
        ("first", "return default", "return None"),
    ]


@pytest.mark.parametrize(
    ("source", "becomes"),
    [
        ("x = a < b <= c", ["a <= b <= c", "a < b < c"]),
        ("x += -1", ["x -= -1", "1", "2"]),
        ("x = min(a)", ["max(a)"]),
        ("x = sorted(a, key=b)", ["list(a)"]),
        ("x = [i for i in a if b if c]", ["[i for i in a if c]", "[i for i in a if b]"]),
        ("x = a if b else c", ["a if not b else c"]),
        ("raise E", ["pass"]),
        ("f(True)", ["pass", "False"]),
        ("while x:\n  break", ["not x", "continue"]),
        ("Found = Optional[Tuple[str]]", []),
        ("def f(a: 'int') -> 'str': ...", []),
    ],
)
def test_the_changes_of(source: str, becomes: list[str]) -> None:
    assert [change for _where, _was, change in changes(source)] == becomes


def test_a_mutant_runs_as_its_change_says() -> None:
    results = []
    for mutant in mutants_of("f.py", "def f(a):\n    if a < 3 and a != 1:\n        return 'yes'\n    return 'no'\n"):
        space: dict[str, object] = {}
        exec(mutant.code, space)  # what was made of the source above
        results.append([space["f"](value) for value in range(5)])  # type: ignore[operator]
    yes, no = "yes", "no"
    assert results == [
        [no, yes, no, yes, yes],  # not
        [yes, yes, yes, yes, yes],  # or
        [yes, no, yes, yes, no],  # <=
        [yes, no, yes, yes, no],  # 4
        [no, yes, no, no, no],  # ==
        [yes, yes, no, no, no],  # 2
        ["XXyesXX", no, "XXyesXX", no, no],
        [yes, "XXnoXX", yes, "XXnoXX", "XXnoXX"],
    ]


def test_only_tests_that_reach_the_function_are_asked_quick_ones_first() -> None:
    known = Measured({"a": 2.0, "b": 1.0, "c": 0.5}, {"a": {("f.py", 3)}, "b": {("f.py", 3), ("f.py", 9)}, "c": set()})
    assert known.reaching("f.py", 3) == ["b", "a"]
    assert known.reaching("f.py", 9) == ["b"]
    assert known.reaching("f.py", None) == ["c", "b", "a"]


def key(was: str, file: str = "f.py") -> Key:
    return Key(file, "f", was, was, "pass")


def test_what_nobody_noticed_and_what_is_listed_wrongly_are_faults() -> None:
    outcome = mutants.Outcome(mutants.Package("one", ["f.py"], []))
    for end, was in ((mutants.KILLED, "a"), (mutants.SURVIVED, "b"), (mutants.SURVIVED, "c"), (mutants.SURVIVED, "d")):
        outcome.add(end, key(was))
    excused = dict.fromkeys((key("d"), key("a"), key("z"), key("y", "other.py")), "equivalent")
    whole = mutants.faults_of(outcome, excused, is_whole=True)
    assert [fault.split(": ")[0] for fault in whole] == [
        "no test notices f.py",
        "no test notices f.py",
        "tests/mutants.yml lists what is noticed or gone",
        "tests/mutants.yml lists what is noticed or gone",
    ]
    assert len(mutants.faults_of(outcome, excused, is_whole=False)) == 2


def test_the_list_names_files_that_are_there_and_a_reason_for_each_survivor() -> None:
    listed = yaml.safe_load(mutants.LIST.read_text())
    for package in mutants.packages_of(listed):
        assert package.files and all(Path(test).is_file() for test in package.tests)
    assert all(len(why) > 10 for why in mutants.excused_by(listed).values())
