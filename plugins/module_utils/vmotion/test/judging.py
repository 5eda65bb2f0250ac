# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The input of a verdict: the moves and facts in the journal of a vMotion test; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...kubernetes.state import FINISHED, changes
from ...training.transport import connections as transport_seen
from ..checks import move_lines
from .trial_state import TrialState

ENDINGS = {"running": "running", "finished": "finished"}


def case(state: TrialState, limits: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The arguments of the verdict; limits that are given go before those of the test."""
    return {
        "moves": state.every_move,
        "limits": {"warmup_steps": state.settings["warmup_steps"], **state.settings["limits"], **(limits or {})},
        "ended": ENDINGS.get((state.job_now or {}).get("state", ""), "died"),
        "facts": _facts(state),
        "require": state.settings["require"],
    }


def transports(state: TrialState) -> dict[str, Any]:
    """By what the ranks spoke: ``usual`` at first, ``last``, and ``of_moves``, each before and after."""
    spoken = _spoken(state)
    ends = [*(move["looks"] for move in state.moves[1:]), len(state.looks)]
    of_moves = [
        {"before": _at(spoken, move["looks"]), "after": _at(spoken, end)} for move, end in zip(state.moves, ends)
    ]
    return {"usual": spoken[0] if spoken else {}, "last": spoken[-1] if spoken else {}, "of_moves": of_moves}


def _facts(state: TrialState) -> dict[str, Any]:
    return {
        "launcher": {"before": (state.job or {}).get("launcher"), "after": (state.job_now or {}).get("launcher")},
        "transport": transports(state)["of_moves"],
        "vsphere": [move.get("vsphere") for move in state.every_move],
        "power": state.power,
        "ranks": _ranks(state),
        "checksums": state.checksums,
        "pods": _pods(state),
        "silences": (state.job_now or {}).get("silences"),
        "died": _death(state),
        "observed_until": state.heard_until or None,
    }


def _ranks(state: TrialState) -> dict[str, list[int]]:
    """Return the ranks of each worker.

    A guest whose name is no worker's may run on any of them: then no worker is reported as one without ranks.
    """
    is_whole = set(state.ranks) <= set(state.at)
    found = {worker: ranks for worker, ranks in state.ranks.items() if worker in state.at}
    return {**({worker: [] for worker in state.at} if is_whole else {}), **found}


def _pods(state: TrialState) -> list[str] | None:
    """Return the changes of the pods of a job on Kubernetes; None for a job without pods."""
    before, after = ((job or {}).get("pods") for job in (state.job, state.job_now))
    has_finished = (state.job_now or {}).get("state") == FINISHED
    return None if before is None or after is None else list(changes(before, after, has_finished))


def _death(state: TrialState) -> str:
    """Return the cause of death, or the state of a job that neither runs nor has finished; else empty."""
    job = state.job_now or {}
    return "" if job.get("state", "") in ("", *ENDINGS) else str(job.get("why") or f"it is {job['state']}")


def _spoken(state: TrialState) -> list[dict[str, Any]]:
    """The transports between each look and the one before it."""
    told: list[dict[str, Any]] = []
    for first, second in zip(state.looks, state.looks[1:]):
        given = {
            "hosts": (first["hosts"] or [], second["hosts"] or []),
            "at": move_lines.at_last(state.at, [*state.moves[: second["moves"]], *second["others"]]),
            "rdma": second["rdma"],
            "usual": told[0]["bytes_per_step"] if told else {},
        }
        told.append(transport_seen.judge(first["nodes"], second["nodes"], **given))
    return told


def _at(spoken: list[dict[str, Any]], looks: int) -> dict[str, str] | None:
    """The transports when so many looks had been made; none before the second."""
    return dict(spoken[looks - 2]["transports"]) if 2 <= looks <= len(spoken) + 1 else None
