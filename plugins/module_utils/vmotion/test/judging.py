# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What a verdict is given on: the moves and facts that the journal of a vMotion test tells; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...kubernetes.state import FINISHED, changes
from ...training.transport import connections as transport_seen
from ..checks import move_lines
from .observed import Observed

ENDINGS = {"running": "running", "finished": "finished"}


def case(seen: Observed, limits: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The arguments of the verdict; limits that are given go before those of the test."""
    return {
        "moves": seen.every_move,
        "limits": {"warmup_steps": seen.settings["warmup_steps"], **seen.settings["limits"], **(limits or {})},
        "ended": ENDINGS.get((seen.job_now or {}).get("state", ""), "died"),
        "facts": _facts(seen),
        "require": seen.settings["require"],
    }


def transports(seen: Observed) -> dict[str, Any]:
    """By what the ranks spoke: ``usual`` at first, ``last``, and ``of_moves``, each before and after."""
    spoken = _spoken(seen)
    ends = [*(move["looks"] for move in seen.moves[1:]), len(seen.looks)]
    of_moves = [
        {"before": _at(spoken, move["looks"]), "after": _at(spoken, end)} for move, end in zip(seen.moves, ends)
    ]
    return {"usual": spoken[0] if spoken else {}, "last": spoken[-1] if spoken else {}, "of_moves": of_moves}


def _facts(seen: Observed) -> dict[str, Any]:
    return {
        "launcher": {"before": (seen.job or {}).get("launcher"), "after": (seen.job_now or {}).get("launcher")},
        "transport": transports(seen)["of_moves"],
        "vsphere": [move.get("vsphere") for move in seen.every_move],
        "power": seen.power,
        "ranks": _ranks(seen),
        "checksums": seen.checksums,
        "pods": _pods(seen),
        "silences": (seen.job_now or {}).get("silences"),
        "died": _death(seen),
        "observed_until": seen.heard_until or None,
    }


def _ranks(seen: Observed) -> dict[str, list[int]]:
    """Return the ranks of each worker.

    A guest whose name is no worker's may run on any of them: then no worker is reported as one without ranks.
    """
    is_whole = set(seen.ranks) <= set(seen.at)
    found = {worker: ranks for worker, ranks in seen.ranks.items() if worker in seen.at}
    return {**({worker: [] for worker in seen.at} if is_whole else {}), **found}


def _pods(seen: Observed) -> list[str] | None:
    """What became of the pods of a job on Kubernetes; None for a job without pods."""
    before, after = ((job or {}).get("pods") for job in (seen.job, seen.job_now))
    has_finished = (seen.job_now or {}).get("state") == FINISHED
    return None if before is None or after is None else list(changes(before, after, has_finished))


def _death(seen: Observed) -> str:
    """Of what the job died, or what it is if it neither runs nor has finished; empty where it does."""
    job = seen.job_now or {}
    return "" if job.get("state", "") in ("", *ENDINGS) else str(job.get("why") or f"it is {job['state']}")


def _spoken(seen: Observed) -> list[dict[str, Any]]:
    """The transports between each look and the one before it."""
    told: list[dict[str, Any]] = []
    for first, second in zip(seen.looks, seen.looks[1:]):
        given = {
            "hosts": (first["hosts"] or [], second["hosts"] or []),
            "at": move_lines.at_last(seen.at, [*seen.moves[: second["moves"]], *second["others"]]),
            "rdma": second["rdma"],
            "usual": told[0]["bytes_per_step"] if told else {},
        }
        told.append(transport_seen.judge(first["nodes"], second["nodes"], **given))
    return told


def _at(spoken: list[dict[str, Any]], looks: int) -> dict[str, str] | None:
    """The transports when so many looks had been made; none before the second."""
    return dict(spoken[looks - 2]["transports"]) if 2 <= looks <= len(spoken) + 1 else None
