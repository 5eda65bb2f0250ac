"""A switch given as ``-e switch=false`` is the text "false", which Jinja takes for true: each use says ``| bool``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT
from tests.rules.yaml_rules import BARE, Files, expressions, tasks_of

ROLES = sorted(path.parent.parent for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"))
FILES = Files(ROOT)


def switches(role: Path) -> set[str]:
    """The options of a role that are true or false."""
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"].values()
    return {name for spec in specs for name, one in (spec.get("options") or {}).items() if one.get("type") == "bool"}


def decisions(document: Any) -> Iterator[str]:
    """All conditions, and what stands in braces beside something else: a switch alone is handed on as it is."""
    for task in tasks_of(document):
        for reported in (task, task.get("ansible.builtin.assert") or {}):
            yield from expressions({key: reported[key] for key in BARE & reported.keys()})
    yield from (one for one in expressions(document) if not re.fullmatch(r"\w+", one))


def bare(role: Path) -> list[str]:
    """The uses of switches that do not say that they are switches."""
    names = switches(role)
    use = re.compile(rf"\b({'|'.join(names)})\b(?!\s*\|\s*bool\b)") if names else re.compile(r"(?!)")
    files = [one for one in FILES.all if one.name.startswith(f"roles/{role.name}/")]
    return [
        f"{one.name}: {' '.join(reported.split())}"
        for one in files
        if one.path.parent.name not in {"defaults", "meta"}
        for reported in decisions(one.document)
        if use.search(re.sub(r"'[^']*'", "''", reported))
    ]


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_switches_that_are_texts_are_switches(role: Path) -> None:
    assert bare(role) == []
