"""The other runs that used the nodes of a job, and the checkpoints in its outputs, from the answers of its nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...core.names import printable
from ...watch import node_programs, runs_program
from ..running import busy
from .checkpoint import OutputFile, candidates

MOST_RUNS, MOST_OF_A_NAME = 20, 200


class _Stay(NamedTuple):
    """A run on one node, from when until when; a run that is still active has no end."""

    run_dir: str
    user: str
    since: float
    until: float


def read_runs(nodes: node_programs.Nodes, folder: str, since: float, timeout: float = 30.0) -> dict[str, Any]:
    """Read on all nodes of a job the other runs that were active since a time, and the times of its checkpoints.

    Users other than root see runs of others only if their folders are beside that of the job, ``folder``.
    """
    found = node_programs.run_on_nodes(nodes, runs_program, [folder, str(since)], timeout)
    return {"sentences": sentences(found), "saved": saved(found)}


def sentences(nodes: Mapping[str, object]) -> list[str]:
    """Return each other run: its name, its user, its nodes, from when until when."""
    runs: dict[str, dict[str, _Stay]] = {}
    for node, answer in nodes.items():
        for stay in _stays(answer):
            runs.setdefault(stay.run_dir, {})[node] = stay
    texts = [_sentence(stays) for _run_dir, stays in sorted(runs.items())]
    more = [f"{len(texts) - MOST_RUNS} further runs"] if len(texts) > MOST_RUNS else []
    return [*texts[:MOST_RUNS], *more]


def saved(nodes: Mapping[str, object]) -> list[float]:
    """Return the times of the checkpoints that a resumed run would choose from, in order and each once."""
    files = [file for answer in nodes.values() for file in _files(answer)]
    return sorted({round(file.modified, 3) for file in candidates(files, ())})


def _sentence(stays: Mapping[str, _Stay]) -> str:
    first = min(stays.values(), key=lambda stay: stay.since)
    until = max(stay.until for stay in stays.values())
    end = "still active" if math.isinf(until) else f"until {busy.second(until)}"
    of = f" of {first.user}" if first.user else ""
    return f"{busy.name_of(first.run_dir)}{of} on {', '.join(sorted(stays))}: from {busy.second(first.since)}, {end}"


def _stays(answer: object) -> Iterator[_Stay]:
    for run in _list(answer, "runs"):
        try:
            until = math.inf if run["until"] is None else float(run["until"])
            since = float(run["since"])
            stay = _Stay(str(run["run_dir"]), printable(str(run["user"]))[:MOST_OF_A_NAME], since, until)
        except (TypeError, ValueError, KeyError, OverflowError):
            continue
        if math.isfinite(since) and not math.isnan(until):
            yield stay


def _files(answer: object) -> Iterator[OutputFile]:
    for file in _list(answer, "files"):
        try:
            path, modified = str(file[0]), float(file[1])
        except (TypeError, ValueError, KeyError, IndexError, OverflowError):
            continue
        if math.isfinite(modified):
            yield OutputFile(path, modified)


def _list(answer: object, key: str) -> list[Any]:
    found = answer.get(key) if isinstance(answer, Mapping) else None
    return found if isinstance(found, list) else []
