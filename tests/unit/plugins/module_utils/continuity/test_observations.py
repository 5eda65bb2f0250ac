"""The observations in addition to the records: the breaches that they show, and the missing observations."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.continuity.observations import evidence_of, fact_breaches, missing_facts

from .runs import LAUNCHER, SEEN, facts, move

MOVES = [move(30, 40), move(60, 70, rank=2)]


def breaches(**given: Any) -> list[tuple[str, float | None, str]]:
    found = list(fact_breaches(given, MOVES))
    assert {(one.rank, one.step) for one in found} <= {(None, None)}
    return [(one.kind, one.at, one.detail) for one in found]


def missing(moves: list[dict[str, Any]] | None = None, **given: Any) -> list[str]:
    requested = MOVES if moves is None else moves
    return list(missing_facts({**facts(requested), **given}, requested, ("vsphere", "launcher", "transport")))


@pytest.mark.parametrize(
    ("given", "evidence"),
    [
        (None, [None, None]),
        ("rdma", [None, None]),
        ([], [None, None]),
        ([{"a": 1}], [{"a": 1}, None]),
        (({"a": 1}, "b"), [{"a": 1}, None]),
        ([{"a": 1}, {}, {"c": 3}], [{"a": 1}, {}]),
    ],
)
def test_each_move_has_one_observation(given: Any, evidence: list[Any]) -> None:
    assert evidence_of({"transport": given}, "transport", MOVES) == evidence


def test_facts_of_successful_moves_raise_no_objection() -> None:
    assert breaches(**facts(MOVES), pods=[], checksums={"w1": "6b86", "w2": "6b86"}) == []
    assert missing() == []
    assert breaches(pods="odd", checksums="odd", launcher="odd", transport="odd") == []


def test_a_replaced_launcher_breaks_if_both_were_observed() -> None:
    before = {**LAUNCHER, "user": "a", "shell": None, "tty": "x"}
    result = breaches(
        launcher={"before": before, "after": {**LAUNCHER, "pid": 41, "user": "b", "shell": "c", "tty": None}}
    )
    assert result == [("identity", None, "launcher: pid 40 became 41"), ("identity", None, "launcher: user a became b")]


def test_recreated_pods_and_differing_parameters_break() -> None:
    assert breaches(pods=["pod w1 was recreated"]) == [("identity", None, "pod w1 was recreated")]
    sums = {"w2:summary1.json": "4e07408562bedb8b", "w1:summary0.json": "6b86b273ff34fce1"}
    assert breaches(checksums=sums) == [
        (
            "parameters",
            None,
            "the ranks ended with different parameters: w1:summary0.json 6b86b273ff34, w2:summary1.json 4e07408562be",
        )
    ]
    assert breaches(checksums={"w1": "6b86"}) == []
    assert breaches(checksums={"w1": "6b86", "w2": None}) == []


WORKERS = [f"w{number}" for number in range(9)]
FIRST, SECOND = "move 1 (w1): the transport", "move 2 (w2): the transport"


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        ([("rdma", "tcp")], [(40, f"{FIRST} was rdma before and is tcp after")]),
        ([("rdma", "tcp"), ("tcp", "tcp")], [(40, f"{FIRST} was rdma before and is tcp after")]),
        ([("rdma", "rdma"), ("rdma", "tcp")], [(70, f"{SECOND} was rdma before and is tcp after")]),
        (
            [({7: "rdma", "w2": "tcp"}, {7: "tcp", "w2": "tcp"})],
            [(40, f"{FIRST} of 7 was rdma before and is tcp after")],
        ),
        ([("rdma", "rdma"), ("tcp", "tcp")], [(60, f"{SECOND} was rdma after move 1 (w1) and is tcp now")]),
        ([("rdma", None), (None, "tcp")], [(60, f"{SECOND} was rdma after move 1 (w1) and is tcp now")]),
        ([("rdma", "unproven"), ("", "tcp")], [(60, f"{SECOND} was rdma after move 1 (w1) and is tcp now")]),
        ([(None, "rdma"), (7, "rdma")], []),
        ([(None, None), ("tcp", "tcp")], []),
        ([("rdma", "rdma"), (None, None)], []),
        (
            [({"w1": "rdma", "w2": "tcp"}, {"w1": "rdma", "w2": "tcp"}), ({"w2": "rdma"}, {"w2": "rdma"})],
            [(60, f"{SECOND} of w2 was tcp after move 1 (w1) and is rdma now")],
        ),
        (
            [("rdma", "rdma"), ({"w2": "tcp"}, {"w2": "tcp"})],
            [(60, f"{SECOND} of w2 was rdma after move 1 (w1) and is tcp now")],
        ),
        (
            [({"w1": "rdma"}, {"w1": "rdma"}), ("tcp", "tcp")],
            [(60, f"{SECOND} was rdma after move 1 (w1) and is tcp now")],
        ),
        ([({"w1": "rdma"}, {"w1": "rdma"}), ({"w2": "tcp"}, {"w2": "tcp"})], []),
        (
            [(dict.fromkeys(WORKERS, "rdma"), dict.fromkeys(reversed(WORKERS), "tcp"))],
            [(40, f"{FIRST} of {who} was rdma before and is tcp after") for who in WORKERS],
        ),
    ],
)
def test_a_transport_that_became_another_breaks(observed: list[Any], expected: list[tuple[float, str]]) -> None:
    given = [{"before": before, "after": after} for before, after in observed]
    assert breaches(transport=given) == [("transport", SEEN + at, sentence) for at, sentence in expected]


def test_names_each_missing_observation() -> None:
    requested = ("vsphere", "pods", "transport", "launcher", "checksums", "power", "ranks", "died", "observed_until")
    assert list(missing_facts({}, MOVES, requested)) == sorted(requested)
    assert list(missing_facts({"pods": []}, MOVES, ("pods",))) == []


@pytest.mark.parametrize("key", ["host", "pid", "start", "boot_id"])
def test_a_launcher_must_be_observed_before_and_after(key: str) -> None:
    reported = [f"launcher: not observed both before and after: {key}"]
    assert missing(launcher={"before": {**LAUNCHER, key: None}, "after": LAUNCHER}) == reported
    assert missing(launcher={"before": LAUNCHER, "after": {**LAUNCHER, key: None}}) == reported


@pytest.mark.parametrize("launcher", ["odd", {"before": LAUNCHER}, {"before": "odd", "after": LAUNCHER}])
def test_an_incomplete_launcher_is_ignored(launcher: Any) -> None:
    assert missing(launcher=launcher) == ["launcher: not observed both before and after: host, pid, start, boot_id"]


def test_an_unverified_transport_is_missing() -> None:
    good = {"before": "rdma", "after": "rdma"}
    assert missing(transport=[good]) == ["transport: move 2 (w2): the transport before and after was not verified"]
    assert missing(transport=[{"before": "rdma", "after": ""}, good]) == [
        "transport: move 1 (w1): the transport after was not verified"
    ]
    by_worker = {"before": {"w2": "rdma", "w1": "rdma"}, "after": {"w1": "unproven", "w3": "rdma"}}
    assert missing(transport=[by_worker, good]) == [
        "transport: move 1 (w1): the transport of w1 after was not verified",
        "transport: move 1 (w1): the transport of w2 after was not verified",
        "transport: move 1 (w1): the transport of w3 before was not verified",
    ]


def test_missing_vsphere_data_about_a_move_is_reported() -> None:
    of = "vsphere: move 2 (w2):"
    (good, _same) = facts(MOVES)["vsphere"]
    assert missing(vsphere=[good]) == [
        f"{of} power cycles not observed",
        f"{of} hot migration event not observed",
        f"{of} host not observed before and after",
        f"{of} GPUs not observed before and after",
    ]
    assert missing(vsphere=[good, {**good, "power_cycled": None}]) == [f"{of} power cycles not observed"]
    assert missing(vsphere=[good, {**good, "hot_migration": None}]) == [f"{of} hot migration event not observed"]
    for host in (None, {"before": "esx1"}, {"after": "esx1"}):
        assert missing(vsphere=[good, {**good, "host": host}]) == [f"{of} host not observed before and after"]
    gpus: dict[str, Any]
    for gpus in ({"before": []}, {"after": []}, {"before": "odd", "after": []}):
        assert missing(vsphere=[good, {**good, "gpus": gpus}]) == [f"{of} GPUs not observed before and after"]
    assert missing(vsphere=[good, {**good, "gpus": {"before": ["a", "b"], "after": ("c",)}}]) == [
        f"{of} 2 GPUs observed before and 1 after"
    ]


def test_a_failed_move_needs_only_its_power_cycles() -> None:
    (good, _same) = facts(MOVES)["vsphere"]
    failed = [MOVES[0], {**MOVES[1], "ok": False}]
    assert missing(failed, vsphere=[good, {"power_cycled": False}]) == []
    assert missing(failed, vsphere=[good, {}]) == ["vsphere: move 2 (w2): power cycles not observed"]


def test_a_refused_move_needs_only_known_power_events() -> None:
    (good, _same) = facts(MOVES)["vsphere"]
    reported = ["vsphere: move 2 (w2): power cycles not observed"]
    refused = {**MOVES[1], "ok": False, "started": None}
    assert missing([MOVES[0], refused], vsphere=[good], power=[]) == []
    assert missing([MOVES[0], refused], vsphere=[good]) == reported
    assert missing([MOVES[0], {**refused, "started": 1.0}], vsphere=[good], power=[]) == reported
    assert len(missing([MOVES[0], {**refused, "ok": True}], vsphere=[good], power=[])) == 4
    assert missing([MOVES[0], refused], transport=facts(MOVES)["transport"][:1], vsphere=[good, good]) == []
    unproven = {"transport": facts(MOVES)["transport"][:1], "power": []}
    assert missing([MOVES[0], refused], **unproven) == []
    assert missing([MOVES[0], {**refused, "started": 1.0}], **unproven) == [
        "transport: move 2 (w2): the transport before and after was not verified"
    ]


def test_a_move_of_another_user_needs_no_observations() -> None:
    others = [MOVES[0], {**MOVES[1], "external": True}]
    assert missing(others, vsphere=facts(MOVES)["vsphere"][:1], transport=facts(MOVES)["transport"][:1]) == []
