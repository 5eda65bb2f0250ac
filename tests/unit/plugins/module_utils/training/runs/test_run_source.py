"""A run takes its options from the manifest of an earlier run, and a node's manifest is only compared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.training.results import manifest
from plugins.module_utils.training.runs import job_search, run_files, run_source, training_run
from tests.fakes.training_world import OPTIONS, TrainingWorld

MANIFEST: dict[str, Any] = {
    "name": "one",
    "run_dir": "/runs/one",
    "nodes": ["w2"],
    "launcher": "w2",
    "command": ["python", "other.py"],
    "folder": "/home/me/other",
    "transport": "rdma",
    "stack": "former",
    "nccl": "2.21.5",
    "backend": "mpi",
}


def test_a_repeated_program_runs_on_the_current_stack() -> None:
    o = run_source.with_program(OPTIONS, MANIFEST)
    assert (o["command"], o["stack"], o["nccl"]) == (["python", "other.py"], "lab", "")


def test_command_line_options_override_the_earlier_run() -> None:
    """A run is resumed on more nodes, or without one that has failed."""
    o = {**OPTIONS, "nodes": ["w1", "w3"], "launcher": "w1", "steps_by": "none"}
    source = {**MANIFEST, "steps_by": "script", "steps": 7}

    resumed = run_source.with_program(o, source, {"nodes", "steps_by", "results"})

    assert (resumed["nodes"], resumed["launcher"], resumed["steps_by"]) == (["w1", "w3"], "w1", "none")
    assert (resumed["command"], resumed["transport"], resumed["steps"]) == (["python", "other.py"], "rdma", 7)
    resumed = run_source.with_program(o, source, {"nodes", "launcher"})
    assert resumed["launcher"] == "w1"
    resumed = run_source.with_program(o, source)
    assert (resumed["nodes"], resumed["launcher"], resumed["steps_by"]) == (["w2"], "w2", "script")


def test_run_keeps_its_folder_on_the_nodes() -> None:
    source = {**MANIFEST, "run_dir": "/nfs/runs/one"}
    places = [
        run_source.with_followed(OPTIONS, source)["runs"],
        run_source.with_program(OPTIONS, source)["runs"],
        run_source.with_program(OPTIONS, source, {"runs"})["runs"],
        run_source.with_followed(OPTIONS, {**source, manifest.REPORTED: True})["runs"],
    ]

    assert places == ["/nfs/runs", "/nfs/runs", OPTIONS["runs"], OPTIONS["runs"]]


@pytest.mark.parametrize(
    ("options", "source", "words"),
    [
        ({"resume": "one"}, MANIFEST, "has no end in its manifest, so its outputs may be incomplete here"),
        (
            {"resume": "one"},
            {**MANIFEST, "end": {"state": "died"}},
            "were not copied here after its end, so its newest checkpoint may be missing",
        ),
        (
            {"repeat": "one"},
            {**MANIFEST, "asked": {"environment": {"PYTHONPATH": "25a6", "TOKEN": "9f3e"}}},
            "one had PYTHONPATH, TOKEN in training_environment, this command does not",
        ),
        ({"repeat": "one"}, {**MANIFEST, "reported": True}, "Another controller started the training run one"),
    ],
)
def test_an_unfit_source_is_refused(options: dict[str, Any], source: dict[str, Any], words: str) -> None:
    with pytest.raises(CollectionError, match=words):
        run_source.require_source({**OPTIONS, **options}, source, takes_program=True)


def test_runs_the_command_of_a_node_if_accepted() -> None:
    reported = {**MANIFEST, "reported": True}
    run_source.require_source({**OPTIONS, "accept": ["manifest"]}, reported, takes_program=True)
    run_source.require_source(OPTIONS, reported, takes_program=False)


def test_another_backend_is_refused() -> None:
    with pytest.raises(CollectionError, match="has the backend kubernetes, but the backend of this command is mpi"):
        run_source.with_followed(OPTIONS, {**MANIFEST, "backend": "kubernetes"})


def test_resume_and_repeat_exclude_each_other() -> None:
    with pytest.raises(CollectionError, match="set one of them"):
        run_source.source_name({**OPTIONS, "resume": "one", "repeat": "two"})


@pytest.mark.parametrize(
    ("own", "reported", "command", "shown"),
    [
        (MANIFEST, MANIFEST, ["python", "other.py"], ""),
        (
            MANIFEST,
            {**MANIFEST, "command": ["rm"]},
            ["python", "other.py"],
            "differs from /results/one/manifest.json in",
        ),
        (MANIFEST, None, ["python", "other.py"], ""),
        ({}, {**MANIFEST, "command": ["rm"]}, ["rm"], "This controller has no manifest of the training run one"),
    ],
    ids=["the same", "a lie", "gone", "of another controller"],
)
def test_the_manifest_of_a_node_is_compared(
    own: dict[str, Any], reported: dict[str, Any] | None, command: list[str], shown: str
) -> None:
    world = TrainingWorld()
    if reported is not None:
        world.node_files["w2", "/runs/one/manifest.json"] = json.dumps(reported)
    text = job_search.reported_manifest(world, OPTIONS, {"w1": {}, "w2": {}})
    known = job_search.known_manifest(world, OPTIONS, own, text)
    assert known["command"] == command and known.get("reported", False) is (own == {})
    assert any(shown in line for line in world.lines) if shown else world.lines == []


def test_an_unknown_name_starts_a_new_run() -> None:
    world = TrainingWorld()
    assert job_search.known_manifest(world, OPTIONS, {}, "") == {}


@pytest.mark.parametrize("name", ["a/b", "..", "."])
def test_refuses_a_name_outside_the_folder_of_runs(name: str) -> None:
    with pytest.raises(CollectionError, match="is not a file name"):
        training_run.name_of_run({**OPTIONS, "name": name}, "")


def test_refuses_nodes_outside_the_play_with_a_remedy() -> None:
    with pytest.raises(CollectionError, match=r"the hosts of this play are w1, w2; name at least one .*\"w1\""):
        training_run.require_nodes({"nodes": ["w9"]}, ["w1", "w2"])


@pytest.mark.parametrize(("known", "folder"), [({manifest.REPORTED: True}, ""), ({}, "/home/me/mine")])
def test_does_not_pack_the_folder_of_reported_runs(known: dict[str, Any], folder: str) -> None:
    world = TrainingWorld(folder="/home/me/mine")
    archive = {"code": {"sha256": world.folder_sha256}}

    run_files.bring_archive(world, world.run(known=known), archive)

    assert world.read_folders == [folder]
