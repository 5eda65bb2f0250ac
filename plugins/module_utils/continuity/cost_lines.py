"""The cost of moves and of hosts out of service in sentences."""

from __future__ import annotations

from datetime import datetime, timezone

from .cost import SLOW
from .judged_facts import Cost, HostCost, Lost, RestartCost

# A goodput above this value shows that the time before the first disturbance was itself disturbed, or too short.
FASTER = 1.1
UNKNOWN = (
    "Restarting from a checkpoint instead: the cost is not known, because neither the records nor the outputs of the "
    "run show checkpoints, and no checkpoint interval was given"
)


def sentences(cost: Cost) -> list[str]:
    """Return the goodput, the wasted time, and the cost of a restart."""
    slow = f"{cost['slow_s']:.0f} s below {SLOW:.0%} of it"
    counted = f"silences of more than {cost['stall_from_s']:.1f} s count"
    wasted = f"{cost['wasted_s']:.0f} {cost['wasted_unit']}"
    return [
        f"Goodput: {_goodput(cost)}, in the {cost['seconds']:.0f} s since the first disturbance; {slow}",
        f"Without a step: {cost['stalled_s']:.1f} s, times {_ranks(cost)} = {wasted}; {counted}",
        _restart(cost),
    ]


def host_sentence(host: HostCost) -> str:
    moves = host["moves"]
    numbers = f"move{'' if len(moves) == 1 else 's'} {', '.join(map(str, moves))}" if moves else "no move"
    stall = host["longest_stall_s"]
    stood = "" if stall is None else f", longest silence {stall:.1f} s"
    return f"{host['host']}: out of service {service(host)}, {numbers}{stood}, {lost(host)}"


def service(host: HostCost) -> str:
    """Return since when and until when a host was out of service."""
    if host["back_at"] is None:
        return f"since {clock(host['out_at'])}"
    seconds = host["back_at"] - host["out_at"]
    return f"{clock(host['out_at'])} to {clock(host['back_at'])} ({seconds:.0f} s)"


def lost(host: Lost) -> str:
    """Return the images or steps that the job lost in its silences, and those that it made less for other reasons."""
    slower = f"; {host['slower']:.0f} fewer because it was slower, cause unknown" if round(host["slower"]) else ""
    return f"{host['lost']:.0f} {host['lost_unit']} lost in silences{slower}"


def clock(at: float) -> str:
    """Return a time of the observer's clock in words."""
    try:
        return f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return f"{at:.0f} s"


def _goodput(cost: Cost) -> str:
    share, rate = cost["goodput"], f"{cost['steps_per_s']:.3g} steps/s"
    if share is None:
        return "not known"
    if share <= FASTER:
        return f"{share:.1%} of the undisturbed {rate}"
    return f"{share:.1%} of the {rate} before (the job was slower before, so measure longer: vmotion_test_steps)"


def _ranks(cost: Cost) -> str:
    return f"{cost['ranks']} rank{'' if cost['ranks'] == 1 else 's'}"


def _restart(cost: Cost) -> str:
    restart = cost["restart"]
    if restart is None:
        return UNKNOWN
    often = "once" if restart["restarts"] == 1 else f"{restart['restarts']} times"
    interval = _interval(restart)
    repeated = f"{restart['repeated_s']:.0f} s of training, {restart['wasted_s']:.0f} {cost['wasted_unit']}"
    return (
        f"Restarting from a checkpoint instead ({interval}), {often}: the job repeats {repeated}, and waits each time "
        "until it has stopped, started and read the checkpoint, which is not measured here"
    )


def _interval(restart: RestartCost) -> str:
    if restart["interval_s"] is None:
        return "one is in the outputs of the run"
    source = {"given": ", as given", "outputs": ", by the outputs of the run"}.get(restart["source"], "")
    return f"every {restart['interval_s']:.0f} s{source}"
