"""The guests of a cluster that are not powered off and whose training jobs are unknown: each counts as busy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ..core.names import printable
from ..errors import CollectionError, Refused
from ..vsphere import counters, custom_fields, inventory, properties
from ..vsphere.escaped_names import plain
from ..vsphere.host_clocks import server_time
from ..vsphere.properties import Properties
from ..vsphere.sdk import vim
from ..vsphere.session import Session
from . import worker_identity
from .worker_power import OFF, ON, RUNNING

PATHS = (*worker_identity.PATHS, "runtime.host")
# A guest is taken for one that boots for this time after it was powered on; worker_vm waits for its address as long.
BOOT_SECONDS = 600.0
LOAD_PATHS = ("summary.quickStats.overallCpuUsage", "runtime.maxCpuUsage")
POWER_PATHS = ("runtime.powerState", "runtime.bootTime", "guest.toolsRunningStatus")
GUEST_PATHS = ("guest.hostName", "guest.ipAddress", "guest.net", *POWER_PATHS, *LOAD_PATHS)
NOT_IN_INVENTORY = "no host in the group workers of the inventory has its name or its address"
OF_OTHER = "it runs on a host of this cluster, but is a worker of cluster {}, whose workers this run does not ask"
REMEDY = (
    "correct the access to these guests or power them off, or, if they do not train, run again with"
    " unreachable_is_idle=true"
)
LONGEST_REASON = 300
UTILISATION, GPU_HOURS, MOST_GPUS = "utilization", 0.1, 8


class Guest(NamedTuple):
    """A guest that is not powered off, with its names and addresses in lower case."""

    name: str
    known_as: frozenset[str]
    is_worker: bool
    # The fraction of its processors that it uses, and that of the busiest GPU of its host; None if unknown.
    load: float | None = None
    gpu_load: float | None = None
    # The other cluster of which it is a worker, although it is on a host of this one.
    of_cluster: str = ""
    # The seconds until it must have booted, and whether its VMware Tools run, which report its names and addresses.
    boots: float = 0.0
    has_tools: bool = True

    @classmethod
    def of(cls, name: str, shown: str, values: Properties, now: datetime) -> Guest:
        """Return the guest of a worker, or without its name of another machine, with the values that vCenter shows."""
        known_as = _known_as([name, shown, *_reported(values)])
        tools = values.get("guest.toolsRunningStatus")
        boots = _boots(values, now)
        return cls(name or shown, known_as, bool(name), _load(values), boots=boots, has_tools=tools == RUNNING)


class Node(NamedTuple):
    """A host of the inventory whose training jobs were queried; ``reason`` is empty if it answered."""

    known_as: frozenset[str]
    reason: str
    is_unreachable: bool = False


class Unread(NamedTuple):
    """A guest whose training jobs are unknown; the loads are the only signs of work that vCenter has.

    ``boots`` has the seconds for which it may still boot, and answer afterwards.
    """

    name: str
    reason: str
    load: float | None = None
    gpu_load: float | None = None
    boots: float = 0.0

    def __str__(self) -> str:
        loads = [] if self.load is None else [f"its processors at {self.load:.0%}"]
        loads += [] if self.gpu_load is None else [f"a GPU of its host at {self.gpu_load:.0%}"]
        return f"{self.name} with {' and '.join(loads)}" if loads else self.name


def nodes_of(answers: Mapping[str, Mapping[str, object]], addresses: Mapping[str, object]) -> list[Node]:
    """Return the nodes from the results of training_info and the addresses, both by name in the inventory."""
    return [
        Node(_known_as([name, addresses.get(name)]), _reason(answer), bool(answer.get("unreachable")))
        for name, answer in answers.items()
    ]


def unread(guests: Iterable[Guest], nodes: Sequence[Node], names: Collection[str]) -> list[Unread]:
    """Return the guests of workers, of nodes and with these names that no node with their name or address answered."""
    found = [one for guest in guests if (one := _unread(guest, nodes, names))]
    return sorted(found, key=lambda guest: guest[:2])


def refusal(cluster: str, guests: Sequence[Unread]) -> str:
    """Return the sentence that names the guests, the reasons and the option; empty without guests."""
    if not guests:
        return ""
    reasons: dict[str, list[str]] = {}
    for guest in guests:
        reasons.setdefault(guest.reason, []).append(str(guest))
    reported = ", ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())
    cause = f"these guests are not powered off, and their training jobs cannot be read: {reported}"
    return str(Refused(cluster, "make sure that no training job is stopped", cause, REMEDY))


def read_guests(session: Session, cluster: str) -> list[Guest]:
    """Return the guests of a cluster that are not powered off: its workers, and those on its hosts.

    A worker on its hosts may have the mark of another cluster, because it was moved here, or this cluster was renamed.
    """
    every = properties.find_all(session, vim.VirtualMachine, PATHS)
    known, now = worker_identity.WorkerIdentities(custom_fields.definitions(session), every), server_time(session)
    hosts = {ref._moId for ref in inventory.find_cluster(session, cluster, ("host",))[1].get("host") or []}
    found, others = {}, {}
    for ref, values in every:
        mark = known.mark_of(ref) or {}
        is_own = bool(mark) and mark.get("cluster") == plain(cluster)
        on_host = getattr(values.get("runtime.host"), "_moId", None) in hosts
        # A suspended guest keeps its processes in memory, so only this state excludes a training job.
        if (is_own or on_host) and values.get("runtime.powerState") != OFF and not values.get("config.template"):
            found[ref._moId] = (ref, str(mark.get("name", "")), str(values["name"]))
            others[ref._moId] = "" if is_own else str(mark.get("cluster", ""))
    read = properties.read_many(session, [ref for ref, *_names in found.values()], GUEST_PATHS)
    gpus = _gpu_loads(session, [values["runtime.host"] for ref, values in every if ref._moId in found])
    places = {ref._moId: getattr(values.get("runtime.host"), "_moId", "") for ref, values in every}
    return [
        Guest.of(worker, shown, read.get(key, {}), now)._replace(gpu_load=gpus.get(places[key]), of_cluster=others[key])
        for key, (_ref, worker, shown) in found.items()
    ]


def _unread(guest: Guest, nodes: Sequence[Node], names: Collection[str]) -> Unread | None:
    its = [node for node in nodes if node.known_as & guest.known_as]
    if any(not node.reason for node in its) or not (its or guest.is_worker or guest.name in names):
        return None
    missing = OF_OTHER.format(guest.of_cluster) if guest.of_cluster else NOT_IN_INVENTORY
    # A guest that boots accepts no login yet, and until its Tools run, no address shows which node it is.
    may_answer = any(node.is_unreachable for node in its) or not guest.has_tools
    boots = guest.boots if may_answer and not guest.of_cluster else 0.0
    return Unread(guest.name, its[0].reason if its else missing, guest.load, guest.gpu_load, boots)


def _reason(answer: Mapping[str, object]) -> str:
    if "jobs" in answer:
        return ""
    words = printable(" ".join(str(answer.get("msg", "")).split()))[:LONGEST_REASON]
    return words.rstrip(".") or "this run did not ask for them"


def _boots(values: Properties, now: datetime) -> float:
    began: datetime | None = values.get("runtime.bootTime")
    if began is None or values.get("runtime.powerState") != ON:
        return 0.0
    # The clock of its host can be ahead of that of vCenter.
    return min(BOOT_SECONDS, max(0.0, BOOT_SECONDS - (now - began).total_seconds()))


def _load(values: Properties) -> float | None:
    """Return the fraction of its processors that a guest uses, from the figures in MHz that vCenter shows."""
    used, most = (values.get(path) for path in LOAD_PATHS)
    return None if used is None or not most else min(float(used) / float(most), 1.0)


def _gpu_loads(session: Session, hosts: Iterable[Any]) -> dict[str, float]:
    """Return the load of the busiest GPU of each host in the last minutes; none if vCenter does not measure it."""
    try:
        counter = counters.catalogue(session, "gpu").counters.get(UTILISATION)
        if counter is None:
            return {}
        sizes = {ref._moId: ref for ref in hosts if ref is not None}
        since = counters.ago(server_time(session), GPU_HOURS)
        instances = dict.fromkeys(sizes.values(), MOST_GPUS)
        found = counters.series(session, instances, {UTILISATION: counter}, counters.REALTIME_SECONDS, since)
    except CollectionError:
        # The guests count as busy without this sign too.
        return {}
    loads: dict[str, float] = {}
    for series in found:
        # The samples are hundredths of a per cent.
        most = max(series.values, default=0) / 10_000
        loads[series.object_id] = max(loads.get(series.object_id, 0.0), most)
    return loads


def _known_as(words: Iterable[object]) -> frozenset[str]:
    return frozenset(str(word).lower() for word in words if word)


def _reported(values: Properties) -> Iterator[Any]:
    """Yield the host name and the addresses that a guest reports."""
    yield values.get("guest.hostName")
    yield values.get("guest.ipAddress")
    for card in values.get("guest.net") or []:
        yield from card.ipAddress or []
