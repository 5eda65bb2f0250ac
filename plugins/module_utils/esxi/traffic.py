# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Traffic counters of a host: what really went over an RDMA device, and what went past it over its uplink.

PVRDMA falls back to TCP in silence, below the guest: only these counters show it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..vsphere.fleet import Host

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def of_rdma_device(host: Host, device: str) -> dict[str, int]:
    """The counters of an RDMA device such as vmrdma0."""
    return _counters(host.esxcli.rows("rdma device stats get", device=device))


def of_uplink(host: Host, uplink: str) -> dict[str, int]:
    """The counters of a network card such as vmnic2; traffic of its RDMA device is not among them."""
    return _counters(host.esxcli.rows("network nic stats get", nicname=uplink))


def _counters(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """What is a number in an answer: PacketsReceived is packets_received."""
    row = rows[0] if rows else {}
    return {_WORDS.sub("_", key).lower(): int(value) for key, value in sorted(row.items()) if str(value).isdigit()}
