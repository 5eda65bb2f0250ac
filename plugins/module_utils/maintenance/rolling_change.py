"""The plan of a cluster as lines to show, the hosts that need work, in order, and the sentences about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypedDict

from ..errors import Refused

OUT_OF_SERVICE = {"maintenance", "reboot", "power_off"}
# The stop rule for a host that another user took out of service.
OTHERS_OUT = "out_of_service"


class _Planned(TypedDict):
    host: str


class HostPlan(_Planned, total=False):
    """The planned change of one host. A host that failed has only ``failed`` and ``msg``."""

    changed: bool
    needs: list[str]
    reboots: int
    why: list[str]
    failed: bool
    msg: str
    out_of_service: bool
    in_maintenance: bool
    state: Mapping[str, object]
    # This file adds these: another user took the host out, the user takes it over, or it only has to return.
    taken_out: bool
    taken_over: bool
    left_out: bool


class HostWork(TypedDict):
    """A host to change, how often it reboots, and whether it leaves service for that."""

    host: str
    reboots: int
    leaves_service: bool


Hosts = Iterable[HostPlan]


def lines(hosts: Hosts, left: Hosts = ()) -> list[str]:
    """Return the needs, reboots and reasons of the hosts; hosts with the same plan share their lines."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for host in _with_left(hosts, left):
        shared.setdefault(_needs(host), []).append(host["host"])
    return [line for needs, names in shared.items() for line in (f"{', '.join(names)}: {needs[0]}", *needs[1:])]


def _with_left(hosts: Hosts, left: Hosts) -> list[HostPlan]:
    """Return the plans; hosts that an earlier run left in maintenance mode also need to return to service."""
    left = list(left)
    waiting, taken = {host["host"] for host in left if host.get("changed")}, _taken_out(left)
    ours = {host["host"] for host in left if not host.get("taken_over")}
    marked = [_to_return(host, host["host"] in ours) if host["host"] in waiting else host.copy() for host in hosts]
    return [{**host, "taken_out": True} if host["host"] in taken else host for host in marked]


def taken_over(left: Hosts, names: Collection[str]) -> list[HostPlan]:
    """Return the hosts out of service; those with these names count as left by an earlier run."""
    taken = _taken_out(left) & set(names)
    return [{**host, "changed": True, "taken_over": True} if host["host"] in taken else host.copy() for host in left]


def _taken_out(left: Hosts) -> set[str]:
    """Return the hosts that others put into maintenance mode: no return to service is planned for them."""
    return {
        host["host"]
        for host in left
        if not host.get("failed") and not host.get("changed") and (host.get("state") or {}).get("maintenance")
    }


def refusals(hosts: Hosts, left: Hosts = (), accepted: Sequence[str] = ()) -> list[str]:
    """Return an error for each host with changes that another user put into maintenance mode, unless accepted."""
    taken = [host["host"] for host in _with_left(hosts, left) if host.get("taken_out") and _has_work(host)]
    stopping = [name for name in taken if not {OTHERS_OUT, f"{OTHERS_OUT}:{name}"} & set(accepted)]
    cause = "another user put it into maintenance mode, so it is neither changed nor rebooted"
    accepting = f"{OTHERS_OUT} in esxi_host_accepted_stops, and a max_out_of_service that includes it"
    remedy = f"return it to service, name it in esxi_host_take_over, or run without it: {accepting}"
    return [str(Refused(name, "change host profile", cause, remedy)) for name in stopping]


def _to_return(host: HostPlan, is_ours: bool) -> HostPlan:
    # A run that was killed before the entry or after the return, or a person who returned it, leaves the note.
    if is_ours and host.get("in_maintenance") is False:
        why = "an earlier run of this collection left its note on it"
        return {**host, "why": [*host.get("why", []), why], "left_out": True}
    why = "an earlier run of this collection left it in maintenance mode"
    if not is_ours:
        why = "another user put it into maintenance mode, and esxi_host_take_over names it"
    needs, reasons = [*host.get("needs", []), "maintenance"], [*host.get("why", []), why]
    return {**host, "needs": needs, "why": reasons, "left_out": True}


def _needs(host: HostPlan) -> tuple[str, ...]:
    if host.get("failed"):
        message, prefix = str(host["msg"]), f"{host['host']}: "
        # Spelled out because workers may run Python 3.8, which has no removeprefix.
        return (message[len(prefix) :] if message.startswith(prefix) else message,)
    if not _has_work(host):
        return ("in force, nothing to do",)
    if host.get("taken_out"):
        return ("differs, but another user put it into maintenance mode: neither changed nor rebooted",)
    boots = host.get("reboots", 0)
    booting = "no reboot" if not boots else "1 reboot" if boots == 1 else f"{boots} reboots"
    where = "out of service" if leaves_service(host) else "in service"
    return (f"changes {where}, {booting}", *(f"    because {reason}" for reason in host.get("why") or []))


def to_do(hosts: Hosts, canary: str = "", go_on: bool = False, left: Hosts = ()) -> list[HostWork]:
    """Return the hosts that need work, those already out of service first; only the canary until ``go_on``.

    A host that is already out of service counts against the limit, so no other host could leave before it returns. A
    host that another user put into maintenance mode is omitted.
    """
    planned = _with_left(hosts, left)
    work: list[HostWork] = [
        {"host": host["host"], "reboots": host.get("reboots", 0), "leaves_service": leaves_service(host)}
        for host in sorted(planned, key=lambda host: (not host.get("left_out"), host["host"] != canary))
        if _has_work(host) and not host.get("taken_out")
    ]
    if canary and not go_on:
        return [entry for entry in work if entry["host"] == canary]
    return work


def unknown_hosts(hosts: Iterable[str], canary: str, profiles: Iterable[str] = ()) -> list[str]:
    """Return a sentence for the canary, and for each host with a profile, that is not among the hosts of a run."""
    known = sorted(set(hosts))
    its_hosts = f"the hosts of this run are {', '.join(known) or 'none'}"
    unknown = sorted(set(profiles) - set(known))
    errors = [f"esxi_host_profiles has a profile for {name}: {its_hosts}" for name in unknown]
    return [*([f"there is no canary {canary}: {its_hosts}"] if canary and canary not in known else []), *errors]


def not_in_force(hosts: Hosts) -> list[str]:
    """Return a sentence for each changed host that does not have its desired state."""
    return [
        f"{host['host']}: could not activate its profile: it was changed and booted as planned, yet "
        f"{'; '.join(host.get('why') or ()) or 'it differs'}; check the host's log and run again"
        for host in hosts
        if _has_work(host)
    ]


def not_in_force_in_service(hosts: Hosts) -> list[str]:
    """Return an error for each host that was changed in service, and that must leave service after all.

    A host may need a boot for a device although it reports that it rebinds devices without one.
    """
    remedy = "run again, which takes it out of service for that"
    tried = "activate its profile in service"
    return [
        str(Refused(host["host"], tried, "; ".join(host.get("why") or ("it differs",)), remedy))
        for host in hosts
        if leaves_service(host)
    ]


def leaves_service(host: HostPlan) -> bool:
    """Return whether the needs of a host require its evacuation."""
    return bool(OUT_OF_SERVICE & set(host.get("needs", [])))


def noted(hosts: Hosts, left: Hosts) -> list[str]:
    """Return the hosts in service that carry the note of an earlier run."""
    return [host["host"] for host in _with_left(hosts, left) if host.get("left_out") and not host.get("in_maintenance")]


def _has_work(host: HostPlan) -> bool:
    return bool(host.get("changed") or host.get("needs") or host.get("left_out"))
