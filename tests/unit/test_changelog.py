"""The changelog names each module, role and playbook: a new one needs a fragment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.fragments import unexplained

ROOT = Path(__file__).parents[2]
TEXT = "\n".join(path.read_text() for path in sorted((ROOT / "changelogs").rglob("*.yml")))
TEXT += (ROOT / "changelogs" / "changelog.yaml").read_text()


@pytest.mark.parametrize("pattern", ["plugins/modules/*.py", "roles/*", "playbooks/*.yml"])
def test_the_changelog_names_each_part_of_the_collection(pattern: str) -> None:
    names = sorted(path.stem for path in ROOT.glob(pattern))
    assert names
    missing = [name for name in names if not re.search(rf"\b{name}\b", TEXT)]
    assert [f"changelogs/fragments: add a fragment that names {name}" for name in missing] == []


def test_the_changelog_has_no_markup_of_modules() -> None:
    assert re.findall(r"\b[CIOV]\([^()]*\)", TEXT) == [], "write ``name``: the changelog is reStructuredText"


@pytest.mark.parametrize(
    "noticed", ["roles/node/meta/argument_specs.yml", "plugins/modules/vmotion.py", "playbooks/a.yml"]
)
def test_a_change_that_users_notice_needs_a_fragment(noticed: str) -> None:
    changed = [noticed, "plugins/module_utils/plan.py", "roles/node/tasks/main.yml"]

    assert unexplained(changed) == [noticed]
    assert unexplained([*changed, "changelogs/fragments/one.yml"]) == unexplained(changed[1:]) == []
