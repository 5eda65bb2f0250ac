"""Rules of docs/continuity.md as properties, from an oracle that was written from the page and not from the code."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.continuity.verdict import verdict

from .runs import SEEN, changed, facts, move, records

RUN = records(steps=60)
MOVES = [move(20, 24)]
TIMES = st.floats(SEEN - 50, SEEN + 58, allow_nan=False)
spellings = st.sampled_from(("w2", "W2", "w2.example.org", "W2.Example.ORG"))


def judged(made: list[dict[str, Any]], ended: str = "running", **more: Any) -> dict[str, Any]:
    return verdict(made, MOVES, {"resume_deadline_s": 20}, ended=ended, facts={**facts(MOVES), **more})


@settings(max_examples=200, deadline=None)
@given(
    machine=spellings,
    guest=spellings,
    ranks=st.sampled_from((None, {}, {"w2": []}, {"w2": [2]}, {"w1": [1]})),
    of_move=st.booleans(),
    at=TIMES,
)
def test_a_power_cycled_worker_prevents_a_continuous_verdict(
    machine: str, guest: str, ranks: Any, of_move: bool, at: float
) -> None:
    """The records name a guest that vSphere may spell otherwise; neither facts nor moves without ranks prevail."""
    made = changed(RUN, lambda record: record["rank"] == 2, host=guest)
    event = {"worker": machine, "at": at, "by": "eve", "what": "VmResettingEvent"}
    more = (
        {} if ranks is None else {"ranks": {machine if name == "w2" else name: those for name, those in ranks.items()}}
    )
    moves = [*MOVES, {**move(30, 34, rank=2), "worker": machine, "ranks": []}] if of_move else MOVES
    found = verdict(
        made, moves, {"resume_deadline_s": 20}, ended="running", facts={**facts(moves), "power": [event], **more}
    )
    first = min(record["seen"] for record in made)
    assert (found["verdict"] == "continuous") is (at < first), found


@settings(max_examples=100, deadline=None)
@given(known=st.sampled_from((None, {}, {"w0": [0]}, {"w0": [0], "w1": [1], "w2": [2], "w3": [3]})), at=TIMES)
def test_a_power_cycle_without_known_ranks_is_inconclusive(known: Any, at: float) -> None:
    """Another guest's name does not fit the machine either, so that its rank may run there."""
    made = changed(RUN, lambda record: record["rank"] == 3, host="inside-a-container")
    event = {"worker": "spare", "at": at, "by": "eve", "what": "VmPoweredOffEvent"}
    found = judged(made, power=[event], **({} if known is None else {"ranks": known}))
    first = min(record["seen"] for record in made)
    if at < first:
        assert found["verdict"] == "continuous"
    elif known and len(known) == 4:
        assert found["verdict"] in ("continuous", "inconclusive")
    else:
        assert found["verdict"] == "inconclusive", found


@settings(max_examples=100, deadline=None)
@given(sums=st.dictionaries(st.sampled_from("0123"), st.sampled_from((None, "a", "b")), max_size=4))
def test_differing_checksums_break_only_if_two_were_observed(sums: dict[str, str | None]) -> None:
    found = judged(RUN, ended="finished", checksums=sums)
    observed = {value for value in sums.values() if value is not None}
    assert ("parameters" in {breach["kind"] for breach in found["breaches"]}) is (len(observed) > 1), found
