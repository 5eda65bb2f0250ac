"""The expected times and stalls of a maintenance window, and their comparison with the measured ones; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any

from .facts import Facts

# The times of a host before any window of this cluster was measured.
REBOOT_S, CHANGE_S, MOVE_S = 900.0, 180.0, 120.0
# The times of a restart besides its hosts: the shutdown and the boot of workers, and the start of the job.
WORKERS_S, START_S = 300.0, 120.0
DEFAULTS = (
    f"without an earlier window: {REBOOT_S / 60:.0f} min per reboot, {CHANGE_S / 60:.0f} per change, "
    f"{MOVE_S / 60:.0f} per move"
)

Value = Mapping[str, Any]


def predicted(window: Value, plan: Value, earlier: Sequence[Value]) -> dict[str, Any]:
    """Return the expected seconds of each host and of the window, its stall, its goodput, and the basis of these."""
    hosts = [
        {"host": stage["host"], "seconds": host_seconds(window, stage, earlier), "moves": len(stage["moves"])}
        for stage in plan["stages"]
    ]
    stuns = [move.get("stun_s") for stage in plan["stages"] for move in stage["moves"]]
    seconds, stall = sum(host["seconds"] for host in hosts), sum(stun or 0.0 for stun in stuns)
    return {
        "hosts": hosts,
        "seconds": seconds,
        "stall_s": None if None in stuns else stall,
        "goodput": None if None in stuns or not seconds else 1.0 - stall / seconds,
        "basis": f"{len(earlier)} earlier host changes" if earlier else DEFAULTS,
    }


def attended(changes: Sequence[dict[str, object]]) -> list[dict[str, Any]]:
    """Return the changes that one controller made without a pause, whose times are those of the hosts."""
    return [change for change in changes if change.get("attended", True)]


def host_seconds(
    window: Value, stage: Value, earlier: Sequence[Value], of_others: Callable[[Iterable[float]], float] = median
) -> float:
    """Return the expected seconds of a host and its moves, from its last change, else from other hosts or defaults."""
    took = [(change["host"], change["back_at"] - change["began"]) for change in earlier]
    own = [seconds for host, seconds in took if host == stage["host"]]
    if took:
        return float(own[-1] if own else of_others(seconds for _host, seconds in took))
    reboots = int((window.get("reboots") or {}).get(stage["host"], 1))
    return CHANGE_S + reboots * REBOOT_S + len(stage["moves"]) * MOVE_S


def down_seconds(window: Value, hosts: Sequence[str], at_once: int, earlier: Sequence[Value]) -> float:
    """Return the expected seconds for which a window by restart stops its job."""
    each = [host_seconds(window, {"host": host, "moves": []}, earlier) for host in hosts]
    return WORKERS_S + START_S + sum(max(each[first : first + at_once]) for first in range(0, len(each), at_once))


def lines(prediction: Value, now: float) -> Iterator[str]:
    """Yield a prediction as text: each host, and the whole."""
    for host in prediction["hosts"]:
        yield f"{host['host']}: about {host['seconds'] / 60:.0f} min, moves before: {host['moves']}"
    yield f"expected: {_whole(prediction)}, until {clock(now + prediction['seconds'])} ({prediction['basis']})"


def _whole(prediction: Value) -> str:
    parts = [f"{len(prediction['hosts'])} hosts in {prediction['seconds'] / 60:.0f} min"]
    if prediction["stall_s"] is not None:
        parts += [f"the job stands still for {prediction['stall_s']:.0f} s in all"]
    if prediction["goodput"] is not None:
        parts += [f"goodput {prediction['goodput']:.1%}"]
    return ", ".join(parts)


def comparison(facts: Facts, cost: Value) -> str:
    """Return the prediction and the measured values; empty without a prediction or before a host was changed."""
    changes, expected = facts.finished_changes, facts.prediction
    if not expected or not changes:
        return ""
    seconds = sum(change["back_at"] - change["began"] for change in changes)
    came = {"hosts": changes, "seconds": seconds, "stall_s": cost.get("stalled_s"), "goodput": cost.get("goodput")}
    return f"Expected: {_whole(expected)}. Measured: {_whole(came)}."


def clock(at: float) -> str:
    """Return a time on the clock of the controller."""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M %Z")
