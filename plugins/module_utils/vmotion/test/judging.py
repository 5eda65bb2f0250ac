# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The input of a verdict: the moves and facts in the journal of a vMotion test; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ...kubernetes.state import FINISHED, changes
from ...training.transport import connections
from ..checks import move_lines
from .trial_state import TrialState, is_same_wave

# The worst verdict of the windows of an observation counts.
WORST_FIRST = ("broken", "inconclusive")
ENDINGS = {"running": "running", "finished": "finished"}


def verdict_input(state: TrialState, limits: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the arguments of the verdict. The given limits take precedence over the limits of the test."""
    return {
        "moves": [*state.judged_moves, *state.others],
        "limits": {"warmup_steps": state.settings["warmup_steps"], **state.settings["limits"], **(limits or {})},
        "ended": ENDINGS.get((state.job_now or {}).get("state", ""), "died"),
        "facts": _facts(state),
        "require": state.settings["require"],
    }


def with_earlier(judged: Mapping[str, Any], state: TrialState) -> dict[str, Any]:
    """Return the verdict of an observation: the worst of its windows, with the events of the earlier ones."""
    if not state.windows:
        return dict(judged)
    verdicts = {str(window["verdict"]) for window in state.earlier} | {str(judged["verdict"])}
    earlier = [
        {key: window[key] for key in ("until", "verdict", "moves", "rows", "power", "files")}
        for window in state.earlier
    ]
    return {
        **judged,
        "verdict": next((one for one in WORST_FIRST if one in verdicts), judged["verdict"]),
        "unproven": _once(state.earlier, "unproven", judged),
        "notes": _once(state.earlier, "notes", judged),
        "windows": state.windows + 1,
        "earlier": earlier,
    }


def with_left(judged: Mapping[str, Any], state: TrialState) -> dict[str, Any]:
    """Return the verdict with the moves after the end of the job and, if the test is over, with all that it left."""
    on_time = state.judged_moves
    late = [move for move in state.moves if move not in on_time]
    notes = [f"{move_lines.line(move)}: after the end of the job, so it is not judged" for move in late]
    judged = {**judged, "notes": [*judged["notes"], *notes]} if notes else dict(judged)
    left = [f"{move_lines.line(move)}: not made" for move in state.left]
    left += [f"{host}: not changed" for host in state.waiting_hosts]
    if not state.is_over or not left:
        return judged
    return {**judged, "moved": "none" if judged["moved"] == "none" else "some", "not_made": left}


def _once(earlier: Sequence[Mapping[str, Any]], key: str, judged: Mapping[str, Any]) -> list[str]:
    """Return the sentences of all windows, each once."""
    return list(dict.fromkeys(str(text) for window in (*earlier, judged) for text in window.get(key) or []))


def transports(state: TrialState) -> dict[str, Any]:
    """Return the transports of the ranks: the first (``usual``), the last, and those before and after each move."""
    readings = _transport_readings(state)
    of_moves = [
        {"before": _transports_after(readings, move["looks"]), "after": _transports_after(readings, _end(state, index))}
        for index, move in enumerate(state.moves)
    ]
    return {
        "usual": readings[0] if readings else {},
        "last": readings[-1] if readings else {},
        "of_moves": of_moves,
    }


def _end(state: TrialState, index: int) -> int:
    """Return the number of looks before the first move that did not run at once with this one."""
    wave = state.moves[index]
    return next((move["looks"] for move in state.moves[index + 1 :] if not is_same_wave(move, wave)), len(state.looks))


def _facts(state: TrialState) -> dict[str, Any]:
    return {
        "launcher": {"before": (state.job or {}).get("launcher"), "after": (state.job_now or {}).get("launcher")},
        "transport": transports(state)["of_moves"][: len(state.judged_moves)],
        "vsphere": [move.get("vsphere") for move in (*state.judged_moves, *state.others)],
        # If the server's clock was set, power events before the test may seem to be within it.
        "power": None if state.server_clock_set_s else state.power,
        "ranks": _ranks(state),
        "checksums": state.checksums,
        "pods": _pods(state),
        "silences": (state.job_now or {}).get("silences"),
        "died": _death(state),
        "hosts": list(_hosts(state)),
        "checkpoint_s": state.settings.get("checkpoint_seconds") or None,
        "server_clock_set_s": state.server_clock_set_s or None,
        "site": state.settings.get("site") or None,
        "observed_until": state.heard_until or None,
    }


def _hosts(state: TrialState) -> Iterator[dict[str, Any]]:
    """Yield the hosts that are or were out of service; the time of their return is null until then."""
    for change in [*state.host_changes, *([state.host] if state.host and state.host.out_at else [])]:
        yield {**asdict(change), "back_at": change.back_at or None}


def _ranks(state: TrialState) -> dict[str, list[int]]:
    """Return the ranks of each worker.

    If the name of a guest does not match a worker, it may run on any of them: then no worker is reported as one
    without ranks.
    """
    is_complete = set(state.ranks) <= set(state.at)
    known = {worker: ranks for worker, ranks in state.ranks.items() if worker in state.at}
    return {**({worker: [] for worker in state.at} if is_complete else {}), **known}


def _pods(state: TrialState) -> list[str] | None:
    """Return the changes of the pods of a job on Kubernetes; None for a job without pods."""
    before, after = ((job or {}).get("pods") for job in (state.job, state.job_now))
    has_finished = (state.job_now or {}).get("state") == FINISHED
    return None if before is None or after is None else list(changes(before, after, has_finished))


def _death(state: TrialState) -> str:
    """Return the cause of death, or the state of a job that neither runs nor has finished; else empty."""
    job = state.job_now or {}
    return "" if job.get("state", "") in ("", *ENDINGS) else str(job.get("why") or f"it is {job['state']}")


def _transport_readings(state: TrialState) -> list[connections.NodeTransports]:
    """Return the transports between each reading of the connections and the one before it."""
    readings: list[connections.NodeTransports] = []
    for first, second in zip(state.looks, state.looks[1:]):
        readings.append(
            connections.judge(
                first["nodes"],
                second["nodes"],
                hosts=(first["hosts"] or [], second["hosts"] or []),
                at=move_lines.hosts_after(state.at, [*state.moves[: second["moves"]], *second["others"]]),
                rdma=second["rdma"],
                usual=readings[0]["bytes_per_step"] if readings else {},
            )
        )
    return readings


def _transports_after(readings: list[connections.NodeTransports], looks: int) -> dict[str, str] | None:
    """Return the transports after the given number of looks; None before the second look."""
    return dict(readings[looks - 2]["transports"]) if 2 <= looks <= len(readings) + 1 else None


def title(state: TrialState) -> str:
    """Return the title of the page on a test."""
    if state.settings.get("window"):
        return f"Maintenance of {state.cluster} during training"
    return f"{'Observation' if state.settings.get('observe') else 'vMotion test'} of {state.cluster}"
