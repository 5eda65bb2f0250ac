"""The input of a verdict, from the facts of a vMotion test; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...continuity.judged_facts import Verdict
from ...continuity.limits import read_limits
from ...errors import Refused
from ...kubernetes.state import FINISHED, changes
from ...training.transport import connections
from . import move_lines, outcome, prediction
from .facts import Facts, is_same_wave

# The worst verdict of its windows is that of an observation.
WORST_FIRST = ("broken", "inconclusive")
ENDINGS = {"running": "running", "finished": "finished"}


def verdict_input(facts: Facts, limits: Mapping[str, object] | None = None) -> dict[str, Any]:
    """Return the arguments of the verdict. The given limits take precedence over the limits of the test."""
    return {
        "moves": [*facts.judged_moves, *facts.others],
        "limits": {"warmup_steps": facts.settings["warmup_steps"], **facts.settings["limits"], **(limits or {})},
        "ended": ENDINGS.get((facts.job_now or {}).get("state", ""), "died"),
        "facts": _observed(facts),
        "require": facts.settings["require"],
    }


def check_limits(limits: dict[str, object]) -> None:
    """Raise Refused for limits that the verdict would refuse after the moves."""
    try:
        read_limits(limits)
    except ValueError as error:
        raise Refused("limits", "judge a test with them", str(error), "correct the named value") from error


def with_earlier(judged: Verdict, facts: Facts) -> Verdict:
    """Return the verdict of an observation: the worst of its windows, with the events of the earlier ones."""
    if not facts.windows:
        return judged
    verdicts = {str(window["verdict"]) for window in facts.earlier} | {str(judged["verdict"])}
    earlier = [
        {key: window[key] for key in ("until", "verdict", "moves", "rows", "power", "files")}
        for window in facts.earlier
    ]
    return {
        **judged,
        "verdict": next((one for one in WORST_FIRST if one in verdicts), judged["verdict"]),
        "unproven": _once(facts.earlier, "unproven", judged),
        "notes": _once(facts.earlier, "notes", judged),
        "windows": facts.windows + 1,
        "earlier": earlier,
    }


def with_left(judged: Verdict, facts: Facts) -> Verdict:
    """Return the verdict with the moves after the end of the job and, if the test is over, its unfinished steps."""
    on_time = facts.judged_moves
    late = [move for move in facts.moves if move not in on_time]
    notes = list(facts.hangs)
    notes += [f"{move_lines.line(move)}: after the end of the job, so it is not judged" for move in late]
    notes += outcome.lines(facts.other_jobs) if facts.is_over else []
    came = prediction.comparison(facts, judged.get("cost") or {}) if facts.is_over else ""
    notes += [came] if came else []
    judged = {**judged, "notes": [*judged["notes"], *notes]} if notes else judged
    left = [f"{move_lines.line(move)}: not made" for move in facts.left]
    left += [
        f"{host}: {'its change is not complete' if host == facts.at_hand else 'not changed'}"
        for host in facts.moving_hosts
    ]
    left += [f"{worker}: removed or built again by others" for worker in facts.lost]
    if not facts.is_over or not left:
        return judged
    return {**judged, "moved": "none" if judged["moved"] == "none" else "some", "not_made": left}


def _once(earlier: Sequence[Mapping[str, Any]], key: str, judged: Mapping[str, Any]) -> list[str]:
    """Return the sentences of all windows, each once."""
    return list(dict.fromkeys(str(text) for window in (*earlier, judged) for text in window.get(key) or []))


def transports(facts: Facts) -> dict[str, Any]:
    """Return the transports of the ranks: the first (``usual``), the last, and those before and after each move."""
    readings = _transport_readings(facts)
    of_moves = [
        {"before": _transports_after(readings, move["looks"]), "after": _transports_after(readings, _end(facts, index))}
        for index, move in enumerate(facts.moves)
    ]
    return {"usual": readings[0] if readings else {}, "last": readings[-1] if readings else {}, "of_moves": of_moves}


def _end(facts: Facts, index: int) -> int:
    """Return the number of readings before the first move that did not run at the same time as this one."""
    wave = facts.moves[index]
    return next((move["looks"] for move in facts.moves[index + 1 :] if not is_same_wave(move, wave)), len(facts.looks))


def _observed(facts: Facts) -> dict[str, Any]:
    judged = facts.judged_moves
    of_moves = zip(facts.moves, transports(facts)["of_moves"])
    return {
        "launcher": {"before": (facts.job or {}).get("launcher"), "after": (facts.job_now or {}).get("launcher")},
        "transport": [transport for move, transport in of_moves if move in judged],
        "vsphere": [move.get("vsphere") for move in (*judged, *facts.others)],
        # If the server's clock was set, power events before the test may seem to be within it.
        "power": None if facts.server_clock_set_s else facts.power,
        "ranks": _ranks(facts),
        "checksums": facts.checksums,
        "pods": _pods(facts),
        "silences": (facts.job_now or {}).get("silences"),
        "died": _death(facts),
        "hosts": facts.host_changes,
        "checkpoint_s": facts.settings.get("checkpoint_seconds") or None,
        "saved": facts.saved,
        "server_clock_set_s": facts.server_clock_set_s or None,
        "site": facts.settings.get("site") or None,
        "observed_until": facts.observed_until or None,
    }


def _ranks(facts: Facts) -> dict[str, list[int]]:
    """Return the ranks of each worker.

    If the name of a guest matches no worker, its ranks may run on any of them: then no worker is reported as one
    without ranks.
    """
    workers = {*facts.at, *facts.elsewhere}
    is_complete = set(facts.ranks) <= workers
    known = {worker: ranks for worker, ranks in facts.ranks.items() if worker in workers}
    return {**({worker: [] for worker in facts.at} if is_complete else {}), **known}


def _pods(facts: Facts) -> list[str] | None:
    """Return the changes of the pods of a job on Kubernetes; None for a job without pods."""
    before, after = ((job or {}).get("pods") for job in (facts.job, facts.job_now))
    has_finished = (facts.job_now or {}).get("state") == FINISHED
    return None if before is None or after is None else list(changes(before, after, has_finished))


def _death(facts: Facts) -> str:
    """Return the cause of death, or the state of a job that neither runs nor has finished; else empty."""
    job = facts.job_now or {}
    return "" if job.get("state", "") in ("", *ENDINGS) else str(job.get("why") or f"it is {job['state']}")


def _transport_readings(facts: Facts) -> list[connections.NodeTransports]:
    """Return the transports between each reading of the connections and the one before it."""
    readings: list[connections.NodeTransports] = []
    for first, second in zip(facts.looks, facts.looks[1:]):
        readings.append(
            connections.judge(
                first["nodes"],
                second["nodes"],
                hosts=(first["hosts"] or [], second["hosts"] or []),
                at=move_lines.hosts_after(facts.at, [*facts.moves[: second["moves"]], *second["others"]]),
                rdma=second["rdma"],
                usual=readings[0]["bytes_per_step"] if readings else {},
            )
        )
    return readings


def _transports_after(readings: list[connections.NodeTransports], looks: int) -> dict[str, str] | None:
    """Return the transports after the given number of looks; None before the second look."""
    return dict(readings[looks - 2]["transports"]) if 2 <= looks <= len(readings) + 1 else None


def title(facts: Facts) -> str:
    """Return the title of the page on a test."""
    if facts.settings.get("window"):
        return f"Maintenance of {facts.cluster} during training"
    return f"{'Observation' if facts.settings.get('observe') else 'vMotion test'} of {facts.cluster}"
