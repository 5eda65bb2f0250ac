"""Packets that may not be split, on a network card of a namespace with a small MTU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[3] / "roles" / "rdma" / "files" / "pings.py"
# The loopback card takes the place of the cards of two nodes.
NETWORK = 'ip link set lo up mtu "$0" && ip address add 10.216.0.1/32 dev lo && exec "$@"'


def lost(card_mtu: int, *nodes: str) -> list[dict[str, object]]:
    """Return the nodes that do not answer packets of 9000 bytes."""
    isolated = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", NETWORK, str(card_mtu)]
    command = [*isolated, sys.executable, str(PROGRAM), "10.216.0.1", "9000", *nodes]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return list(json.loads(ran.stdout))


def test_whole_packets_of_the_common_mtu_are_answered() -> None:
    assert lost(9000, "n2=127.0.0.1=9000", "n3=127.0.0.2=1501") == []


def test_names_nodes_that_a_path_does_not_carry() -> None:
    node = {"peer": "n2", "address": "127.0.0.1", "bytes": 9000, "why": "Message too long"}
    unreached = {"peer": "n3", "address": "192.0.2.1", "bytes": 9000, "why": "Network is unreachable"}

    assert lost(8999, "n2=127.0.0.1=9000", "n3=192.0.2.1=9000", "n4=127.0.0.1=1500") == [node, unreached]
