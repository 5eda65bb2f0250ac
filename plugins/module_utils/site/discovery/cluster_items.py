# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The variables of one cluster: facts as comments, current settings, and proposals for the user to decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.findings import listed
from . import network_items, worker_items
from .discovered import DiscoveredCluster, DiscoveredTemplate, Entry
from .inventory_text import Item

SHARED_DIRECT = "shared_direct"
_HOTMIGRATE = "vgpu.hotmigrate.enabled"
_MOST = 20


def items_of(cluster: DiscoveredCluster, templates: Sequence[DiscoveredTemplate]) -> list[Item]:
    """Return the variables of a cluster, in the order of the playbooks that read them."""
    mode = gpu_mode(cluster)
    return [
        Item(notes=tuple(_facts(cluster))),
        *(Item(decide=f"preflight stops. {text}") for text in _stops(cluster)),
        *_expected_gpus(cluster),
        Item("esxi_host_profile", children=tuple(_profile(cluster, mode))),
        *network_items.fabric_items(cluster),
        *_hot_migration(cluster, mode),
        *worker_items.items_of(cluster, templates, shared=mode != "passthrough"),
    ]


def gpu_mode(cluster: DiscoveredCluster) -> str:
    """Return how all hosts currently offer their GPUs: shared_direct, passthrough, or an empty text if they differ."""
    modes = {_mode(gpu) for host in cluster.gpu_hosts for gpu in host["gpus"]}
    return modes.pop() if len(modes) == 1 else ""


def model_of(name: str) -> str:
    """Return the model in a GPU's name, which stays the same if a driver reports another name."""
    _before, bracket, inner = name.partition("[")
    model = inner.partition("]")[0] if bracket else name
    return " ".join(word for word in model.split() if word != "NVIDIA")


def _mode(gpu: Entry) -> str:
    if gpu["passthrough"] == "on":
        return "passthrough"
    return SHARED_DIRECT if gpu["active_type"] == gpu["type"] == SHARED_DIRECT and gpu["passthrough"] == "off" else ""


def _facts(cluster: DiscoveredCluster) -> Iterator[str]:
    facts, hosts = cluster.facts, cluster.hosts
    yield f"{len(hosts)} hosts:"
    yield from (f"  {_host(host)}" for host in hosts)
    yield f"Hosts without a running virtual machine: {listed(cluster.free_hosts, _MOST) or 'none'}"
    most = facts["max_out_of_service"]
    yield f"Hosts that may be out of service at once: {most['allowed']} ({most['why']})"
    yield f"High availability is {'on' if facts['ha']['enabled'] else 'off'}, DRS is {_drs(facts['drs'])}"
    yield f"Networks: {listed(map(network_items.described, cluster.networks), _MOST) or 'none'}"
    stores = [
        f"{one.name} ({one.kind}, {one.free_gb} of {one.capacity_gb} GiB free, {one.hosts} hosts)"
        for one in cluster.datastores
    ]
    yield f"Datastores: {listed(stores, _MOST) or 'none'}"


def _host(host: Entry) -> str:
    if host.get("failed"):
        return f"{host['host']}: {host['connection']}"
    state = "in maintenance mode" if host["in_maintenance"] else "in service"
    gpus = [f"{gpu['name']} ({_size(gpu)}{_use(gpu)})" for gpu in host["gpus"]]
    parts = [state, f"ESXi {host['version']}", f"{host['vendor']} {host['model']}", *gpus, *network_items.cards(host)]
    return f"{host['host']}: {', '.join(parts)}"


def _size(gpu: Entry) -> str:
    return f"{round(gpu['memory_mb'] / 1024)} GB, " if gpu["memory_mb"] else ""


def _use(gpu: Entry) -> str:
    if gpu["passthrough"] != "off":
        return f"passthrough {gpu['passthrough']}"
    words = {SHARED_DIRECT: "shares vGPUs", "shared": "shared", "basic": "no vGPU manager"}
    return words.get(gpu["active_type"] or "basic", str(gpu["active_type"]))


def _drs(drs: Any) -> str:
    return str(drs["behaviour"] or "on") if drs["enabled"] else "off"


def _stops(cluster: DiscoveredCluster) -> Iterator[str]:
    yield from cluster.stops
    if cluster.facts["configuration_profile"]:
        yield f"{cluster.name}: a configuration profile keeps the settings of its hosts; make changes there"


def _expected_gpus(cluster: DiscoveredCluster) -> Iterator[Item]:
    models = {host["host"]: sorted({model_of(gpu["name"]) for gpu in host["gpus"]}) for host in cluster.gpu_hosts}
    every = sorted({model for names in models.values() for model in names})
    if every:
        note = "preflight verifies that the hosts have these GPUs."
        yield Item("preflight_gpu", every[0] if len(every) == 1 else every, notes=(note,))


def _profile(cluster: DiscoveredCluster, mode: str) -> Iterator[Item]:
    """Yield the parts of the profile of every host: the settings that all hosts have, or a proposal."""
    if mode == "passthrough":
        yield Item("passthrough", {"devices": ["gpus"], "enabled": True}, notes=("All GPUs are in passthrough.",))
    elif mode == SHARED_DIRECT:
        yield Item("graphics", _graphics(cluster), notes=("All GPUs provide vGPUs.",))
    elif cluster.gpu_hosts:
        yield from _gpu_proposal(cluster)
    yield from network_items.profile_items(cluster)


def _graphics(cluster: DiscoveredCluster) -> dict[str, str]:
    policies = {host["graphics"]["policy"] for host in cluster.gpu_hosts}
    policy = {"policy": policies.pop()} if len(policies) == 1 else {}
    return {"type": SHARED_DIRECT, **policy}


def _gpu_proposal(cluster: DiscoveredCluster) -> Iterator[Item]:
    decision = (
        "how workers get GPUs. With vGPUs, a worker can migrate while it trains; this needs NVIDIA's vGPU manager "
        "and a licence. With whole GPUs, a worker stays on its host: write passthrough: {devices: [gpus], enabled: "
        "true} here instead"
    )
    yield Item("graphics", {"type": SHARED_DIRECT, "policy": "performance"}, decide=decision)
    if cluster.facts["image_managed"]:
        text = "which version of the vGPU manager the image of this cluster contains; esxi_image adds the component"
        yield Item(decide=text)
        return
    vib = {"name": "NVD-AIE_ESXi_8.0.0_Driver", "version": "VERSION", "source": "[DATASTORE] FOLDER/FILE.vib"}
    text = "the name, version and location of the vGPU manager, from your NVIDIA bundle"
    yield Item("vibs", [vib], decide=text)


def _hot_migration(cluster: DiscoveredCluster, mode: str) -> Iterator[Item]:
    value = cluster.facts["options"].get(_HOTMIGRATE)
    if value is True or mode == "passthrough" or not cluster.gpu_hosts:
        return
    text = (
        f"whether workers with a vGPU may migrate. The option {_HOTMIGRATE} of vCenter is {str(value).lower()}, and it "
        "applies to all clusters of this vCenter"
    )
    yield Item("fabric_vcenter_options", {_HOTMIGRATE: True}, decide=text)
    yield Item("fabric_allow_shared_settings", True, decide="whether this collection may change that option")
