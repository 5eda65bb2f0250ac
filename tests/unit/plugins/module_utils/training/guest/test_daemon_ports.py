"""Two jobs on one node use different ports for their daemons."""

from __future__ import annotations

import socket

import pytest

from plugins.module_utils.training.guest.daemon_ports import arguments, blocks, first_free
from plugins.module_utils.training.launch.mpirun import LaunchError

NAME = "oob_tcp_dynamic_ipv4_ports"


def test_each_job_has_sixteen_ports() -> None:
    assert [(block[0], block[-1]) for block in blocks("10000-10040")] == [(10000, 10015), (10016, 10031)]
    assert len(list(blocks("10000-10499"))) == 31


def test_a_second_job_gets_ports_that_are_free() -> None:
    with socket.socket() as first:
        first.bind(("", 0))
        port = first.getsockname()[1]
        first.listen()
        begin = min(port, 65535 - 127)
        words = arguments(f"{begin}-{begin + 127}")
        low, high = map(int, words[2].split("-"))
        assert words[:2] == ["--mca", NAME] and high - low == 15 and not low <= port <= high
        with pytest.raises(
            LaunchError, match=r"other jobs use the ports [\d-]+ for their daemons: wait until one of them ends"
        ):
            arguments(f"{port}-{port + 15}")


@pytest.mark.parametrize("ports", ["10000", "10000-10014", "a-b", "10020-10000", "-"])
def test_refuses_a_malformed_range(ports: str) -> None:
    with pytest.raises(LaunchError, match="specify FIRST-LAST with 16 ports or more"):
        arguments(ports)


def test_finds_a_free_port_or_names_the_range() -> None:
    with socket.socket() as used:
        used.bind(("", 0))
        used.listen()
        port = used.getsockname()[1]
        assert port < first_free(port) < port + 100
    with pytest.raises(LaunchError, match="other processes use the ports 65536-65535"):
        first_free(65536)
