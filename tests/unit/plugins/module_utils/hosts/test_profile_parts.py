"""Every subject of a host is a part of profile, evidence, rollback, esxi_info, privileges and documentation."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.doc_fragments.subjects import ModuleDocFragment
from plugins.module_utils.hosts import host_info, profile
from plugins.module_utils.hosts.module_privileges import TABLE
from plugins.module_utils.hosts.part import Part, in_order
from plugins.module_utils.hosts.profile_parts import PARTS
from plugins.module_utils.hosts.rollback.ways import WAYS
from tests.unit.plugins.module_utils.hosts.test_host_info import NO_MANAGERS, gather, host
from tools import subjects

DOCUMENTED = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]["profile"]["suboptions"]
KEYS = [part.key for part in PARTS]
each_part = pytest.mark.parametrize("part", PARTS, ids=KEYS)


LACKING = subjects.lacking()


def test_every_subject_has_its_files_and_privileges() -> None:
    assert LACKING == []


@pytest.mark.skipif(bool(LACKING), reason="the texts can be written once no subject lacks a file")
def test_the_texts_derived_from_the_parts_are_written() -> None:
    assert [f"run: python tools/subjects.py ({file.name})" for file in subjects.WRITTEN if _is_old(file)] == []


def _is_old(file: Path) -> bool:
    return file.read_text() != subjects.WRITTEN[file]()


def test_profile_rollback_and_documentation_have_the_same_parts() -> None:
    assert len(set(KEYS)) == len(KEYS) == len({part.module for part in PARTS})
    assert KEYS == list(profile.OPTIONS) == list(WAYS) == list(DOCUMENTED)
    assert list(importlib.import_module("plugins.modules.esxi_profile").ARGUMENTS["profile"]["options"]) == KEYS


@each_part
def test_module_of_a_part_accepts_the_profile_options(part: Part) -> None:
    module = importlib.import_module(f"plugins.modules.{part.module}")
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]
    assert list(DOCUMENTED[part.key].get("suboptions", part.spec.get("options", ()))) == list(
        part.spec.get("options", ())
    )
    assert set(part.spec.get("options", documented)) == set(documented)
    assert set(profile.paths([{part.key: {"any": "thing"}}])) >= set(part.paths)


@each_part
def test_evidence_contains_keys_that_each_rollback_needs(part: Part) -> None:
    """esxi_info returns the evidence of a host, which lacks every key that no group of the part reads."""
    assert part.kept and part.restores
    (entry,) = gather(host(), names=[group.name for group in part.groups])
    assert set(part.kept) <= set(entry)
    assert {group.name for group in part.groups} <= set(host_info.GROUPS)
    (whole,) = gather(host(), names=NO_MANAGERS)
    assert set(part.kept) <= set(whole)


@each_part
def test_part_calls_equal_those_of_its_module(part: Part) -> None:
    assert part.calls and TABLE.calls_of(part.module) == part.calls
    assert set(part.calls) <= set(TABLE.calls_of("esxi_profile"))
    shown = {call for group in part.groups for call in group.calls}
    assert shown <= set(TABLE.calls_of("esxi_info"))
    assert [f"add {call} to CALLS of privilege_table.py" for call in sorted(shown) if not TABLE.is_known(call)] == []


def test_esxi_info_documents_every_group_as_a_choice() -> None:
    option = yaml.safe_load(ModuleDocFragment.GATHER)["options"]["gather"]
    assert option["choices"] == ["all", *host_info.GROUPS, "management"]
    assert all(any(text.startswith(f"V({name}) ") for text in option["description"]) for name in option["choices"][1:])


def test_applies_parts_by_dependency_then_by_key() -> None:
    assert KEYS.index("passthrough") < KEYS.index("vibs") < KEYS.index("graphics")
    assert KEYS.index("vibs") < KEYS.index("kernel_modules") < KEYS.index("roce") < KEYS.index("pvrdma")
    first, second, third = (_part(key, after) for key, after in (("a", ("c",)), ("b", ()), ("c", ())))
    assert [part.key for part in in_order([first, second, third])] == ["b", "c", "a"]
    with pytest.raises(ValueError, match="no order of parts satisfies 'after' of a"):
        in_order([first, second])


def _part(key: str, after: Any) -> Part:
    return replace(PARTS[0], key=key, after=after)
