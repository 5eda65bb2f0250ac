"""The only job on nodes, and where it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.results import known_runs
from plugins.module_utils.training.running import busy
from plugins.module_utils.training.runs import run_source
from plugins.module_utils.training.runs.job_search import only_job, reported_manifest
from plugins.module_utils.training.runs.training_run import require_one_user

from ..results.test_manifest import a_manifest
from ..running.test_busy import job

ANY: dict[str, Any] = {"name": "", "backend": "mpi", "kubernetes": {}, "watched": [], "user": "", "started_by": ""}
NODES: dict[str, Any] = {
    "w1": {"jobs": [job("one", launched_here=True)], "reach": ["sh", "-c", "evil"]},
    "w2": {"jobs": [job("one", user="eve")], "reach": ["sh", "-c", "evil"]},
    "w3": {"unreachable": True},
}
INVENTORY: dict[str, Any] = {name: {"reach": ["ssh", name], "user": f"user of {name}"} for name in NODES}


def test_refuses_a_launcher_that_contradicts_the_manifest() -> None:
    assert only_job(ANY, NODES, INVENTORY, {"launcher": "w1"})["launcher"] == "w1"
    with pytest.raises(Refused, match="w1 reports that it launched it, and the manifest of this controller names w2"):
        only_job(ANY, NODES, INVENTORY, {"launcher": "w2"})


def test_refuses_several_runs_or_one_without_its_launcher() -> None:
    two = {"w1": {"jobs": [job("one"), job("two")]}}
    with pytest.raises(Refused, match="one of train, two of train run there; choose one by its name"):
        only_job(ANY, two, INVENTORY)
    lost = {"w2": {"jobs": [job("one")]}}
    with pytest.raises(Refused, match="no node has its run file"):
        only_job(ANY, lost, INVENTORY)


def test_different_manifests_of_a_run_are_refused() -> None:
    class Nodes:
        def on_each(self, _module: str, options: Mapping[str, Any]) -> dict[str, Any]:
            return {name: {"manifest": texts.get(name, "")} for name in options}

    texts = {"w1": "a", "w2": "a"}
    named = {"runs": "/runs", "name": "one", "started_by": ""}
    assert reported_manifest(Nodes(), named, INVENTORY) == "a"  # type: ignore[arg-type]
    texts = {"w1": "a", "w3": "b"}
    assert reported_manifest(Nodes(), named, INVENTORY, {"launcher": "w3"}) == "b"  # type: ignore[arg-type]
    with pytest.raises(Refused, match="w1 reports that of an unknown user, w3 reports that of an unknown user; choose"):
        reported_manifest(Nodes(), named, INVENTORY)  # type: ignore[arg-type]


def test_chooses_a_run_of_one_name_by_user() -> None:
    """The runs of two users are on different nodes, in folders of one name."""
    both = {
        "w1": {"jobs": [job("one", run_id="a", asked_by="anna@desk", launched_here=True)]},
        "w2": {"jobs": [job("one", run_id="a", asked_by="anna@desk")]},
        "w3": {"jobs": [job("one", run_id="b", asked_by="bert@lap", launched_here=True)]},
    }
    named = {**ANY, "name": "one"}

    found = {user: only_job({**named, "started_by": user}, both, INVENTORY) for user in ("anna", "bert@lap", "eve")}

    assert [(each["launcher"], each["runs"][0]["nodes"]) for each in (found["anna"], found["bert@lap"])] == [
        ("w1", ["w1", "w2"]),
        ("w3", ["w3"]),
    ]
    assert found["eve"]["runs"] == []
    assert only_job(named, both, INVENTORY, {"name": "one", "launcher": "w3"})["launcher"] == "w3"
    with pytest.raises(Refused, match="one of anna@desk, one of bert@lap run there; choose one by its name, or by its"):
        only_job(named, both, INVENTORY)
    (other,) = busy.others("/runs/one", "w1", both, INVENTORY)
    assert other["launcher"] == "w3", "a window around the run of anna sees that of bert"
    entries = known_runs.listed(busy.running(both), [a_manifest("one", asked_by="anna@desk")], [])
    assert [(each["by"], each["state"]) for each in entries] == [("anna@desk", "running"), ("bert@lap", "running")]


def test_finds_the_manifest_of_a_user() -> None:
    class Nodes:
        def on_each(self, _module: str, options: Mapping[str, Any]) -> dict[str, Any]:
            return {name: {"manifest": texts.get(name, "")} for name in options}

    texts = {"w1": json.dumps(a_manifest(asked_by="anna@desk")), "w3": json.dumps(a_manifest(asked_by="bert@lap"))}
    named = {"runs": "/runs", "name": "one", "started_by": "bert", "results": "/results"}

    assert reported_manifest(Nodes(), named, INVENTORY) == texts["w3"]  # type: ignore[arg-type]
    with pytest.raises(Refused, match="could not use it for the run of bert: it has the run of anna@desk"):
        run_source.require_owner(named, a_manifest(asked_by="anna@desk"))  # type: ignore[arg-type]


def test_nodes_with_different_users_are_refused() -> None:
    """The facts of a node name its user; that of one node must not run programs on the others."""
    require_one_user({"w1": {"user": "train"}, "w2": {"user": "train"}})
    with pytest.raises(Refused, match="w1 has root, w2 has the login user; prepare all nodes with the same node_user"):
        require_one_user({"w1": {"user": "root"}, "w2": {"user": ""}})
