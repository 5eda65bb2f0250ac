"""The documents name what there is, and nothing else."""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
from pathlib import Path

import pytest

from plugins.module_utils.hosts.module_privileges import TABLE as NEEDS
from tests.harms import RECORDS_ONLY, TABLE, Harm

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "roles").glob("*/README.md")])
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
HARM_DOCUMENT = (ROOT / "docs" / "harms.md").read_text()


def first_cells(heading: str) -> list[str]:
    """Return the names in the first column of a table of the reference, in alphabetical order."""
    table = REFERENCE.split(f"| {heading} |")[1].split("\n\n")[0]
    return sorted(re.findall(r"^\| \[?`(?:dml\.vsphere\.)?([\w/]+)`", table, re.MULTILINE))


def stems(pattern: str) -> set[str]:
    return {path.stem for path in ROOT.glob(pattern)}


@pytest.mark.parametrize(
    ("heading", "pattern"), [("Playbook", "playbooks/*.yml"), ("Role", "roles/*"), ("Module", "plugins/modules/*.py")]
)
def test_the_reference_is_complete(heading: str, pattern: str) -> None:
    there = stems(pattern)
    assert there
    rows = first_cells(heading)
    assert [f"docs/reference.md: add a row for {name}" for name in sorted(there - set(rows))] == []
    assert rows == sorted(there), "sort the table of docs/reference.md, without rows for anything else"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_has_a_target(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text())
    broken = [link for link in links if "://" not in link and not (document.parent / link.replace("\n", " ")).exists()]
    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_documented_make_target_exists(document: Path) -> None:
    named = set(re.findall(r"(?:`|^\s{2,})make ([a-z-]+)", document.read_text(), re.MULTILINE))
    assert named - make_targets() == set()


@functools.cache
def make_targets() -> set[str]:
    """Return the targets that make finds in the Makefile, those of patterns included."""
    command = ["make", "--print-data-base", "--question", "help"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    found = re.search(r"^\.PHONY: (.*)", printed, re.MULTILINE)
    assert found
    return set(found[1].split())


def test_window_page_and_module_list_all_stop_rules() -> None:
    code = (ROOT / "plugins/module_utils/maintenance/stop_rules.py").read_text()
    rules = {*re.findall(r'STOP, "(\w+)"', code), *re.findall(r'"(\w+)"$', code, re.MULTILINE)} - {"connected"}
    page = (ROOT / "docs/maintenance-window.md").read_text().partition("### Stop rules")[2].partition("\n## ")[0]
    module = (ROOT / "plugins/modules/cluster_info.py").read_text().partition("The rules:")[2].partition("returned:")[0]
    assert {"red_alarm", "taken_out", "out_of_service"} <= rules
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == rules
    assert set(re.findall(r"V\((\w+)\)", module)) == rules


def test_vmotion_test_readme_names_every_acceptable_rule() -> None:
    sources = (ROOT / "plugins/module_utils").rglob("*checks/*.py")
    text = "\n".join(path.read_text() for path in sources)

    rules = {*re.findall(r'STOP, "(\w+)"', text), "versions", "gpu_health"}

    assert len(rules) > 20
    assert rules <= set(re.findall(r"`(\w+)`", (ROOT / "roles/vmotion_test/README.md").read_text()))


def test_privileges_page_names_the_read_privileges() -> None:
    page = " ".join((ROOT / "docs" / "privileges.md").read_text().split())
    sentence = page.partition("Modules that only read, ")[2].partition("Read`. ")[0] + "Read`"
    modules, _also, needed = sentence.partition(", also need ")
    assert "`site`" in modules
    assert sorted(re.findall(r"`([\w.]+)`", needed)) == NEEDS.privileges_of(re.findall(r"`(\w+)`", modules))


def functions_in(path: Path) -> set[str]:
    """The names of the tests that a file of tests defines."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return {name for name in vars(module) if name.startswith("test_")}


def test_harm_table_agrees_with_the_tests() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|[^|]+\| (\w+) \| (\w+) \| `?(\w*)`? ?\| `([^`]+)` \|$", HARM_DOCUMENT, re.MULTILINE
    )
    assert [Harm(*row) for row in rows] == [*TABLE, *RECORDS_ONLY]
    for path, table in (
        ("tests/lab/moves/test_harms.py", TABLE),
        ("tests/unit/plugins/module_utils/continuity/test_harms.py", (*TABLE, *RECORDS_ONLY)),
    ):
        assert functions_in(ROOT / path) == {f"test_{harm.name}" for harm in table}, path
