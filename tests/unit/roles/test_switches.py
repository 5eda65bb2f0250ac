# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A switch given as ``-e switch=false`` is the text "false", which Jinja takes for true: each use says ``| bool``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT

DECISIONS = {"when", "that", "until", "failed_when", "changed_when"}
ROLES = sorted(path.parent.parent for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"))


def switches(role: Path) -> set[str]:
    """The options of a role that are true or false."""
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"].values()
    return {name for spec in specs for name, one in (spec.get("options") or {}).items() if one.get("type") == "bool"}


def expressions(thing: Any, decides: bool = False) -> Iterator[str]:
    """All of Jinja in a file: conditions, and what stands in braces beside something else."""
    if isinstance(thing, dict):
        for key, value in thing.items():
            yield from expressions(value, key in DECISIONS)
    elif isinstance(thing, list):
        for value in thing:
            yield from expressions(value, decides)
    elif isinstance(thing, str):
        found = [thing] if decides else re.findall(r"{[{%](.*?)[%}]}", thing, re.DOTALL)
        yield from (one for one in found if decides or not re.fullmatch(r"\s*\w+\s*", one))


def bare(role: Path) -> list[str]:
    """The uses of switches that do not say that they are switches."""
    names = switches(role)
    use = re.compile(rf"\b({'|'.join(names)})\b(?!\s*\|\s*bool\b)") if names else re.compile(r"(?!)")
    files = [*role.glob("tasks/**/*.yml"), *role.glob("handlers/*.yml"), *role.glob("vars/*.yml")]
    return [
        f"{path.relative_to(ROOT)}: {' '.join(one.split())}"
        for path in sorted(files)
        for one in expressions(yaml.safe_load(path.read_text()))
        if use.search(re.sub(r"'[^']*'", "''", one))
    ]


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_switches_that_are_texts_are_switches(role: Path) -> None:
    assert bare(role) == []
