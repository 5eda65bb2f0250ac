"""A vMotion test over time: throughput, the moves as bands, the silences, and the host of each worker."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from ...continuity.judged_facts import Move, Verdict
from ...continuity.limits import number
from ...continuity.lines import Line, neighbours
from ...continuity.pace import IMAGES, STEPS, images_of_step
from ...continuity.step_records import Track

MOST_BINS = 240
# A silence shorter than this number of usual steps, or than a second, is part of the normal pace of the job.
USUAL_STEPS, SHORTEST_S = 3, 1.0
# The fields of the verdict that a page shows.
KEPT = ("verdict", "moved", "longest_gap_s", "breaches", "unproven", "notes", "other_runs", "cost", "earlier")
# The fields of a move that come from vCenter.
VSPHERE = ("hot_migration", "encrypted", "gpus", "stun_expected_s")


def timeline(tracks: Sequence[Track], moves: Sequence[Move], judged: Verdict, at: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of a plot, with times in seconds since the first record.

    ``judged`` is the verdict on these tracks and moves; ``at`` is the initial host of each worker.
    """
    began = min((track.first.at for track in tracks), default=0.0)
    ended = max((track.last.at for track in tracks), default=0.0)
    interval = median([track.interval for track in tracks]) if tracks else 0.0
    width = _bin_width(ended - began, interval)
    unit, rates = _rates(tracks, began, width, max(1, math.ceil((ended - began) / width)))
    bands = list(_bands(moves, judged, began, ended))
    return {
        **{key: judged.get(key) for key in KEPT},
        "began": began,
        "seconds": ended - began,
        "unit": unit,
        "bin_s": width,
        "rates": [round(rate, 3) for rate in rates],
        "moves": bands,
        "gaps": list(_gaps(judged, began, max(SHORTEST_S, USUAL_STEPS * interval))),
        "phases": sorted(_phases(tracks, began), key=lambda phase: (phase["from"], phase["phase"])),
        "hosts": _hosts(at, bands, ended - began),
    }


def _bin_width(seconds: float, interval: float) -> float:
    """Return a round width that gives at most MOST_BINS bins, each with several steps."""
    least = max(seconds / MOST_BINS, 2 * interval, 0.1)
    size = 10.0 ** math.floor(math.log10(least))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= least * 0.9999)


def _rates(tracks: Sequence[Track], began: float, width: float, bins: int) -> tuple[str, list[float]]:
    """Return the throughput of the job in each bin; a step is spread evenly over the time since the previous step."""
    images = [images_of_step(track.steps) for track in tracks]
    unit = IMAGES if tracks and all(images) else STEPS
    rates = [0.0] * bins
    for track, each in zip(tracks, images):
        worth = (each or 0.0) if unit == IMAGES else 1 / len(tracks)
        steps = track.steps
        for before, after in neighbours(_last_of_moments(steps.ordered(steps.at))):
            made = max(0, after.step - before.step) * worth
            for index, share in _shares(before.at - began, after.at - began, width, bins):
                rates[index] += made * share
    ended = max((track.last.at for track in tracks), default=began) - began
    # The last record may end within the last bin.
    return unit, [made / min(width, max(ended - index * width, 1e-3)) for index, made in enumerate(rates)]


def _last_of_moments(steps: Iterable[Line]) -> Iterator[Line]:
    """Yield the last step of each moment: all that arrived at once were made since the moment before it."""
    last: Line | None = None
    for line in steps:
        if last is not None and line.at > last.at:
            yield last
        last = line
    if last is not None:
        yield last


def _shares(begin: float, end: float, width: float, bins: int) -> Iterator[tuple[int, float]]:
    """Yield the bins of a period, each with its share of the period."""
    first, last = (max(0, min(int(moment / width), bins - 1)) for moment in (begin, end))
    if first == last or end <= begin:
        yield last, 1.0
        return
    for index in range(first, last + 1):
        inside = min(end, (index + 1) * width if index < last else end) - max(begin, index * width)
        yield index, max(0.0, inside) / (end - begin)


def _bands(moves: Sequence[Move], judged: Verdict, began: float, ended: float) -> Iterator[dict[str, object]]:
    for move, judged_move in zip(moves, judged.get("moves") or []):
        started, completed = number(move.get("started")), number(move.get("completed"))
        yield {
            **{key: move.get(key) for key in ("worker", "source", "target", "ok", "said", "by")},
            **{key: (move.get("vsphere") or {}).get(key) for key in VSPHERE},
            "external": bool(move.get("external")),
            "moved": bool(judged_move.get("moved")),
            "from": None if started is None else started - began,
            "until": None if started is None else (ended if completed is None else completed) - began,
            **{key: judged_move.get(key) for key in ("gap_s", "throughput", "resumed_s")},
            "measured_on": judged_move.get("source"),
        }


def _gaps(judged: Verdict, began: float, shortest: float) -> Iterator[dict[str, object]]:
    """Yield the longest silence of each group of moves, and those outside all moves."""
    broke = {(breach["rank"], breach["at"]) for breach in judged.get("breaches") or [] if breach["kind"] == "gap"}
    yielded = set()
    by_move = [move.get("gap") for move in judged.get("moves") or []]
    for gap, is_explained in [
        *((gap, True) for gap in by_move),
        *((gap, False) for gap in judged.get("unattributed") or []),
    ]:
        if gap is None or gap["seconds"] < shortest or (gap["rank"], gap["at"]) in yielded:
            continue
        yielded.add((gap["rank"], gap["at"]))
        is_broken = (gap["rank"], gap["at"]) in broke
        kind = "too long" if is_broken else "in a move" if is_explained else "unattributed"
        yield {**{key: gap[key] for key in ("seconds", "rank", "step")}, "from": gap["at"] - began, "kind": kind}


def _phases(tracks: Sequence[Track], began: float) -> Iterator[dict[str, object]]:
    """Yield the phases, such as evaluation and checkpoints, from the marks of the first rank."""
    opened: Line | None = None
    for line in tracks[0].lines if tracks else []:
        if line.mark == "begin":
            opened = line
        elif line.mark == "end" and opened is not None:
            yield {"phase": opened.phase, "from": opened.at - began, "until": line.at - began}
            opened = None


def _hosts(at: Mapping[str, str], bands: Sequence[Mapping[str, object]], seconds: float) -> list[dict[str, object]]:
    """Return the stays of each worker; a worker changes its host when a move ends."""
    workers = sorted({*at, *(str(band["worker"]) for band in bands)})
    return [{"worker": worker, "stays": list(_stays(worker, at, bands, seconds))} for worker in workers]


def _stays(
    worker: str, at: Mapping[str, str], bands: Sequence[Mapping[str, Any]], seconds: float
) -> Iterator[dict[str, object]]:
    own = sorted(
        (band for band in bands if band["worker"] == worker and band["from"] is not None), key=lambda band: band["from"]
    )
    host, since = at.get(worker) or (str(own[0]["source"]) if own else "?"), 0.0
    for band in own:
        if band["moved"]:
            yield {"host": host, "from": since, "until": band["until"]}
            host, since = str(band["target"]), band["until"]
    yield {"host": host, "from": since, "until": max(seconds, since)}
