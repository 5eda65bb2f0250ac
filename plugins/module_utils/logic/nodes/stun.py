# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The timers that would end a training job while one of its nodes is stunned, because they give up a silent peer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIRST_RETRY = 0.2
LONGEST_RETRY = 120.0
DOUBLINGS = 9  # from the first pause until the longest is reached, as the kernel counts
NEVER = float("inf")


def settings(text: str) -> dict[str, str]:
    """The options of ``ssh -G`` and ``sshd -T`` by name."""
    pairs = (line.partition(" ") for line in text.splitlines())
    return {name.lower(): value.strip() for name, _space, value in pairs if name}


def retransmission_patience(retries: int) -> float:
    """The least number of seconds for which Linux sends data again to a silent peer, by net.ipv4.tcp_retries2."""
    if retries <= DOUBLINGS:
        return float((2 << retries) - 1) * FIRST_RETRY
    return float((2 << DOUBLINGS) - 1) * FIRST_RETRY + (retries - DOUBLINGS) * LONGEST_RETRY


def keepalive_patience(sysctls: Mapping[str, Any]) -> float:
    """Seconds after which Linux gives up a silent and idle peer of a program that asked for keepalive."""
    idle, pause, probes = (int(sysctls[f"net.ipv4.tcp_keepalive_{name}"]) for name in ("time", "intvl", "probes"))
    return float(idle + pause * probes)


def patience(observed: Mapping[str, Any]) -> dict[str, float]:
    """Seconds for which each timer waits for a silent node; a timer that is switched off waits for ever."""
    found: dict[str, float] = {}
    sysctls = observed.get("sysctls") or {}
    if "net.ipv4.tcp_retries2" in sysctls:
        found["net.ipv4.tcp_retries2"] = retransmission_patience(int(sysctls["net.ipv4.tcp_retries2"]))
    for program, alive in (("ssh", "serveralive"), ("sshd", "clientalive")):
        if program in observed:
            told = settings(observed[program])
            found[f"{program}'s {alive}interval"] = _product(told, alive)
            if told.get("tcpkeepalive", "yes") == "yes" and sysctls:
                found[f"{program}'s tcpkeepalive with net.ipv4.tcp_keepalive_*"] = keepalive_patience(sysctls)
    if observed.get("mca"):
        found["OpenMPI's oob_tcp_keepalive_*"] = _mpi(observed["mca"])
    return found


def risks(observed: Mapping[str, Any], seconds: float) -> list[str]:
    """A sentence for each timer that gives up before a stun of so many seconds has ended."""
    return [
        f"{name} gives a silent node up after {waits:g} s: a stun may take {seconds:g} s."
        for name, waits in patience(observed).items()
        if waits < seconds
    ]


def _product(told: Mapping[str, str], alive: str) -> float:
    interval, most = int(told.get(f"{alive}interval", 0)), int(told.get(f"{alive}countmax", 3))
    # Of a server, a count of 0 means that nobody is ever cut off.
    return float(interval * most) if interval and (most or alive == "serveralive") else NEVER


def _mpi(mca: Mapping[str, Any]) -> float:
    idle, pause, probes = (int(mca[f"oob_tcp_keepalive_{name}"]) for name in ("time", "intvl", "probes"))
    return float(idle + pause * probes) if idle > 0 else NEVER
