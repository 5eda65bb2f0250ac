# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The prose of the checkout has no words that language.yml refuses, and each pattern finds its words only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules import language, prose

TEXTS = {
    "a.py": '''"""A told module."""

import os

DOCUMENTATION = r"""
begun: {type: bool}
description:
  - It was begun.
  - What C(begun) stands for. Of O(begun) it is V(told).
"""
def f(x: str) -> None:
    """A told
    function."""
    y = "told", "a # told"  # a told line
    # two
    # told lines
    raise ValueError(f"the host {x} told"
        " too much")
''',
    "n.py": """def test_a_host_is_told(told: str) -> None:
    had, asked_by = self.said = told, 1

class Told: x = 1
class Data(TypedDict):
    said: str
""",
    "b.yml": """# told
- name: A told task
  user: {name: told}
  assert:
    fail_msg: >-
      The host {{ told }}
      told us.
- options:
    mode:
      description:
        - one
        - It was `told` or told.
""",
    "c.go": "package c // told\n\n// F is\n// told.\nfunc F() { f(`http://told`) }\n",
    "d.md": "# Told\n\n```\ntold\n```\n\nIt `told`\nand told.\n",
    "e.sh": "#!/bin/sh\n# told\necho told # told 'x'\nexit 0 # told\n",
}
FOUND = {
    "a.py": [
        (1, "docstring"),
        (8, "docs"),
        (9, "docs"),
        (12, "docstring"),
        (14, "comment"),
        (16, "comment"),
        (17, "message"),
    ],
    "n.py": [(1, "name"), (2, "name"), (4, "name")],
    "b.yml": [(1, "comment"), (2, "task"), (7, "message"), (12, "docs")],
    "c.go": [(1, "comment"), (4, "comment")],
    "d.md": [(1, "markdown"), (8, "markdown")],
    "e.sh": [(2, "comment"), (4, "comment")],
}


@pytest.fixture(scope="module")
def checkout() -> list[language.Hit]:
    return language.of([])


@pytest.mark.parametrize("entry", language.PATTERNS, ids=lambda entry: entry["finds"])
def test_a_pattern_finds_its_words_and_accepts_a_near_miss(entry: dict[str, str]) -> None:
    assert language.expression(entry["find"]).search(entry["finds"])
    assert not language.expression(entry["find"]).search(entry["accepts"])


def test_no_pattern_refuses_what_another_one_advises() -> None:
    advised = [
        prose.Prose("a.md", 1, "markdown", entry[key]) for entry in language.PATTERNS for key in ("instead", "accepts")
    ]
    assert [str(hit) for hit in language.hits(advised)] == []


@pytest.mark.parametrize("name", TEXTS)
def test_prose_is_found_with_its_line_and_kind(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / name).write_text(TEXTS[name])
    found = sorted({(hit.line, hit.kind) for hit in language.of([tmp_path])})
    assert found == FOUND[name]


def test_the_program_lists_and_counts_hits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / "d.md").write_text("The hosts\nare told apart.\n\nIt falls back\nin silence.\n")
    assert language.main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == "d.md:5: in silence. -> silently\n"
    assert language.main([str(tmp_path), "--kind", "comment"]) == 0
    assert language.main([str(tmp_path / "d.md"), "--count"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "1"]


def test_no_prose_of_this_checkout_has_a_hit(checkout: list[language.Hit]) -> None:
    assert not checkout, "rewrite these words:\n" + "\n".join(map(str, checkout))
