"""Ports for the daemons of a job: mpirun listens on every port of its range, so each job gets a small range."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from ..launch.mpirun import LaunchError

PORTS_OF_A_JOB, PORTS_TRIED = 16, 100


def arguments(ports: str) -> list[str]:
    """Return the arguments of mpirun with ports that no other job uses on this node; empty without a range."""
    if not ports:
        return []
    for block in blocks(ports):
        if all(map(_is_free, block)):
            return ["--mca", "oob_tcp_dynamic_ipv4_ports", f"{block[0]}-{block[-1]}"]
    raise LaunchError(
        f"other jobs use the ports {ports} for their daemons: wait until one of them ends, or specify more ports"
    )


def first_free(first: int) -> int:
    """Return the first port, starting with this one, that no process on this node uses."""
    last = min(first + PORTS_TRIED, 65536)
    for port in range(first, last):
        if _is_free(port):
            return port
    raise LaunchError(f"other processes use the ports {first}-{last - 1}")


def blocks(ports: str) -> Iterator[range]:
    """Yield the ports of each job in a range such as 10000-10499."""
    first, _dash, last = ports.partition("-")
    if not (first.isdigit() and last.isdigit() and int(last) - int(first) >= PORTS_OF_A_JOB - 1):
        raise LaunchError(f"daemon_ports is {ports!r}: specify FIRST-LAST with {PORTS_OF_A_JOB} ports or more")
    for begin in range(int(first), int(last) - PORTS_OF_A_JOB + 2, PORTS_OF_A_JOB):
        yield range(begin, begin + PORTS_OF_A_JOB)


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
