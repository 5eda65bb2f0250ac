"""The schema of stacks, checked with the collection's checker and with jsonschema."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from plugins.module_utils.core.schema import faults

STACKS = Path(__file__).parents[5] / "stacks"
SCHEMA = json.loads((STACKS / "schema.json").read_text())
JUDGE = Draft202012Validator(SCHEMA)
LAB: dict[str, Any] = yaml.safe_load((STACKS / "lab-cpu.yml").read_text())
PLANTED: list[tuple[str, Any, str]] = [
    ("openmpi.verson", "4.1.4", "openmpi has the unknown key 'verson': did you mean 'version'?"),
    ("opempi", {}, "The stack has the unknown key 'opempi': did you mean 'openmpi'?"),
    ("openmpi.version", 4.1, "openmpi.version must be text in quotes, and is 4.1."),
    ("openmpi.version", "v4", "openmpi.version is 'v4', which is not a version in quotes."),
    ("openmpi.install", "rpm", "openmpi.install must be one of package, wheel, source, and is 'rpm'."),
    ("horovod.source.sha256", "abc", "horovod.source.sha256 is 'abc', which is not a SHA-256"),
    ("horovod.packages", {}, "horovod.packages must be a list, and is {}."),
    ("platforms", {}, "platforms must have 1 or more entries, and has 0."),
    ("bases.python", "mirror.example.org", "bases.python is 'mirror.example.org', which is not a URL."),
    ("gpu", {"models": ["T4"], "attachment": "usb"}, "gpu.attachment must be one of vgpu, passthrough, and is 'usb'."),
    ("cuda", {"version": "12.2"}, "cuda lacks 'packages'."),
    ("environment.NCCL_IB_DISABLE", 1, "environment.NCCL_IB_DISABLE must be text in quotes, and is 1."),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with another value at the dotted path."""
    result = copy.deepcopy(document)
    holder = result
    *above, last = path.split(".")
    for word in above:
        holder = holder[word]
    holder[last] = value
    return result


def paths(value: Any, where: str = "") -> list[str]:
    """Return the dotted paths of all keys."""
    if not isinstance(value, dict):
        return []
    below = [f"{where}.{key}" if where else key for key in value]
    return [*below, *(path for name, key in zip(below, value, strict=True) for path in paths(value[key], name))]


def test_is_a_valid_json_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_finds_no_fault_in_the_lab_stack() -> None:
    assert faults(LAB, SCHEMA) == []


@pytest.mark.parametrize(("path", "value", "sentence"), PLANTED)
def test_reports_each_fault_once(path: str, value: Any, sentence: str) -> None:
    found = faults(changed(LAB, path, value), SCHEMA)
    assert len(found) == 1
    assert found[0].startswith(sentence)


@pytest.mark.parametrize("document", [None, [], "lab-cpu", 3])
def test_a_stack_must_be_a_mapping(document: Any) -> None:
    assert faults(document, SCHEMA) == [f"The stack must be a mapping, and is {document!r}."]


def test_a_missing_part_is_named() -> None:
    assert faults({key: LAB[key] for key in LAB if key != "platforms"}, SCHEMA) == ["The stack lacks 'platforms'."]


@given(st.sampled_from(sorted(set(paths(LAB)))), JSON)
def test_agrees_with_jsonschema(path: str, value: Any) -> None:
    document = changed(LAB, path, value)
    assert (faults(document, SCHEMA) == []) == JUDGE.is_valid(document)
