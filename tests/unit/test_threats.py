# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""docs/testing.md names a test for each threat of docs/threats.md."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment

from tests import coverage_map

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threats.md").read_text()
ROWS = coverage_map.rows(PAGE)


def test_each_threat_has_a_test_that_exists() -> None:
    listed = coverage_map.section("Threats")
    assert list(listed) == [threat for threat, _mitigation in ROWS]
    for threat, tests in listed.items():
        assert coverage_map.NAME.search(tests), threat
        assert coverage_map.missing(tests) == []


def test_the_page_is_one_page() -> None:
    assert len(ROWS) >= 15
    assert len(PAGE.splitlines()) <= 85


def test_a_result_has_digests_of_the_environment() -> None:
    """By the role's template, which makes what every result keeps of a run."""
    role = yaml.safe_load((ROOT / "roles" / "training" / "vars" / "main.yml").read_text())
    jinja = Environment(autoescape=False)
    jinja.filters.update(zip=zip, hash=lambda text, kind: hashlib.new(kind, text.encode()).hexdigest())
    given: dict[str, Any] = {"training_environment": {"TOKEN": "hush-hush-token", "ONE": 1}}
    for name in ("__training_digests", "__training_hashed"):
        given[name] = jinja.compile_expression(inner(role[name]))(**given)
    assert jinja.compile_expression(inner(role["__training_hashed"]))(**given) == {
        name: hashlib.sha256(str(value).encode()).hexdigest() for name, value in given["training_environment"].items()
    }
    asked = str(role["__training_asked"])
    assert "__training_hashed" in asked and "training_environment" not in asked


def inner(template: str) -> str:
    """The expression of a template that is nothing else."""
    return template.strip().removeprefix("{{").removesuffix("}}")
