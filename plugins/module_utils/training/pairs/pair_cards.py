"""Expected bandwidth by network card: the payload at its link rate, and the cards to which that applies.

Link rates: https://docs.nvidia.com/networking/display/mlnxenv24100700/introduction, for ConnectX-7
https://docs.nvidia.com/networking/display/MLNXOFEDv561033/Release+Notes. Identifiers: the drivers mlx5_core, vmxnet3,
vmw_pvrdma and virtio_net of Linux. The payload follows from standards: Ethernet adds 38 bytes to a packet (IEEE 802.3:
preamble, header, checksum, gap), IPv4 20 (RFC 791), TCP 32 with timestamps (RFC 9293, RFC 7323), UDP 8 (RFC 768), and
RoCE v2 16 (InfiniBand architecture, volume 1: BTH and ICRC).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FRAME, IPV4, TCP, UDP, TRANSPORT = 38, 20, 32, 8, 16
RDMA_MTUS, RDMA_HEADER = (4096, 2048, 1024, 512, 256), 88
# One MPI connection uses one processor: no source establishes its rate on faster links.
MOST_OF_TCP = 25.0


@dataclass(frozen=True)
class Card:
    """A kind of card; the nominal rate of a virtual card limits nothing."""

    name: str
    rates: tuple[int, ...]
    is_virtual: bool = False


CARDS: Mapping[str, Card] = {
    "15b3:1013": Card("ConnectX-4", (10, 25, 40, 50, 56, 100)),
    "15b3:1014": Card("ConnectX-4 VF", (10, 25, 40, 50, 56, 100)),
    "15b3:1015": Card("ConnectX-4 Lx", (10, 25, 40, 50)),
    "15b3:1016": Card("ConnectX-4 Lx VF", (10, 25, 40, 50)),
    "15b3:1017": Card("ConnectX-5", (10, 25, 40, 50, 100)),
    "15b3:1018": Card("ConnectX-5 VF", (10, 25, 40, 50, 100)),
    "15b3:1019": Card("ConnectX-5 Ex", (10, 25, 40, 50, 100)),
    "15b3:101a": Card("ConnectX-5 Ex VF", (10, 25, 40, 50, 100)),
    "15b3:101b": Card("ConnectX-6", (10, 25, 40, 50, 100, 200)),
    "15b3:101c": Card("ConnectX-6 VF", (10, 25, 40, 50, 100, 200)),
    "15b3:101d": Card("ConnectX-6 Dx", (10, 25, 40, 50, 100, 200)),
    "15b3:101e": Card("mlx5 VF", (10, 25, 40, 50, 100, 200)),
    "15b3:101f": Card("ConnectX-6 Lx", (10, 25, 40, 50)),
    "15b3:1021": Card("ConnectX-7", (10, 25, 40, 50, 100, 200, 400)),
    "15ad:07b0": Card("VMXNET3", (), True),
    "15ad:0820": Card("PVRDMA", (), True),
    "1af4:1000": Card("virtio", (), True),
    "1af4:1041": Card("virtio", (), True),
}


@dataclass(frozen=True)
class Expected:
    """The payload in Gbit/s that a link can carry; None if it is not established, with the reason."""

    gbits: float | None
    source: str


def name(device: Mapping[str, Any]) -> str:
    """Return the name of a card, or its identifier."""
    card = CARDS.get(str(device.get("id") or ""))
    return card.name if card else str(device.get("id") or "unknown card")


def expected(device: Mapping[str, Any]) -> Expected:
    """Return the expectation for a device with ``id``, ``gbits``, ``mtu`` and ``rdma``."""
    is_rdma = bool(device.get("rdma"))
    card, rate = CARDS.get(str(device.get("id") or "")), float(device.get("gbits") or 0)
    if card is None or card.is_virtual:
        return Expected(None, f"not established for {name(device)}")
    if round(rate) not in card.rates:
        return Expected(None, f"not established for {name(device)} at {rate:g} Gbit/s")
    if not is_rdma and rate > MOST_OF_TCP:
        return Expected(None, f"not established for one TCP connection at {rate:g} Gbit/s")
    share = payload_share(int(device.get("mtu") or 0) or 1500, is_rdma)
    return Expected(
        rate * share, f"{rate:g} Gbit/s less the headers of IEEE 802.3 and {'RoCE v2' if is_rdma else 'TCP'}"
    )


def payload_share(mtu: int, is_rdma: bool) -> float:
    """Return the share of the link rate that carries data, in frames as large as the MTU allows."""
    if not is_rdma:
        return (mtu - IPV4 - TCP) / (mtu + FRAME)
    data = next((size for size in RDMA_MTUS if size + RDMA_HEADER <= mtu), RDMA_MTUS[-1])
    return data / (data + FRAME + IPV4 + UDP + TRANSPORT)
