# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The reasons why a worker has no host, by host, as text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, Tuple

from .host_room import REQUIRE, Demand, HostResources, offered
from .matching import Candidate

LONGEST = 8
# A reason, with a placeholder for the workers that it concerns.
GAP = "{}"
Reason = Tuple[str, Tuple[str, ...]]


class RequestedRules(Protocol):
    """The rules for all workers."""

    @property
    def apart(self) -> bool: ...

    @property
    def same_node(self) -> str: ...


def why_not(
    worker: Candidate, hosts: Sequence[HostResources], here: Mapping[str, Sequence[str]], rules: RequestedRules
) -> str:
    """Return one sentence with a reason for each host; ``here`` are the workers of this call on each host."""
    unknown = [
        profile for profile in dict.fromkeys(worker.demand.vgpus) if not any(profile in h.slots.offered for h in hosts)
    ]
    if unknown:
        every = dict.fromkeys(name for host in hosts for name in host.slots.offered)
        near = dict.fromkeys(name for profile in unknown for name in difflib.get_close_matches(profile, every))
        meant = f", did you mean {' or '.join(near)}" if near else ""
        return f"no host offers {' or '.join(unknown)}{meant}; {offers(hosts)}"
    allowed = [host for host in hosts if worker.hosts is None or host.name in worker.hosts]
    if not allowed:
        return f"none of the hosts that it may run on ({_list(sorted(worker.hosts or ()))}) is in the cluster"
    by_reason: dict[str, tuple[list[str], list[str]]] = {}
    for host in allowed:
        reason, who = _reason(worker.demand, host, here.get(host.name, ()), rules)
        names, whom = by_reason.setdefault(reason, ([], []))
        names.append(host.name)
        whom.extend(who)
    return "; ".join(
        f"{_list(names)}: {reason.replace(GAP, _list(whom))}" for reason, (names, whom) in by_reason.items()
    )


def offers(hosts: Sequence[HostResources]) -> str:
    """Return the profiles that each host offers, as text."""
    texts = [f"{_list(names)} offer{_s(names)} {_list(what) or 'none'}" for what, names in offered(hosts).items()]
    return "; ".join(texts)


def _reason(demand: Demand, host: HostResources, here: Sequence[str], rules: RequestedRules) -> Reason:
    if not host.in_service:
        return "out of service", ()
    if rules.apart and (host.workers or here):
        return "taken, and workers are kept apart ({})", (*host.workers, *here)
    groups = [group for group in demand.groups if group not in host.groups]
    if groups:
        return f"no device group {_list(groups)} (offered: {_list(host.groups) or 'none'})", ()
    missing = [profile for profile in demand.vgpus if not host.slots.total(profile)]
    if missing:
        return f"no {_list(dict.fromkeys(missing))} (offered: {_list(host.slots.offered) or 'none'})", ()
    if host.slots.take_all(demand.vgpus) is None:
        return f"no free place for {_list(demand.vgpus)} ({GAP})", _held(host, here)
    return _other_reason(demand, host, here, rules)


def _other_reason(demand: Demand, host: HostResources, here: Sequence[str], rules: RequestedRules) -> Reason:
    if host.free_mb < demand.memory_mb:
        return f"{host.free_mb} MB of memory left, but {demand.memory_mb} MB are to be reserved", ()
    if host.threads < demand.cpus:
        return f"{host.threads} logical CPUs, but {demand.cpus} are requested", ()
    for desired in dict.fromkeys(demand.devices):
        answering = [device for device in host.devices if desired.matches(device)]
        holders = [f"{device.holder} has {device.address}" for device in answering if device.holder]
        if len(answering) - len(holders) < demand.devices.count(desired):
            held = (*holders, *(f"{name} is placed here" for name in here))
            kind = "devices of class" if desired.device_class else "PCI devices"
            return f"not enough free {kind} {desired}" + (" ({})" if held else ""), held
    if rules.same_node == REQUIRE and not host.near(demand):
        return "GPU and RDMA NIC are not on one NUMA node", ()
    return "no room for it next to the others ({})", _held(host, here)


def _held(host: HostResources, here: Sequence[str]) -> tuple[str, ...]:
    """Return the virtual machines that use the GPUs of a host, as text."""
    texts = [f"{name} has {profile}" for name, profile in host.holders] + [f"{name} is placed here" for name in here]
    return tuple(texts) or ("its GPUs are too small or have vGPUs of another size",)


def _list(names: Iterable[str]) -> str:
    """Return the first names and the number of further names, as text."""
    every = list(names)
    more = len(every) - LONGEST
    return ", ".join(every[:LONGEST]) + (f" and {more} more" if more > 0 else "")


def _s(names: Sequence[str]) -> str:
    return "s" if len(names) == 1 else ""
