"""Read the clusters of a vCenter for an inventory; a read-only account is sufficient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ...cluster.cluster_info import ClusterReader
from ...core.findings import STOP, FindingRecord, as_dicts, listed, without_object
from ...errors import CollectionError, NotFound
from ...fabric.port_groups import PortGroup
from ...hosts import host_info
from ...hosts.preflight import cluster_findings, host_findings
from ...maintenance import stop_rules
from ...maintenance.cluster_facts import ClusterFacts
from ...vsphere import libraries, properties, rest
from ...vsphere.inventory import HostSet
from ...vsphere.properties import id_of
from ...vsphere.sdk import ApiObject, vim
from ...vsphere.session import Session
from ...workers.library_templates import is_made_of_item
from .discovered import (
    DiscoveredCluster,
    DiscoveredDatastore,
    DiscoveredNetwork,
    DiscoveredSite,
    DiscoveredTemplate,
    Entry,
)

# Groups of esxi_info that need no privilege beyond reading.
GROUPS = ("gpu", "network", "pvrdma", host_info.MANAGEMENT)
_TEMPLATE = ("name", "config.template", "config.guestFullName", "config.firmware")
_DATASTORE = ("name", "summary.type", "summary.accessible", "summary.freeSpace", "summary.capacity", "host")
_GIB = 2**30


def read(session: Session, desired: Collection[str]) -> DiscoveredSite:
    """Return the clusters with these names, or all clusters, and the templates of vCenter."""
    found = properties.find_all(session, vim.ClusterComputeResource, ("name", "host", "network", "datastore"))
    count = Counter(str(values["name"]) for _ref, values in found)
    if missing := sorted(set(desired) - set(count)):
        reason = f"there is none; it has {listed(sorted(count)) or 'no cluster'}"
        raise NotFound(session.server, f"find a cluster named {listed(missing)}", reason, "correct the names")
    chosen = [
        values for _ref, values in found if count[values["name"]] == 1 and (values["name"] in desired or not desired)
    ]
    return DiscoveredSite(
        server=session.server,
        version=session.content.about.version,
        uuid=session.uuid,
        clusters=[_cluster(session, values) for values in sorted(chosen, key=lambda values: str(values["name"]))],
        templates=[*_templates(session), *_library_templates(session)],
        ambiguous=sorted(name for name, number in count.items() if number > 1 and (name in desired or not desired)),
    )


def _cluster(session: Session, values: properties.Values) -> DiscoveredCluster:
    reader = ClusterReader(session, values["name"])
    facts = reader.read(("vms",))
    hosts = host_info.gather(HostSet(session, reader.hosts, host_info.paths(GROUPS)), GROUPS)
    return DiscoveredCluster(
        facts=facts,
        hosts=hosts,
        networks=_networks(session, values.get("network") or []),
        datastores=_datastores(session, values.get("datastore") or [], values.get("host") or []),
        stops=_stops(facts, hosts),
    )


def _networks(session: Session, refs: Sequence[ApiObject]) -> list[DiscoveredNetwork]:
    """Return the port groups for adapters of virtual machines, without those for uplinks."""
    distributed = [ref for ref in refs if isinstance(ref, vim.dvs.DistributedVirtualPortgroup)]
    # pylint: disable-next=unidiomatic-typecheck # port groups are networks too
    standard = [ref for ref in refs if type(ref) is vim.Network]
    groups = [
        PortGroup(values["name"], values["key"], None, values["config"])
        for values in _many(session, distributed, ("name", "key", "config"))
    ]
    named = [DiscoveredNetwork(values["name"]) for values in _many(session, standard, ("name",))]
    named += [DiscoveredNetwork(group.name, True, group.vlan) for group in groups if not group.carries_uplinks]
    return sorted(named, key=lambda network: network.name)


def _datastores(session: Session, refs: Sequence[ApiObject], hosts: Sequence[ApiObject]) -> list[DiscoveredDatastore]:
    """Return the datastores that vCenter can reach: those of most hosts first, then those with most free space."""
    members = {id_of(host) for host in hosts}
    found = [
        DiscoveredDatastore(
            name=values["name"],
            kind=values.get("summary.type") or "",
            free_gb=int(values.get("summary.freeSpace") or 0) // _GIB,
            capacity_gb=int(values.get("summary.capacity") or 0) // _GIB,
            hosts=sum(1 for mount in values.get("host") or [] if id_of(mount.key) in members),
        )
        for values in _many(session, refs, _DATASTORE)
        if values.get("summary.accessible")
    ]
    return sorted(found, key=lambda store: (-store.hosts, -store.free_gb, store.name))


def _templates(session: Session) -> list[DiscoveredTemplate]:
    found = properties.find_all(session, vim.VirtualMachine, _TEMPLATE)
    templates = [
        values for _ref, values in found if values.get("config.template") and not is_made_of_item(values["name"])
    ]
    named = [
        DiscoveredTemplate(
            values["name"], str(values.get("config.guestFullName") or ""), str(values.get("config.firmware") or "")
        )
        for values in templates
    ]
    return sorted(named, key=lambda template: template.name)


def _library_templates(session: Session) -> list[DiscoveredTemplate]:
    """Return the items of content libraries; none if the REST API, which nothing else here needs, does not answer."""
    try:
        with rest.opened(session) as api:
            found = libraries.names(api)
    except CollectionError:
        return []
    return [DiscoveredTemplate(item, library=library) for library, items in found for item in items]


def _many(session: Session, refs: Sequence[ApiObject], paths: Sequence[str]) -> Iterable[Mapping[str, Any]]:
    return properties.read_many(session, refs, paths).values()


def _stops(facts: ClusterFacts, hosts: Sequence[Entry]) -> list[str]:
    """Return the findings of preflight that stop every change of these hosts, each once with its objects."""
    expected = host_findings.ExpectedHost({"vibs": []})  # any profile: other owners of the settings would undo it
    # Other users of RDMA cards matter only to a profile with roce.
    judged = [{"rdma_users": [], **host} for host in hosts]
    found = [finding for host in judged for finding in host_findings.findings(host, expected)]
    found += cluster_findings.findings(cluster_findings.CheckedCluster(facts))
    records = [*as_dicts(found), *stop_rules.stops(facts, stop_rules.LeavingHosts((), 1))]
    objects: dict[str, list[str]] = {}
    for record in records:
        if record["severity"] == STOP and not _is_repeated(record, records):
            objects.setdefault(without_object(record["object"], record["text"]), []).append(record["object"])
    return [f"{listed(names)}: {text}" for text, names in objects.items()]


def _is_repeated(record: FindingRecord, records: Sequence[FindingRecord]) -> bool:
    """Return whether another finding already states that the host is disconnected."""
    lost = {other["object"] for other in records if other["rule"] == "disconnected"}
    return record["rule"] == "out_of_service" and record["object"] in lost
