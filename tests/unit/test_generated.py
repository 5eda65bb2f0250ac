"""The files that git does not contain are written, and each table has one place in a page."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tools import docs_site, generated

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    generated.main(folder)
    return folder


def test_git_contains_no_generated_files_or_tables() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    places = [place for name in generated.pages() for place in generated.PLACE.finditer((ROOT / name).read_text())]

    assert set(generated.FILES) & set(tracked) == set()
    assert sorted(place[1] for place in places) == sorted(generated.TABLES)
    assert [place[0] for place in places if "\n|" in place[0]] == []


@pytest.mark.parametrize("name", generated.pages())
def test_page_contains_its_table(built: Path, name: str) -> None:
    text = (built / name).read_text()

    assert "<!-- table" not in text
    for place in generated.PLACE.finditer((ROOT / name).read_text()):
        assert len(re.findall(r"^\|", generated.TABLES[place[1]](), re.MULTILINE)) > 5
        assert generated.TABLES[place[1]]().strip() in text


def test_schema_is_readable(built: Path) -> None:
    assert json.loads((built / "docs/inventory.schema.json").read_text())["properties"]["worker_vms"]


def test_documentation_site_contains_generated_files_and_tables(tmp_path: Path) -> None:
    docs_site.write(tmp_path)

    assert {name: (tmp_path / name).read_text() for name in generated.FILES} == {
        name: text() for name, text in generated.FILES.items()
    }
    assert "| `Authorization.ModifyRoles` |" in (tmp_path / "docs/privileges.md").read_text()
