"""The timers that give up on a silent peer, and so would end a training job while one of its nodes is stunned."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.json_values import JsonObject, mapping

FIRST_RETRY = 0.2
LONGEST_RETRY = 120.0
DOUBLINGS = 9  # from the first pause to the longest, as in the kernel
NEVER = float("inf")
RETRIES = "net.ipv4.tcp_retries2"
_NUMBER = re.compile(r"-?[0-9]{1,15}")


def settings(text: object) -> dict[str, str]:
    """Return the options of ``ssh -G`` and ``sshd -T`` by name."""
    pairs = (line.partition(" ") for line in text.splitlines()) if isinstance(text, str) else ()
    return {name.lower(): value.strip() for name, _space, value in pairs if name}


def retransmission_patience(retries: int) -> float:
    """Return the minimum seconds for which Linux retransmits to a silent peer, from net.ipv4.tcp_retries2."""
    retries = max(0, retries)
    if retries <= DOUBLINGS:
        return float((2 << retries) - 1) * FIRST_RETRY
    return float((2 << DOUBLINGS) - 1) * FIRST_RETRY + (retries - DOUBLINGS) * LONGEST_RETRY


def keepalive_patience(sysctls: Mapping[str, object]) -> float | None:
    """Return the seconds until Linux gives up on a silent idle peer of a program with keepalive; None if unknown."""
    return _until_given_up(sysctls, "net.ipv4.tcp_keepalive_")


def patience(observed: JsonObject) -> dict[str, float]:
    """Return the seconds for which each timer waits for a silent node; infinite for a disabled timer.

    Timers without a known value are left out; ``unknown_timers`` returns them.
    """
    return {name: waits for name, waits in _timers(observed).items() if waits is not None}


def unknown_timers(observed: JsonObject) -> list[str]:
    """Return the timers that are only partly known."""
    return [name for name, waits in _timers(observed).items() if waits is None]


def _timers(observed: JsonObject) -> dict[str, float | None]:
    timers: dict[str, float | None] = {}
    sysctls, mca = (mapping(observed.get(key)) for key in ("sysctls", "mca"))
    if sysctls:
        retries = _whole(sysctls.get(RETRIES))
        timers[RETRIES] = None if retries is None else retransmission_patience(retries)
    for program, alive in (("ssh", "serveralive"), ("sshd", "clientalive")):
        if observed.get(program) is not None:
            options = settings(observed[program])
            timers[f"{program}'s {alive}interval"] = _keepalive_seconds(options, alive)
            if options.get("tcpkeepalive", "yes") == "yes" and sysctls:
                timers[f"{program}'s tcpkeepalive with net.ipv4.tcp_keepalive_*"] = keepalive_patience(sysctls)
    if mca:
        waits = _until_given_up(mca, "oob_tcp_keepalive_")
        is_off = (_whole(mca.get("oob_tcp_keepalive_time")) or 0) <= 0 and "oob_tcp_keepalive_time" in mca
        timers["OpenMPI's oob_tcp_keepalive_*"] = NEVER if is_off else waits
    return timers


def risks(observed: JsonObject, seconds: float) -> list[str]:
    """Return a sentence for each timer that gives up before a stun of ``seconds`` ends."""
    return [
        f"{name} gives up on a silent node after {waits:g} s: a stun may take {seconds:g} s."
        for name, waits in patience(observed).items()
        if waits < seconds
    ]


def _keepalive_seconds(options: Mapping[str, str], alive: str) -> float | None:
    interval, most = _whole(options.get(f"{alive}interval", 0)), _whole(options.get(f"{alive}countmax", 3))
    if interval is None or most is None:
        return None
    # With a count of 0, ssh disconnects after the first interval, and sshd never does.
    if alive == "serveralive":
        most = max(most, 1)
    return float(interval * most) if interval and most else NEVER


def _until_given_up(options: Mapping[str, object], prefix: str) -> float | None:
    """Return the idle time plus the time of all probes; None if one of the three values is unknown."""
    idle, pause, probes = (_whole(options.get(f"{prefix}{name}")) for name in ("time", "intvl", "probes"))
    return None if idle is None or pause is None or probes is None else float(idle + pause * probes)


def _whole(value: object) -> int | None:
    """Return the integer in the output of the kernel or a program; None for anything else."""
    text = str(value).strip()
    return int(text) if not isinstance(value, bool) and _NUMBER.fullmatch(text) else None
