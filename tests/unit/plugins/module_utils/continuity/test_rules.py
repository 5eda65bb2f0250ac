"""The rules of docs/continuity.md on both sides of each limit: the facts of a job, its verdict, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import pytest

from plugins.module_utils.continuity.verdict import verdict

from .runs import LAUNCHER, SEEN, START, Record, changed, facts, move, records

RUN, LONG = records(), records(200)
GOOD, SLEPT = {"before": "rdma", "after": "rdma"}, (35, 130.0)
IDENTITY = ("host", "pid", "start", "job", "boot_id", "generation", "size")


class Rule(NamedTuple):
    """A job, ``continuous``, ``inconclusive`` or the only kinds of its breaches, and words of the verdict."""

    expected: str
    words: str
    made: list[Record]
    moves: list[Record]
    more: dict[str, Any]


def rule(expected: str, made: list[Record] = RUN, moves: Any = None, words: str = "", **more: Any) -> Rule:
    """Return a rule; ``more`` are limits, facts, ``ended`` and ``require``."""
    return Rule(expected, words, made, [move(30, 40)] if moves is None else moves, more)


def judged(one: Rule) -> dict[str, Any]:
    more = dict(one.more)
    given = {name: more.pop(name) for name in ("ended", "require") if name in more}
    known = ("max_gap_s", "phases", "warmup_steps", "min_throughput_ratio", "resume_deadline_s", "max_gap")
    limits = {"resume_deadline_s": 20, **{name: more.pop(name) for name in known if name in more}}
    return verdict(one.made, one.moves, limits, **{"ended": "running", **given}, facts={**facts(one.moves), **more})


def only(which: Callable[[Record], bool], made: list[Record] = RUN) -> list[Record]:
    return [one for one in made if which(one)]


def short(rank: int, end: int, made: list[Record] = RUN) -> list[Record]:
    """Return the records without those of one rank from a step on."""
    return [one for one in made if one["rank"] != rank or one["step"] < end]


def since(step: int, ranks: Collection[int] = range(4), made: list[Record] = RUN, **values: Any) -> list[Record]:
    """Return the records with other values from a step on."""
    return changed(made, lambda one: one["step"] >= step and one["rank"] in ranks, **values)


def with_t(by: float, which: Callable[[Record], bool], made: list[Record] = RUN) -> list[Record]:
    return [{**one, "t": one["t"] + by} if which(one) else one for one in made]


def unseen(made: list[Record]) -> list[Record]:
    return [{key: value for key, value in one.items() if key != "seen"} for one in made]


def swapped(rank: int | None = 2) -> list[Record]:
    swap = {60: 61, 61: 60}
    return [{**one, "step": swap.get(one["step"], one["step"])} if one["rank"] == rank else one for one in RUN]


def quick(made: list[Record]) -> list[Record]:
    return [{**one, "seen": SEEN + (one["seen"] - SEEN) / 30} for one in made]


def stride(of: int, steps: int) -> list[Record]:
    return changed(only(lambda one: one["step"] % of == 0, records(steps)), lambda one: True, stride=of)


def marks(begin: float, end: float | None, step: int = 39) -> list[Record]:
    """Return marks of only rank 0 around a checkpoint, in seconds since the first record."""
    when = [("begin", begin), *([("end", end)] if end is not None else [])]
    mark = {"rank": 0, "step": step, "phase": "checkpoint"}
    return [{**mark, "mark": word, "t": START + at, "seen": SEEN + at} for word, at in when]


def power(worker: str, at: float = 50) -> dict[str, Any]:
    return {"power": [{"worker": worker, "at": SEEN + at, "by": "eve", "what": "VmPoweredOffEvent"}]}


def identity() -> Iterator[Rule]:
    for key in IDENTITY:
        for ranks in ([0, 1, 2, 3], [2]):
            yield rule("identity", since(50, ranks, **{key: 990_001}), words=f"{key} ")
    for key in ("job", "generation", "size"):
        yield rule("identity", since(0, [3], **{key: 9}), words="not one job")
    for size, step in ((4, 0), (None, 50)):
        grown = [one for one in records(ranks=5) if one["rank"] < 4 or one["step"] >= step]
        yield rule("identity", changed(grown, lambda one: True, size=size))
    yield rule("identity", since(50, pid=7, start=9, job="425263105"))
    for keys in (("pid",), ("pid", "start", "boot_id")):
        for side in ("before", "after"):
            whole = since(0, [1], **dict.fromkeys(keys))
            first, last = (RUN, whole) if side == "before" else (whole, RUN)
            half = [one for one in first if one["step"] < 50] + [one for one in last if one["step"] >= 50]
            yield rule("inconclusive", half, [move(49, 50)], f"rank 1 reported {', '.join(keys)} only {side} move 1")
    lacking = [{key: v for key, v in one.items() if key != "boot_id" or one["rank"] > 1} for one in RUN]
    yield rule("continuous", lacking, [], "identity: boot_id is not in the records of ranks 0, 1")
    moved = [move(40, 50, rank=3)]
    nothing = changed(records(ranks=3), lambda one: True, size=None)
    yield rule("inconclusive", nothing, moved, "records: none of rank 3")
    yield rule("inconclusive", only(lambda one: one["rank"] != 2), [], "records: none of rank 2")
    for size in (10**8, 10**15, "1e300"):
        yield rule("inconclusive", since(0, size=size), [], "records: none of ranks 4, 5, 6")


def steps() -> Iterator[Rule]:
    again = [{**one, "step": one["step"] - 10 if one["step"] >= 50 else one["step"]} for one in RUN]
    yield rule("step_repeated", again, words="steps 40 to 49")
    twice = next(one for one in RUN if one["step"] == 60 and one["rank"] == 2)
    yield rule("step_repeated", [*RUN, {**twice, "t": twice["t"] + 0.2, "seen": twice["seen"] + 0.2}])
    yield rule("continuous", [*RUN, *({**one, "seen": one["seen"] + 55} for one in RUN if one["step"] < 45)])
    yield rule("step_lost", only(lambda one: one["rank"] != 2 or one["step"] != 60), words="rank 2 lost step 60 ")
    strided, moves = stride(10, 400), [move(100, 120)]
    yield rule("continuous", strided, moves)
    yield rule("step_lost", only(lambda one: one["step"] != 200 or one["rank"], strided), moves)
    yield rule("step_back", swapped(), words="rank 2 made step 60 after step 61")
    yield rule("step_back", unseen(swapped()), [])


def silences() -> Iterator[Rule]:
    stops = short(2, 70)
    for ended in ("running", "finished"):
        yield rule("rank_stopped", stops, [], "rank 2 stopped at step 69", ended=ended, require=())
    for ended, ahead in (("running", 19), ("running", 20), ("finished", 3), ("finished", 4)):
        made = short(2, 100 - ahead)
        expected = "rank_stopped" if ahead in (20, 4) else "continuous"
        yield rule(expected, made, [], ended=ended, require=())
        # The missing records of a running job may still arrive.
        yield rule(expected if ended == "finished" else "continuous", quick(made), [], ended=ended, require=())
    for behind, expected in ((2, "continuous"), (4, "rank_stopped")):
        yield rule(expected, short(2, 50 * (20 - behind), stride(50, 1000)), [])
    under_way = short(1, 50)
    yield rule("inconclusive", under_way, [move(45, 60) | {"completed": None}], "has not ended")
    yield rule("rank_stopped", under_way, [move(45, 60, rank=0) | {"completed": None}])


def gaps() -> Iterator[Rule]:
    for listened, expected in ((119.0, "continuous"), (121.0, "gap rank_stopped")):
        yield rule(expected, RUN, [], observed_until=SEEN + 99 + listened)
    yield rule("continuous", RUN, [], observed_until=SEEN + 999, ended="finished")
    for listened, expected in ((19.0, "inconclusive"), (22.0, "rank_stopped")):
        yield rule(expected, only(lambda one: one["step"] <= 35), observed_until=SEEN + 40 + listened)
    yield rule("continuous", records(stall=(36, 23.0)))
    yield rule("resumed_late", records(stall=(36, 25.5)))
    for stall, limit, expected in ((49.0, 50.5, "continuous"), (49.6, 50.5, "gap"), (119.1, None, "gap")):
        yield rule(expected, records(stall=(35, stall)), [move(30, 40 + stall)], max_gap_s=limit)
    # The window is [200.5, 230]; the silence begins a second before the step and ends 130 s after it.
    for step, expected in ((70, "inconclusive"), (71, "gap"), (230, "gap"), (231, "inconclusive")):
        words = "unattributed: rank 0 " if expected == "inconclusive" else ""
        made = records(300, ranks=2, stall=(step, 130.0))
        yield rule(expected, made, [move(200.5, 210, rank=1)], words)
    yield rule("gap", records(stall=(50, 130.0)), [])
    yield rule("continuous", records(stall=(50, 110.0)), [])
    stalled = records(stall=(50, 40.0))
    yield rule("gap", stalled, [], max_gap_s={"train": 30, "eval": 600})
    yield rule("continuous", stalled, [], max_gap_s={"eval": 30})


def warm_up() -> Iterator[Rule]:
    early = records(stall=(3, 200.0))
    yield rule("gap", early, [])
    yield rule("continuous", early, [], warmup_steps=4)
    yield rule("continuous", early, [move(223.5, 240)], warmup_steps=4)
    yield rule("inconclusive", early, [move(223.5, 240)], warmup_steps=5)
    few = changed(only(lambda one: one["step"] % 10 == 0, records(300, stall=(3, 200.0))), lambda one: True, stride=10)
    yield rule("gap", few, [])
    yield rule("continuous", few, [], warmup_steps=4)
    yield rule("inconclusive", RUN, [], "steps: rank 0 made none after the warm-up of 100", warmup_steps=100)
    for count in (19, 20):
        made = [one for one in RUN if one["rank"] != 3 or one["step"] >= 30 - count]
        words = "steps: rank 3 made 19 before" if count == 19 else ""
        yield rule("inconclusive" if words else "continuous", made, [move(29.5, 40.5)], words)


def waits() -> Iterator[Rule]:
    for phase_moves in ([], [move(35, 55)], [move(35, 41)]):
        made = records(200, stall=(40, 60.0)) + marks(39.5, 99)
        yield rule("gap resumed_late" if phase_moves else "gap", made, phase_moves, max_gap_s=15)
        yield rule("continuous", made, phase_moves, max_gap_s=15, phases={"checkpoint": 70})
    part = records(200, stall=(40, 60.0)) + marks(39.5, 60)
    yield rule("gap", part, [], max_gap_s=15, phases={"checkpoint": 70})
    for until, expected in ((100, "continuous"), (160, "gap rank_stopped")):
        made = records(41) + marks(40.5, None, 40)
        yield rule(expected, made, [], max_gap_s=15, phases={"checkpoint": 80}, observed_until=SEEN + until)
    # The observer receives nothing from the moved worker for 150 s, while all others train.
    late = [
        {**one, "seen": max(one["seen"], SEEN + 181)} if one["rank"] == 1 and one["step"] > 31 else one
        for one in records(250)
    ]
    yield rule("continuous", late, [move(30, 170)], max_gap_s=60)
    yield rule("gap resumed_late", late, [move(30, 40)], max_gap_s=60)
    # The stun of the second move begins a moment before the first is reported as complete.
    made = records(ranks=2, stall=(40, 90.0))
    yield rule("gap", made, [move(30, 39.5), move(39.5, 130, rank=0)], max_gap_s=60)
    for ranks in ([0], [0, 1]):
        made = records(ranks=len(ranks), stall=(35, 60.0))
        yield rule("gap", made, [move(30, 100, ranks=ranks)], max_gap_s=50)


def clocks() -> Iterator[Rule]:
    for by in (-3600.0, -60.0, -2.5, 2.5, 60.0, 3600.0):
        late = with_t(by, lambda one: one["rank"] == 2 and one["step"] >= 60)
        yield rule("continuous", late, words=f"the clock of rank 2 was set by {by:.1f} s before step 60")
        if abs(by) >= 60:
            words = f"the clock of rank 2 was set by {by:.1f} s before step 60"
            yield rule("continuous", unseen(late), [], words)
    yield rule("continuous", with_t(-60, lambda one: one["step"] >= 60, unseen(records(ranks=1))), [])
    own = [move(START - SEEN + 30, START - SEEN + 180)]
    stalled = records(stall=SLEPT)
    yield rule("gap", unseen(stalled), own, "observer's clock: 400 records have no `seen`")
    # The clock of the moved guest lost the stun, so its own records show no gap, stamped or not.
    slept = with_t(-130, lambda one: one["rank"] == 1 and one["step"] >= 35, stalled)
    yield rule("gap", slept, [move(30, 180)])
    yield rule("gap", unseen(slept), [])
    two = records(ranks=2, stall=SLEPT)
    for by in (-3600.0, -200.0, -5.0):
        last = [{**one, "t": one["t"] + by, "seen": None} if one["step"] == 99 else one for one in two]
        yield rule("gap", last, [move(30, 180)])
    asleep = with_t(-20, lambda one: one["rank"] == 1 and one["step"] >= 40, records(150, stall=(40, 20.0)))
    peers = [{**one, "seen": one["seen"] if one["rank"] == 1 else None} for one in asleep]
    yield rule("gap", peers, [move(38, 60)], max_gap_s=15)
    yield rule("continuous", with_t(86_400, lambda one: one["rank"] == 2))
    yield rule("continuous", unseen(with_t(-3600, lambda one: one["rank"] == 1)), [])
    yield rule("continuous", [{**one, "seen": None} if one["step"] % 3 or one["rank"] == 1 else one for one in RUN])
    after = [move(START - SEEN + 49, START - SEEN + 50)]
    yield rule("continuous", unseen(RUN), after, observed_until=START + 3700)


def figures() -> Iterator[Rule]:
    for bad in ("nan", "NaN", "inf", "-inf", "Infinity", float("nan"), float("-inf")):
        yield rule("loss", since(70, [3], loss=bad), words="rank 3 has loss")
        yield rule("continuous", changed(RUN, lambda one: 70 <= one["step"] < 80, loss=bad))
        yield rule("continuous", since(0, loss=bad))
    for count, expected in ((1, "inconclusive"), (19, "inconclusive"), (20, "loss")):
        yield rule(expected, since(100 - count, loss="inf"))
    yield rule("continuous", since(0, loss=None), words="loss: no rank reported one")
    slower = since(41, images_per_sec=250.0)
    yield rule("throughput", slower, min_throughput_ratio=0.75)
    yield rule("continuous", slower, min_throughput_ratio=0.7)
    yield rule("continuous", slower)
    less = since(111, made=since(41, made=LONG, images_per_sec=290.0), images_per_sec=240.0)
    yield rule("throughput", less, [move(30, 40), move(100, 110, rank=2)], min_throughput_ratio=0.8)
    unsteady = [{**one, "images_per_sec": 150.0 if one["step"] > 40 else 100 + 300 * (one["step"] % 2)} for one in RUN]
    yield rule("continuous", unsteady, words="too unsteady", min_throughput_ratio=0.8)
    claims = [
        {**one, **{key: one[key] + max(0.0, (one["step"] - 200) * 2.0) for key in ("t", "seen")}}
        for one in records(400)
    ]
    yield rule("throughput", claims, [move(195, 200)], "steps/s on the observer's clock", min_throughput_ratio=0.5)
    yield rule("died", RUN, [], "the job died", ended="died")
    yield rule("died", [], [], ended="died")
    yield rule("inconclusive", [], words="records: none")
    yield rule("continuous", RUN, [], "limits: max_gap is not a limit and was ignored", max_gap=3)


def observed() -> Iterator[Rule]:
    for name, given, words in (
        ("launcher", None, "launcher"),
        ("launcher", {"before": {"pid": 1}, "after": None}, "launcher: not observed both before and after"),
        ("launcher", "mpirun", "launcher: not observed both before and after"),
        *(
            ("launcher", {"before": LAUNCHER, "after": {**LAUNCHER, key: None}}, f"before and after: {key}")
            for key in LAUNCHER
        ),
        ("transport", None, "transport"),
        ("transport", [{"before": "rdma", "after": "unproven"}], "transport: move 1 (w1): the transport after"),
        ("transport", [{"before": {"w1": "rdma"}, "after": {"w1": None}}], "move 1 (w1): the transport of w1"),
        ("transport", [], "transport: move 1 (w1): the transport before and after"),
        ("transport", ["rdma"], "transport: move 1 (w1): the transport before and after"),
        ("vsphere", None, "vsphere"),
        ("vsphere", [{}], "vsphere: move 1 (w1): hot migration event"),
        ("vsphere", [{"hot_migration": True, "power_cycled": False}], "vsphere: move 1 (w1): GPUs not observed"),
    ):
        yield rule("inconclusive", words=words, **{name: given})
        rest = [other for other in ("launcher", "transport", "vsphere") if other != name]
        yield rule("continuous", require=rest, **{name: given})


def contradicted() -> Iterator[Rule]:
    for name, given, kind in (
        ("launcher", {"before": {"pid": 1, "start": 5}, "after": {"pid": 2, "start": 5}}, "identity"),
        ("transport", [{"before": "rdma", "after": "tcp"}], "transport"),
        ("transport", [{"before": {"w0": "rdma", "w1": "rdma"}, "after": {"w0": "tcp", "w1": "rdma"}}], "transport"),
        ("vsphere", [{"power_cycled": True}], "power_cycle"),
        ("pods", ["pod w1 was recreated: afc6e497 became 5264c7a5"], "identity"),
    ):
        for require in ((), (name,)):
            yield rule(kind, require=require, **{name: given})
    for first, second in (
        (GOOD, {"before": "tcp", "after": "tcp"}),
        (GOOD, {"before": {"w1": "tcp"}, "after": {"w1": "tcp"}}),
        ({"before": "rdma", "after": None}, {"before": None, "after": "tcp"}),
    ):
        both = [move(40, 50), move(100, 110, rank=2)]
        words = "was rdma after move 1 (w1) and is tcp now"
        yield rule("transport", LONG, both, words, transport=[first, second])
    for pods in ([], None, "odd"):
        yield rule("continuous", pods=pods)
    yield rule("identity", since(51, pid=1), launcher=None, words="launcher")


def workers() -> Iterator[Rule]:
    elsewhere = {f"w{rank}": [rank] for rank in range(4)}
    yield rule("continuous", words="no rank of the job runs on it", ranks=elsewhere, **power("db7"))
    yield rule("inconclusive", words="db7", **power("db7"))
    yield rule("inconclusive", since(0, [3], host=None), words="db7", **power("db7"))
    for name, ranks, expected in (("vm-7", [2], "power_cycle"), ("vm-7", [], "continuous"), ("W2.lab", [], "")):
        yield rule(expected or "power_cycle", RUN, [], ranks={name: ranks}, **power(name))
    for at, ended, expected in (
        (-5, "running", "continuous"),
        (150, "finished", "continuous"),
        (101, "running", "power_cycle"),
        (50, "finished", "power_cycle"),
    ):
        yield rule(expected, ended=ended, **power("w2", at))
    for values in ({"started": None}, {"started": "soon"}, {"completed": float("nan")}, {"ok": "true"}, {"ok": 1}):
        yield rule("inconclusive", LONG, [move(50, 60), move(100, 110, rank=2) | values], "moves: move 2 (w2)")
    yield rule("inconclusive", RUN, [move(30, 25)], "before it starts")
    refused = [move(30, 40) | {"started": None, "completed": None, "ok": False}]
    yield rule("continuous", RUN, refused)
    yield rule("continuous", RUN, refused, vsphere=[None], power=[])
    yield rule("inconclusive", RUN, refused, vsphere=[None])
    failed = [move(30, 140, ok=False)]
    yield rule("continuous", records(stall=(35, 100.0)), failed, vsphere=[{"power_cycled": False}])


RULES = [
    one
    for part in (identity, steps, silences, gaps, warm_up, waits, clocks, figures, observed, contradicted, workers)
    for one in part()
]


@pytest.mark.parametrize("one", RULES, ids=lambda one: f"{one.expected} {one.words}")
def test_the_verdict_follows_the_rule(one: Rule) -> None:
    found = judged(one)
    kinds = " ".join(sorted({breach["kind"] for breach in found["breaches"]}))
    assert (kinds or found["verdict"]) == one.expected, found["breaches"][:3] + found["unproven"]
    assert found["verdict"] == ("broken" if kinds else one.expected)
    reported = [*(breach["detail"] for breach in found["breaches"]), *found["unproven"], *found["notes"]]
    assert any(one.words in sentence for sentence in (*reported, "")), reported


@pytest.mark.parametrize(
    ("oks", "evidence", "moved"),
    [
        ((True, True), {}, "all"),
        ((True, False), {}, "some"),
        ((False, None), {}, "none"),
        ((True, True), {"hot_migration": False}, "some"),
        ((True, True), {"host": {"before": "esx1", "after": "esx1"}}, "some"),
    ],
)
def test_only_successful_uncontradicted_moves_count(oks: Any, evidence: dict[str, Any], moved: str) -> None:
    moves = [move(30, 40, ok=oks[0]), move(60, 70, rank=2, ok=oks[1])]
    known = facts(moves)["vsphere"]
    known[1].update(evidence)
    assert judged(rule("continuous", RUN, moves, vsphere=known))["moved"] == moved


def test_refuses_an_unknown_ending_and_a_malformed_limit() -> None:
    with pytest.raises(ValueError, match="expected one of running, finished, died"):
        verdict([], [], {}, ended="stopped")
    with pytest.raises(ValueError, match="max_gap_s is 'long'"):
        judged(rule("", max_gap_s="long"))
