# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The utilisation of the hosts' GPUs over a period, if vCenter has counters for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..hosts import pci_devices
from ..maintenance.lock.lock_rules import stamp
from ..vsphere import counters
from ..vsphere.inventory import Host
from ..vsphere.session import Session
from . import gpu_load
from .gpu_load import MEMORY, UTILISATION, Samples

GROUP = "gpu"


@dataclass(frozen=True)
class MeasuredLoad:
    """The measured samples by host id and PCI address, and their period."""

    period: Mapping[str, Any]
    cards: Mapping[str, Mapping[str, Mapping[str, Samples]]] = field(default_factory=dict)

    def utilisation(self, host: Host, address: str) -> dict[str, Any] | None:
        """Return the utilisation of a card; None if it was not measured."""
        found = self.cards.get(host.ref._moId, {}).get(address, {})
        return gpu_load.summary(found, int(self.period["sample_seconds"]))


def read(session: Session, hosts: Sequence[Host], hours: float, now: datetime) -> MeasuredLoad:
    """Return the samples of all hosts that vCenter reaches, in few calls."""
    known = counters.catalogue(session, GROUP)
    desired = {name: known.counters[name] for name in (UTILISATION, MEMORY) if name in known.counters}
    if UTILISATION not in desired:
        why = "this vCenter has no counter gpu.utilization"
        return MeasuredLoad(_period(hours, hours, counters.REALTIME_SECONDS, now, why))
    seconds, covered, why = counters.choose(known, desired[UTILISATION], hours)
    sizes = {host.ref: len(pci_devices.gpus(host)) for host in hosts if host.reachable}
    found = counters.series(session, sizes, desired, seconds, counters.ago(now, covered))
    cards, strangers = dict[str, Mapping[str, Mapping[str, Samples]]](), list[str]()
    for host in hosts:
        mine = [Samples(one.counter, one.instance, one.values) for one in found if one.object_id == host.ref._moId]
        cards[host.ref._moId], others = gpu_load.by_card(list(pci_devices.gpus(host)), mine)
        strangers += [f"{host.name}: {one}" for one in others]
    return MeasuredLoad({**_period(hours, covered, seconds, now, why), "unknown_instances": strangers}, cards)


def _period(requested: float, hours: float, seconds: int, now: datetime, why: str) -> dict[str, Any]:
    return {
        "asked_hours": requested,
        "hours": hours,
        "since": stamp(counters.ago(now, hours)),
        "until": stamp(now),
        "sample_seconds": seconds,
        "why": why,
        "unknown_instances": [],
    }
