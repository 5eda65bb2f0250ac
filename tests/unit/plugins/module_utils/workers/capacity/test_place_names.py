"""The names of folders and pools of virtual machines: one for each object, with as few parents as necessary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.errors import Failed
from plugins.module_utils.workers.capacity import place_names as room
from plugins.module_utils.workers.capacity.place_names import place_names

Tree = dict[str, tuple[str, Any]]


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> Tree:
    """Names and parents, by object ID."""
    content: Tree = {
        "dc": ("DC", None),
        "vm": ("vm", vim.Datacenter("dc")),
        "a": ("teamA", vim.Folder("vm")),
        "b": ("teamB", vim.Folder("vm")),
        "a-prod": ("prod", vim.Folder("a")),
        "b-prod": ("prod", vim.Folder("b")),
        "a-prod-x": ("x", vim.Folder("a-prod")),
        "b-prod-x": ("x", vim.Folder("b-prod")),
        "cluster": ("gpu", None),
        "root": ("Resources", vim.ClusterComputeResource("cluster")),
        "gold": ("gold", vim.ResourcePool("root")),
        "pool-prod": ("prod", vim.VirtualApp("gold")),
    }

    def read_many(_session: Any, refs: Sequence[Any], paths: Sequence[str]) -> dict[str, dict[str, Any]]:
        assert len({type(ref) for ref in refs}) == 1
        values = {ref._moId: dict(zip(("name", "parent"), content[ref._moId])) for ref in refs}
        return {key: {path: value[path] for path in paths if value[path] is not None} for key, value in values.items()}

    monkeypatch.setattr(room, "read_many", read_many)
    return content


def names_of(*places: tuple[str, str]) -> dict[str, str]:
    vms = [{"parent": vim.Folder(folder), "resourcePool": vim.ResourcePool(pool)} for folder, pool in places]
    return place_names(None, vms)  # type: ignore[arg-type] # its reads are faked


def test_different_names_stay_as_they_are(tree: Tree) -> None:
    assert names_of(("a-prod", "pool-prod"), ("b", "gold")) == {
        "a-prod": "prod",
        "b": "teamB",
        "pool-prod": "prod",
        "gold": "gold",
    }


def test_equal_names_begin_with_their_parents(tree: Tree) -> None:
    found = names_of(("a-prod", "gold"), ("b-prod", "gold"), ("a", "gold"), ("a-prod-x", "gold"), ("b-prod-x", "gold"))

    assert found == {
        "a-prod": "teamA/prod",
        "b-prod": "teamB/prod",
        "a": "teamA",
        "a-prod-x": "teamA/prod/x",
        "b-prod-x": "teamB/prod/x",
        "gold": "gold",
    }


def test_a_folder_at_the_top_keeps_its_path(tree: Tree) -> None:
    tree["b-prod"] = ("prod", vim.Folder("vm"))

    found = names_of(("a-prod", "gold"), ("b-prod", "gold"))

    assert (found["a-prod"], found["b-prod"]) == ("teamA/prod", "vm/prod")


def test_equal_names_without_readable_parents_get_ids(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    read_many = room.read_many

    def without_parents(session: Any, refs: Sequence[Any], paths: Sequence[str]) -> dict[str, Any]:
        if paths == ("parent",):
            raise Failed("vcenter.lab", "read 2 objects", "Permission to perform this operation was denied")
        return read_many(session, refs, paths)

    monkeypatch.setattr(room, "read_many", without_parents)

    found = names_of(("a-prod", "gold"), ("b-prod", "gold"))

    assert (found["a-prod"], found["b-prod"]) == ("prod (a-prod)", "prod (b-prod)")
