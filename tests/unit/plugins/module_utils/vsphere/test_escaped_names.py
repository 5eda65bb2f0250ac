"""Names are read as people write them, whichever form the server returns."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyVmomi import vim

from plugins.module_utils.vsphere import escaped_names, inventory, properties
from plugins.module_utils.vsphere.escaped_names import file_name

ROOT = Path(__file__).parents[5]
# A name of vCenter as a part of a path.
IN_A_PATH = re.compile(r"/\{\{ (?:\w*_cluster|inventory_hostname) (?!\| dml\.vsphere\.file_name)")


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("a/b", "a%2fb"),
        ("a\\b", "a%5cb"),
        ("50%", "50%25"),
        ("50%25", "50%25"),
        ("a%2Fb", "a%2fb"),
        ("", ""),
        ("%41", "%2541"),
    ],
)
def test_a_name_is_stored_escaped(written: str, stored: str) -> None:
    assert escaped_names.escaped(written) == stored
    assert escaped_names.plain(stored) == escaped_names.plain(written)


@given(st.text(alphabet="ab/\\%25cfF"))
def test_stored_values_keep_their_meaning(name: str) -> None:
    assert escaped_names.plain(escaped_names.escaped(name)) == escaped_names.plain(name)
    assert escaped_names.escaped(escaped_names.escaped(name)) == escaped_names.escaped(name)
    assert not set("/\\") & set(escaped_names.escaped(name))


def answering(stored: str) -> Any:
    """A session whose inventory has one object of each kind, named so."""
    entry = SimpleNamespace(
        obj=vim.ClusterComputeResource("domain-c1"),
        missingSet=[],
        propSet=[SimpleNamespace(name="name", val=stored), SimpleNamespace(name="summary.name", val=stored)],
    )
    page = SimpleNamespace(objects=[entry], token=None)
    view = vim.view.ContainerView("view-1", SimpleNamespace())
    content = SimpleNamespace(
        rootFolder=None,
        viewManager=SimpleNamespace(CreateContainerView=lambda *_args: view),
        propertyCollector=SimpleNamespace(RetrievePropertiesEx=lambda *_args: page),
    )
    return SimpleNamespace(server="vc", content=content, stub=SimpleNamespace(silent=True))


@pytest.mark.parametrize("requested", ["a/b", "a%2fb"])
@pytest.mark.parametrize("stored", ["a/b", "a%2fb", "a%2Fb"])
def test_a_cluster_is_found_in_either_form(requested: str, stored: str) -> None:
    _ref, values = inventory.find_cluster(answering(stored), requested)
    assert values == {"name": "a/b", "summary.name": stored}


def test_only_names_of_objects_are_unescaped() -> None:
    name: Any = SimpleNamespace(name="name", val="a%2fb")
    assert properties._value(vim.Datastore("datastore-1"), name) == "a/b"
    assert properties._value(vim.Network("network-1"), name) == "a/b"
    assert properties._value(vim.Task("task-1"), name) == "a%2fb"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("gpu", "gpu"),
        ("gpu/a", "gpu%2fa"),
        ("x/../../../walked", "x%2f..%2f..%2f..%2fwalked"),
        ("..", "%2e."),
        (".ssh", "%2essh"),
        ("a\0b", "a%00b"),
    ],
)
def test_names_cannot_lead_to_another_folder(name: str, part: str) -> None:
    assert file_name(name) == part
    assert os.path.basename(os.path.normpath(f"/records/{part}")) == part


def test_roles_use_vcenter_names_only_as_file_names() -> None:
    files = [*ROOT.glob("roles/*/*/*.yml"), *ROOT.glob("playbooks/**/*.yml")]

    assert len(files) > 50 and [path.name for path in files if IN_A_PATH.search(path.read_text())] == []
