"""The identity of a job: the identity of every rank, and the set of ranks."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

from .limits import Breach, bounded, number
from .lines import IDENTITY, Line
from .move_windows import Timeline
from .step_records import Track

SHARED = ("job", "generation", "size")
NAMED_RANKS = 20


def identity_breaches(tracks: Sequence[Track], timeline: Timeline, resume_deadline_s: float) -> Iterator[Breach]:
    """Yield ranks that became another process, ranks of different jobs, and ranks that appeared later."""
    for track in tracks:
        yield from bounded(_changes(track))
    yield from _strangers(tracks)
    yield from _newcomers(tracks, timeline, resume_deadline_s)


def unseen_identity(tracks: Sequence[Track]) -> Iterator[str]:
    """Yield the parts of the identity that at least one rank never reported."""
    for key in IDENTITY:
        silent = [track.rank for track in tracks if all(kind.identity.get(key) is None for kind in track.kinds)]
        if silent:
            yield f"identity: {key} is not in the records of {ranks_text(silent)}"


def absent_ranks(tracks: Sequence[Track], moved: Collection[int]) -> str:
    """Return a sentence about moved or expected ranks without a record; "" without such ranks."""
    received = {track.rank for track in tracks}
    size = max([0, *(_size(track) or 0 for track in tracks)])
    # A record may contain any size, so the ranks are counted and only the first ones are named.
    by_size = (rank for rank in range(size) if rank not in received)
    first = sorted({*islice(by_size, NAMED_RANKS), *(rank for rank in moved if rank not in received)})
    beyond = sum(1 for rank in moved if rank not in received and rank >= size)
    count = max(len(first), size - sum(0 <= rank < size for rank in received) + beyond)
    if count <= NAMED_RANKS:
        return ranks_text(first) if first else ""
    return f"{ranks_text(first[:NAMED_RANKS])} and {count - NAMED_RANKS} more"


def one_sided(tracks: Sequence[Track], timeline: Timeline, names: Sequence[str]) -> Iterator[str]:
    """Yield the ranks that reported a part of their identity only on one side of a move; ``names`` are of groups."""
    for track in tracks:
        result = {key: _reported_span(track, key) for key in IDENTITY}
        for group, name in zip(timeline.groups, names):
            if not (track.first.at <= group.started and group.completed <= track.last.at):
                continue
            only_before = [
                key for key, span in result.items() if span and span[0] <= group.started and span[1] < group.completed
            ]
            only_after = [
                key for key, span in result.items() if span and span[0] > group.started and span[1] >= group.completed
            ]
            for side, keys in (("before", only_before), ("after", only_after)):
                if keys:
                    yield f"identity: rank {track.rank} reported {', '.join(keys)} only {side} {name}"


def ranks_text(ranks: Sequence[int]) -> str:
    """Return the ranks as messages name them."""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(str(rank) for rank in ranks)}"


def _reported_span(track: Track, key: str) -> tuple[float, float] | None:
    """Return the first and the last time at which a rank reported a part of its identity."""
    if not any(kind.identity.get(key) is not None for kind in track.kinds):
        return None
    if track.first.identity.get(key) is not None and track.last.identity.get(key) is not None:
        return track.first.at, track.last.at
    lines = track.lines
    reported = [kind.identity.get(key) is not None for kind in lines.kinds]
    first = next((at for at, kind in zip(lines.at, lines.kind) if reported[kind]), None)
    last = next((at for at, kind in zip(reversed(lines.at), reversed(lines.kind)) if reported[kind]), None)
    return None if first is None or last is None else (first, last)


def _changes(track: Track) -> Iterator[Breach]:
    current: tuple[Any, ...] = (None,) * len(IDENTITY)
    reported = set()
    if len({repr(kind.identity) for kind in track.kinds}) == 1:
        return
    for line in track.lines:
        given = tuple(map(line.identity.get, IDENTITY))
        if given == current:
            continue
        changed = [
            f"{key} {old} became {new}"
            for key, old, new in zip(IDENTITY, current, given)
            if old is not None and new is not None and str(old) != str(new)
        ]
        current = tuple(old if new is None else new for old, new in zip(current, given))
        identity = tuple(str(value) for value in current)
        if changed and identity not in reported:
            yield Breach("identity", track.rank, line.step, line.at, f"rank {track.rank}: {', '.join(changed)}")
        reported.add(identity)


def _strangers(tracks: Sequence[Track]) -> Iterator[Breach]:
    for key in SHARED:
        first: tuple[int, Any] | None = None
        for track in tracks:
            line = _first_with(track, key)
            if line is None:
                continue
            value = line.identity[key]
            if first is None:
                first = track.rank, value
            elif str(value) != str(first[1]):
                detail = f"rank {track.rank} has {key} {value}, rank {first[0]} has {first[1]}: not one job"
                yield Breach("identity", track.rank, line.step, line.at, detail)


def _newcomers(tracks: Sequence[Track], timeline: Timeline, resume_deadline_s: float) -> Iterator[Breach]:
    """Yield ranks beyond the size and, without a size, ranks that first appeared long after the others."""
    begin = min((track.first.at for track in tracks), default=math.inf)
    latest = timeline.groups[0].started if timeline.groups else begin + resume_deadline_s
    sizes = [_size(track) for track in tracks]
    of_job = next((size for size in sizes if size is not None), None)
    for track, own in zip(tracks, sizes):
        # A rank whose records lack the size belongs to the job of the others.
        first, size = track.first, of_job if own is None else own
        if size is None and begin < latest < first.at:
            detail = f"rank {track.rank} first appeared {first.at - begin:.3f} s after the others"
            yield Breach("identity", track.rank, first.step, first.at, detail)
        elif size is not None and track.rank >= size:
            detail = f"rank {track.rank} does not belong to a job of {size} ranks"
            yield Breach("identity", track.rank, first.step, first.at, detail)


def _size(track: Track) -> int | None:
    size = number(track.first.identity.get("size"))
    if size is not None or all(kind.identity.get("size") is None for kind in track.kinds):
        return None if size is None else int(size)
    sizes = [number(kind.identity.get("size")) for kind in track.lines.kinds]
    return next((int(size) for kind in track.lines.kind if (size := sizes[kind]) is not None), None)


def _first_with(track: Track, key: str) -> Line | None:
    if track.first.identity.get(key) is not None:
        return track.first
    if all(kind.identity.get(key) is None for kind in track.kinds):
        return None
    lines = track.lines
    has = [kind.identity.get(key) is not None for kind in lines.kinds]
    return next((lines[index] for index, kind in enumerate(lines.kind) if has[kind]), None)
