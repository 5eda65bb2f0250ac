"""The attempts of a run from its manifests: how they are linked, and which checkpoint each one was given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as given_data
from hypothesis import settings

from plugins.module_utils.continuity.limits import MOST_RANKS
from plugins.module_utils.continuity.restart_steps import Saved
from plugins.module_utils.training.results import attempts
from plugins.module_utils.training.results.checkpoint import FORMATS, has_optimizer, step_of
from tests.fakes import foreign


def manifest(name: str, resumed: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "nodes": ["n1", "n2"], "ranks_per_node": 2, "resumed_from": resumed, **more}


def outputs(**sums: str) -> dict[str, Any]:
    return {"end": {"outputs": [{"path": path.replace("__", "/"), "sha256": sha256} for path, sha256 in sums.items()]}}


def given(restart: dict[str, Any], before: dict[str, Any], *saved: Saved) -> Any:
    return attempts.given_checkpoint(manifest("two", "one", restart=restart), manifest("one", **before), saved)


def test_manifests_link_attempts_and_branches_end_apart() -> None:
    runs = {each["name"]: each for each in (manifest("a"), manifest("b", "a"), manifest("c", "b"), manifest("d", "a"))}

    assert attempts.last_attempts(runs) == ["c", "d"]
    assert (attempts.chain_of("c", runs), attempts.chain_of("d", runs)) == (["a", "b", "c"], ["a", "d"])
    circle = {"a": manifest("a", "b"), "b": manifest("b", "a")}
    assert attempts.chain_of("a", circle) == ["b", "a"]


def test_links_automatic_attempts_without_folders_by_number() -> None:
    made = [{"first_attempt": "a", "attempt": number} for number in (1, 2, 3)]
    runs = {name: manifest(name, **each) for name, each in zip(("a", "a-2", "a-3"), made)}

    assert attempts.last_attempts(runs) == ["a-3"] and attempts.chain_of("a-3", runs) == ["a", "a-2", "a-3"]


RESTART = {"path": "step2.pt", "step": 2, "files": [{"path": "step2.pt", "sha256": "a"}], "torn": [["step4.pt", "x"]]}
FACTS = {
    "restart": RESTART,
    "end": {"state": "died", "ended": 5.0, "outputs": [{"path": "step2.pt", "sha256": "b"}]},
    "asked": {"environment": {"A": "b"}},
    "code": {"sha256": "a"},
    "lock": ["a==1"],
    "ranks_per_node": 2,
    "command": ["python"],
    "attempt": 2,
    "first_attempt": "a",
    "started": 1.0,
}


@settings(max_examples=200, deadline=None)
@given_data(odd=foreign.mangled(FACTS))
def test_accepts_malformed_facts_of_an_attempt(odd: Any) -> None:
    """A node may have reported the manifest; only its needed keys were checked."""
    facts = odd if isinstance(odd, dict) else {}
    run = manifest("two", "one", **facts)

    assert attempts.attempt(run, run, {}).size <= MOST_RANKS and isinstance(attempts.previous(run), str)


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("code", {"code": {"sha256": "ab"}}),
        ("data", {"data_sha256": "cd"}),
        ("packages", {"lock": ["torch==2.8"]}),
        ("command", {"command": ["python", "train.py", "--lr", "1"]}),
        ("variables", {"asked": {"environment": {"TOKEN": "ef"}}}),
        ("ranks", {"nodes": ["n1"]}),
    ],
)
def test_each_part_of_the_program_is_compared(key: str, more: dict[str, Any]) -> None:
    one, two = attempts.program(manifest("one")), attempts.program({**manifest("two"), **more})

    assert {each for each in one if one[each] != two[each]} == {key}


@pytest.mark.parametrize(
    ("before", "fault"),
    [
        ({"step4.pt": "aa", "step2.pt": "bb"}, ""),
        ({"step4.pt": "cc"}, "step4.pt was changed after the end of one"),
        ({}, ""),
    ],
)
def test_a_changed_checkpoint_file_is_named(before: dict[str, str], fault: str) -> None:
    restart = {"path": "step4.pt", "step": 4, "files": [{"path": "step4.pt", "sha256": "aa"}], "torn": []}

    assert given(restart, outputs(**before)).fault == fault


def test_a_file_removed_from_a_folder_is_named() -> None:
    files = [{"path": "checkpoint-4/trainer_state.json", "sha256": "aa"}]
    kept = outputs(**{"checkpoint-4/trainer_state.json": "aa", "checkpoint-4/optimizer.pt": "bb"})

    found = given({"path": "checkpoint-4", "step": 4, "files": files, "optimizer": False}, kept)

    assert found.fault == "checkpoint-4/optimizer.pt was removed after the end of one" and found.has_optimizer is False


def test_names_later_complete_checkpoints_apart_from_torn_ones() -> None:
    kept = outputs(**{"step2.pt": "aa", "step4.pt": "bb", "step8.pt": "cc", "best8.pt": "dd"})
    restart = {"path": "step2.pt", "step": 2, "torn": [["step8.pt", "it is empty"]]}

    found = given(restart, kept)

    assert (found.newer, found.torn) == (("step4.pt",), ("step8.pt (it is empty)",))


@pytest.mark.parametrize(("more", "chosen"), [({}, {"ranks"}), ({"attempt": 2}, set())])
def test_only_a_user_resumes_with_other_ranks(more: dict[str, Any], chosen: set[str]) -> None:
    made = attempts.attempt(manifest("two", "one", **more), manifest("one"), {})

    assert made.chosen == chosen and not attempts.attempt(manifest("one"), None, {}).chosen


def test_marks_identify_the_step_of_a_lone_checkpoint() -> None:
    restart, marks = {"path": "last.pt", "modified": 1009.0}, [Saved(10, 1000.0, 1002.0), Saved(20, 1008.5, 1009.4)]

    assert given(restart, {}, *marks).step == 20
    assert given(restart, {}, *marks, Saved(21, 1010.0, 1010.2)).step is None, "copies have whole seconds"
    assert given({**restart, "step": 7}, {}, *marks).step == 7


def test_a_manifest_without_facts_has_no_checkpoint() -> None:
    assert attempts.given_checkpoint(manifest("two", "one"), manifest("one"), []) is None


@pytest.mark.parametrize(
    ("path", "step"),
    [
        *(("checkpoint-40", 40), ("out/checkpoint-40", 40), ("iter_0000040", 40), ("global_step40", 40)),
        *(("step40.pt", 40), ("epoch=1-step=40.ckpt", 40), ("model_step-000040.pt", 40)),
        *(("epoch4.pt", None), ("checkpoint-4.pt", None), ("last.ckpt", None), ("footstep", None)),
    ],
)
def test_reads_the_step_from_known_file_names(path: str, step: int | None) -> None:
    assert step_of(path) == step


def test_detects_optimizer_files_where_the_format_has_them() -> None:
    trainer, dcp = FORMATS[0], FORMATS[2]

    assert has_optimizer(trainer, ["checkpoint-4/model.safetensors", "checkpoint-4/optimizer.pt"]) is True
    assert has_optimizer(trainer, ["checkpoint-4/global_step4/zero_pp_rank_0_mp_rank_00_optim_states.pt"]) is True
    assert has_optimizer(trainer, ["checkpoint-4/model.safetensors"]) is False
    assert has_optimizer(dcp, ["a/.metadata"]) is None and has_optimizer(None, ["a.pt"]) is None
