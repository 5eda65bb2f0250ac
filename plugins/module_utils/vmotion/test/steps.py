# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The next step of a vMotion test, by its journal alone; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...training.transport.connections import uses_rdma
from .observed import Entry, Observed, observed

# What the test took from the cluster or left running: while one of these is not given back, the test has not ended.
GIVES_BACK = frozenset({"restore", "unwatch", "free"})


def next_step(journal: Iterable[Entry]) -> str:
    """The name of the step that comes next; empty when none is left."""
    return step_after(observed(journal))


def step_after(seen: Observed) -> str:
    """The same for a journal that was read."""
    if seen.end:
        return ""
    if not seen.run and not seen.is_freed:
        return "hold"
    if seen.is_over:
        return next(_ending(seen), "")
    if seen.failures:
        return "over"
    return _opening(seen) or _unfinished(seen) or _canary(seen) or _round(seen) or "over"


def _opening(seen: Observed) -> str:
    """What must be known and held before anything moves; a controller that takes the test up does its part again."""
    due = (
        ("job", seen.job is None),
        ("cluster", seen.cluster_before is None),
        ("plan", not seen.began),
        ("watch", not seen.is_watched),
        ("override", bool(seen.settings["drs_override"]) and not seen.is_overridden),
        ("warm", seen.warm is None),
        ("counters", bool(seen.looks) and seen.looks[-1]["hosts"] is None),
        ("look", not seen.looks),
        ("measure", not seen.is_measured),
        ("look", len(seen.looks) == 1),
    )
    return _first(due)


def _unfinished(seen: Observed) -> str:
    """A move that began and whose end nobody wrote down, and what follows each move."""
    if seen.pending:
        # Who began the move itself, and had an answer, need not ask what became of it.
        since = seen.lately[_last(seen.lately, "begin") :]
        return "look_up" if {"controller", "lost"} & set(since) and not seen.looked_up else "move"
    if seen.is_owed:
        return _after_move(seen) or _verdict(seen)
    return "" if seen.is_reviewed else _verdict(seen)


def _after_move(seen: Observed) -> str:
    if "advance" not in seen.lately:
        # Only counters need to be read twice: connections tell by one look.
        is_due = "look" not in seen.lately and uses_rdma(seen.looks[-1]["nodes"])
        return "look" if is_due else "advance"
    return "" if "look" in seen.lately[_last(seen.lately, "advance") :] else "look"


def _verdict(seen: Observed) -> str:
    return next((step for step in ("job", "others") if step not in seen.lately), "judge")


def _canary(seen: Observed) -> str:
    """Where nothing has ever moved, a worker without a rank goes first."""
    if seen.round or not seen.settings["canary"]:
        return ""
    if seen.canary is None:
        return "canary"
    if not seen.canary["worker"] or any(move.get("canary") for move in seen.moves):
        return ""
    return "begin" if seen.left else "canary_plan"


def _round(seen: Observed) -> str:
    if seen.stopped and not (seen.settings["go_on"] and seen.round):
        return ""
    if not seen.left:
        return "plan" if _has_another(seen) else ""
    checks = seen.settings["guest_checks"]
    due = (
        ("managers", checks and seen.managers is None),
        ("hold", "hold" not in seen.lately),
        ("guests", checks and "guests" not in seen.lately),
        ("preflight", bool(seen.settings.get("kubernetes")) and "preflight" not in seen.lately),
    )
    return _first(due) or "begin"


def _has_another(seen: Observed) -> bool:
    """Whether a round is to follow, by the number of rounds or by the time since the test began."""
    wanted = seen.settings
    return seen.round < int(wanted["rounds"]) or seen.last_at < seen.began + float(wanted["duration"])


def _ending(seen: Observed) -> Iterator[str]:
    """What is left to do at the end, in order: whatever happened, the cluster gets back what is its."""
    done = {*seen.lately, *seen.tried}
    if seen.may_outlast and not seen.is_watched and not done & {"watch", "unwatch"}:
        yield "watch"
    yield from (step for step in _all_of_the_end(seen) if step not in done)
    if not seen.tried & GIVES_BACK:
        yield "end"


def _all_of_the_end(seen: Observed) -> Iterator[str]:
    wanted, outlasts = seen.settings, seen.may_outlast
    moved_by_others = any(one.get("completed") for one in seen.others)
    waits = outlasts and wanted["finish_timeout"] > 0
    parts = (
        (bool(wanted["drs_override"]), ("restore",)),
        (outlasts and moved_by_others, ("outlast",)),
        (outlasts and wanted["ends_job"], ("finish",)),
        (waits, ("await", "checksums")),
        (True, ("unwatch", "free")),
        (seen.warm is not None, ("job", "others", "judge")),
        (wanted["ends_job"], ("stop",)),
        (seen.judged is not None, ("cluster", "hosts", "keep")),
    )
    yield from (step for is_due, steps in parts if is_due for step in steps)


def _first(due: Iterable[tuple[str, bool]]) -> str:
    return next((step for step, is_due in due if is_due), "")


def _last(kinds: list[str], kind: str) -> int:
    """Where a kind stands last; 0 where it does not stand at all."""
    return max((index for index, one in enumerate(kinds) if one == kind), default=0)
