"""The inventory of a vCenter: the current state of its hosts, and the decisions that only the user can make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...core.findings import listed
from . import cluster_items
from .discovered import DiscoveredCluster, DiscoveredSite, DiscoveredTemplate
from .inventory_text import DECIDE, Expression, Item, comments, lines_of

# Names that Ansible takes as a pattern, a range, a port or a template.
_NO_HOST_NAME = re.compile(r"[\[\]{}:,!&*?~\"'\\]|^\s|\s$|^[-@.]|^\d+$")
_CONNECTION = (
    "The connection comes from the environment: VMWARE_HOST, VMWARE_USER, VMWARE_PASSWORD, and VMWARE_CA_PATH or "
    "VMWARE_TLS_FINGERPRINT. This file contains no password. To store one in an inventory, encrypt it: ansible-vault "
    "encrypt_string --stdin-name vsphere_password"
)
_HOW = (
    "Lines without # describe the hosts as they are: a run with them changes nothing. A line "
    f'"{DECIDE.strip()}" is a decision that only you can make. The lines below it are a proposal: remove the signs and '
    "correct the values. The playbooks change only the objects of the cluster that this file describes."
)


def text_of(site: DiscoveredSite) -> str:
    clusters = _chosen(site)
    lines = ["---", *comments(_head(site), 0), "clusters:", *lines_of(_common(site), 1), "  hosts:"]
    for cluster in clusters:
        lines += [*_cluster_lines(cluster, site), ""]
    lines += comments(_left_out(site, clusters), 2)
    return "\n".join(lines).rstrip() + "\n"


def decisions_of(site: DiscoveredSite) -> list[str]:
    """Return the decisions that the inventory leaves to the user, each with its cluster."""
    decisions = [f"{name}: {_twice(name)}" for name in site.ambiguous]
    for cluster in _chosen(site):
        items = cluster_items.items_of(cluster, site.templates) if is_host_name(cluster.name) else []
        texts = [text for item in items for text in item.decisions] if items else [_renamed(cluster.name)]
        decisions += [f"{cluster.name}: {text}" for text in texts]
    return decisions


def is_host_name(name: str) -> bool:
    return (
        not _NO_HOST_NAME.search(name) and name.isprintable() and name.lower() not in {"all", "ungrouped", "localhost"}
    )


def _chosen(site: DiscoveredSite) -> Sequence[DiscoveredCluster]:
    """Return the clusters with GPUs; all if none has one."""
    return [cluster for cluster in site.clusters if cluster.gpu_hosts] or site.clusters


def _head(site: DiscoveredSite) -> Iterator[str]:
    yield f"Inventory of {site.server} (vCenter {site.version}), from dml.vsphere.discover, which only reads."
    yield ""
    yield _HOW
    yield ""
    yield _CONNECTION
    yield ""
    yield "Templates: " + (listed(map(_template, site.templates), 20) or "none")


def _template(template: DiscoveredTemplate) -> str:
    library = f"in the content library {template.library}" if template.library else ""
    details = [detail for detail in (template.guest, template.firmware, library) if detail]
    return f"{template.name} ({', '.join(details)})" if details else template.name


def _common(site: DiscoveredSite) -> list[Item]:
    """Return the variables of all clusters: modules run on the controller, and connect to this vCenter only."""
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": Expression("{{ ansible_playbook_python }}"),
        **({"vcenter_uuid": site.uuid} if site.uuid else {}),
    }
    return [Item("vars", variables)]


def _cluster_lines(cluster: DiscoveredCluster, site: DiscoveredSite) -> list[str]:
    if not is_host_name(cluster.name):
        return comments([f"{DECIDE}{_renamed(cluster.name)}"], 2)
    return lines_of([Item(cluster.name, children=tuple(cluster_items.items_of(cluster, site.templates)))], 2)


def _left_out(site: DiscoveredSite, chosen: Sequence[DiscoveredCluster]) -> Iterator[str]:
    rest = [cluster.name for cluster in site.clusters if cluster not in chosen]
    if rest:
        yield f"Clusters without an NVIDIA GPU, which are left out: {listed(rest, 50)}"
    for name in site.ambiguous:
        yield f"{DECIDE}{name}: {_twice(name)}"


def _twice(name: str) -> str:
    return f"several clusters have the name {name}, and the playbooks find a cluster by its name; rename all but one"


def _renamed(name: str) -> str:
    return f"Ansible reads the name {name} as a pattern or a port; rename the cluster in vCenter and run discover again"
