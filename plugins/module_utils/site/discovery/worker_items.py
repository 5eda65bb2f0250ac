# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The workers of a cluster as proposals for an inventory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...workers.placement.gpu_slots import parse
from . import network_items
from .discovered import DiscoveredCluster, DiscoveredTemplate
from .inventory_text import Expression, Item

_EXAMPLE = "192.0.2"  # a range for examples
_MOST = 64
# The playbooks reach the workers over SSH.
_SSH_KEY = Expression("{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}")


def items_of(cluster: DiscoveredCluster, templates: Sequence[DiscoveredTemplate], *, shared: bool) -> Iterator[Item]:
    """Yield a proposal with one worker for each host with GPUs; ``shared`` selects vGPUs instead of whole GPUs."""
    if not cluster.gpu_hosts:
        return
    text = (
        "the template, size, GPUs, networks and SSH key of the workers. The template needs open-vm-tools and "
        "cloud-init, and the management network needs an address for each worker"
    )
    yield Item("worker_defaults", _defaults(cluster, templates, shared=shared), decide=text)
    text = "the names and addresses of the workers. The addresses below are from a range for examples"
    yield Item("worker_vms", [_worker(cluster, number) for number in range(1, _count(cluster) + 1)], decide=text)


def _defaults(cluster: DiscoveredCluster, templates: Sequence[DiscoveredTemplate], *, shared: bool) -> dict[str, Any]:
    template = templates[0] if templates else None
    firmware = {"firmware": template.firmware} if template and template.firmware else {}
    rdma = {"portgroup": network_items.machine_network(cluster), "protocol": "rocev2"}
    store = next((one.name for one in cluster.datastores if one.hosts == len(cluster.hosts)), "")
    return {
        "template": _named(template),
        **firmware,
        **({"datastore": store} if store else {}),
        "cpus": 8,
        "memory_mb": 32768,
        "gpus": [{"profile": _profile(cluster)} if shared else {"device": _device(cluster)}],
        **({"rdma_nics": [rdma]} if network_items.has_rdma(cluster) else {}),
        "management_nic": {"portgroup": _management(cluster)},
        "guest": {"gateway": f"{_EXAMPLE}.1", "user": "ubuntu", "ssh_keys": [_SSH_KEY]},
    }


def _named(template: DiscoveredTemplate | None) -> str | dict[str, str]:
    """Return the option for a template."""
    if template is None:
        return "TEMPLATE"
    return {"library": template.library, "item": template.name} if template.library else template.name


def _worker(cluster: DiscoveredCluster, number: int) -> dict[str, Any]:
    rdma = {"rdma_addresses": [f"198.51.100.{number + 128}/24"]} if network_items.has_rdma(cluster) else {}
    return {"name": f"worker{number:02}", "guest": {"address": f"{_EXAMPLE}.{number + 10}/24", **rdma}}


def _count(cluster: DiscoveredCluster) -> int:
    """Return the number of workers: with vGPUs, one host stays free, so that workers can migrate."""
    return min(max(len(cluster.gpu_hosts) - 1, 1), _MOST)


def _profile(cluster: DiscoveredCluster) -> str:
    """Return the largest profile for compute that all hosts offer; a placeholder if they offer none yet."""
    offers = [set(host["graphics"]["profiles"]) for host in cluster.gpu_hosts]
    common = [profile for name in set.intersection(*offers) if (profile := parse(name)) and name.endswith("c")]
    largest = max(common, key=lambda profile: (not profile.slices, profile.gigabytes, profile.name), default=None)
    return largest.name if largest else "PROFILE"


def _device(cluster: DiscoveredCluster) -> str:
    gpu = cluster.gpu_hosts[0]["gpus"][0]
    return f"{gpu['vendor_id']}:{gpu['device_id']}"


def _management(cluster: DiscoveredCluster) -> str:
    """Return the first network that is not the RDMA network."""
    names = [network.name for network in cluster.networks]
    usual = [name for name in names if "rdma" not in name.lower()]
    return "VM Network" if "VM Network" in names or not usual else usual[0]
