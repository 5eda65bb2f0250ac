# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documents name what there is, and nothing else."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from plugins.module_utils.hosts.module_privileges import TABLE as NEEDS
from tests.harms import RECORDS_ONLY, TABLE, Harm
from tests.rules import coverage_map

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "roles").glob("*/README.md"),
    ]
)
README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
HARM_DOCUMENT = (ROOT / "docs" / "harms.md").read_text()


def first_cells(heading: str) -> list[str]:
    """Return the names in the first column of a table of the reference, in alphabetical order."""
    table = REFERENCE.split(f"| {heading} |")[1].split("\n\n")[0]
    return sorted(re.findall(r"^\| \[?`(?:dml\.vsphere\.)?([\w/]+)`", table, re.MULTILINE))


def stems(pattern: str) -> set[str]:
    return {path.stem for path in ROOT.glob(pattern)}


@pytest.mark.parametrize(
    ("heading", "pattern"),
    [
        ("Playbook", "playbooks/*.yml"),
        ("Role", "roles/*"),
        ("Module", "plugins/modules/*.py"),
    ],
)
def test_the_reference_is_complete(heading: str, pattern: str) -> None:
    there = stems(pattern)
    assert there
    rows = first_cells(heading)
    assert [f"docs/reference.md: add a row for {name}" for name in sorted(there - set(rows))] == []
    assert rows == sorted(there), "sort the table of docs/reference.md, without rows for anything else"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text())
    broken = [link for link in links if "://" not in link and not (document.parent / link.replace("\n", " ")).exists()]
    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_of_make_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert "demo" in targets
    named = set(re.findall(r"(?:`|^\s{2,})make ([a-z-]+)", document.read_text(), re.MULTILINE))
    assert named - targets == set()


def test_the_readme_names_the_version_of_galaxy_yml() -> None:
    version = re.search(r"^version: (\S+)$", (ROOT / "galaxy.yml").read_text(), re.MULTILINE)
    assert version
    assert f"dml-vsphere-{version[1]}.tar.gz" in README


def test_each_stop_rule_is_in_the_page_of_a_window_and_in_cluster_info() -> None:
    code = (ROOT / "plugins/module_utils/maintenance/stop_rules.py").read_text()
    rules = {*re.findall(r'STOP, "(\w+)"', code), *re.findall(r'"(\w+)"$', code, re.MULTILINE)} - {"connected"}
    page = (ROOT / "docs/maintenance-window.md").read_text().partition("### Stop rules")[2].partition("\n## ")[0]
    module = (ROOT / "plugins/modules/cluster_info.py").read_text().partition("The rules:")[2].partition("returned:")[0]
    assert {"red_alarm", "taken_out", "out_of_service"} <= rules
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == rules
    assert set(re.findall(r"V\((\w+)\)", module)) == rules


def test_each_page_about_undoing_limits_it_to_the_profile_of_a_run() -> None:
    pages = {name: (ROOT / name).read_text() for name in ("docs/cluster.md", "roles/teardown/README.md")}
    texts = {**pages, "roles/rollback/README.md": (ROOT / "roles/rollback/README.md").read_text()}
    lacking = [
        name for name, text in texts.items() if "the settings in the profile of its run" not in " ".join(text.split())
    ]
    assert lacking == []
    assert [name for name, text in pages.items() if "rollback/README.md#undo-all-changes)" not in text] == []


def test_the_page_of_privileges_names_those_of_reading() -> None:
    page = " ".join((ROOT / "docs" / "privileges.md").read_text().split())
    sentence = page.partition("Modules that only read, ")[2].partition("Read`. ")[0] + "Read`"
    modules, _also, needed = sentence.partition(", also need ")
    assert "`site`" in modules
    assert sorted(re.findall(r"`([\w.]+)`", needed)) == NEEDS.privileges_of(re.findall(r"`(\w+)`", modules))


def functions_in(path: Path) -> set[str]:
    """The names of the tests that a file of tests defines."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return {name for name in vars(module) if name.startswith("test_")}


def test_the_page_of_tests_names_tests_that_exist() -> None:
    assert coverage_map.NAME.search(coverage_map.DOCUMENT)
    assert coverage_map.missing(coverage_map.DOCUMENT) == []
    assert coverage_map.missing("`continuity/test_no_such_file.py` `unit/test_documents.py::test_no_such_test`") == [
        "continuity/test_no_such_file.py::: []",
        "unit/test_documents.py::test_no_such_test: ['tests/unit/test_documents.py']",
    ]


_PAGES = (
    "awx cluster continuity faults harms kubernetes lab-kubernetes labs privileges simulator "
    "stacks support threats trainjob unproven"
)
USER_PAGES = [
    *(ROOT / "docs" / f"{page}.md" for page in _PAGES.split()),
    *(ROOT / "README.md", *sorted((ROOT / "roles").glob("*/README.md"))),
]


@pytest.mark.parametrize("page", USER_PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_for_users_leave_the_names_of_tests_to_the_page_of_tests(page: Path) -> None:
    assert re.findall(r"\btests/\w\S*|\btest_\w+\.py|`test_\w+`", page.read_text()) == []


def test_the_index_of_the_documents_names_each_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert [page for page in sorted(pages) if f"]({page}" not in index] == []


def test_the_glossary_has_at_most_25_words_in_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    words = re.findall(r"^\| ([a-z ]+) \|", page.partition("## Rooms")[0], re.MULTILINE)

    assert len(words) <= 25 and words == sorted(words), words


def test_each_fault_has_a_test() -> None:
    listed = coverage_map.section("Faults")
    assert list(listed) == [row[0] for row in coverage_map.rows((ROOT / "docs" / "faults.md").read_text())]
    assert [fault for fault, tests in listed.items() if not coverage_map.NAME.search(tests)] == []


def test_the_table_of_harms_is_that_of_the_tests() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|[^|]+\| (\w+) \| (\w+) \| `?(\w*)`? ?\| `([^`]+)` \|$", HARM_DOCUMENT, re.MULTILINE
    )
    assert [Harm(*row) for row in rows] == [*TABLE, *RECORDS_ONLY]
    for path, table in (
        ("tests/lab/test_harms.py", TABLE),
        ("tests/unit/plugins/module_utils/continuity/test_harms.py", (*TABLE, *RECORDS_ONLY)),
    ):
        assert functions_in(ROOT / path) == {f"test_{harm.name}" for harm in table}, path


LAB = ("lab/README.md", "docs/lab-kubernetes.md")


@pytest.mark.parametrize("path", sorted(ROOT.glob("roles/*/README.md")) + sorted(ROOT.glob("docs/*.md")), ids=str)
def test_examples_have_addresses_for_documentation(path: Path) -> None:
    """10.0.1.0/24 is the network of the lab, and may be one of a reader."""
    if str(path.relative_to(ROOT)) not in LAB:
        assert "10.0.1." not in path.read_text(), "use 192.0.2.0/24"
