"""The variables of one cluster: facts as comments, current settings, and proposals for the user to decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.findings import listed
from ...workers.placement.gpu_slots import parse
from .discovered import DiscoveredCluster, DiscoveredNetwork, DiscoveredTemplate, Entry
from .inventory_text import Expression, Item

SHARED_DIRECT = "shared_direct"
_HOTMIGRATE = "vgpu.hotmigrate.enabled"
_MOST = 20
_EXAMPLE = "192.0.2"  # a range for examples
_MOST_WORKERS = 64
# The playbooks reach the workers over SSH.
_SSH_KEY = Expression("{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}")
SWITCH, VMKERNEL, MACHINES = "rdma", "rdma-vmk", "rdma-vm"
_DEVICE = "vmk1"


def items_of(cluster: DiscoveredCluster, templates: Sequence[DiscoveredTemplate]) -> list[Item]:
    """Return the variables of a cluster, in the order of the playbooks that read them."""
    mode = gpu_mode(cluster)
    return [
        Item(notes=tuple(_facts(cluster))),
        *(Item(decide=f"preflight stops. {text}") for text in _stops(cluster)),
        *_expected_gpus(cluster),
        Item("esxi_host_profile", children=tuple(_profile(cluster, mode))),
        *fabric_items(cluster),
        *_hot_migration(cluster, mode),
        *items_of_workers(cluster, templates, shared=mode != "passthrough"),
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
    yield f"Networks: {listed(map(described, cluster.networks), _MOST) or 'none'}"
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
    parts = [state, f"ESXi {host['version']}", f"{host['vendor']} {host['model']}", *gpus, *cards(host)]
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
    yield from profile_items(cluster)


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


def items_of_workers(
    cluster: DiscoveredCluster, templates: Sequence[DiscoveredTemplate], *, shared: bool
) -> Iterator[Item]:
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


def _defaults(
    cluster: DiscoveredCluster, templates: Sequence[DiscoveredTemplate], *, shared: bool
) -> dict[str, object]:
    template = templates[0] if templates else None
    firmware = {"firmware": template.firmware} if template and template.firmware else {}
    rdma = {"portgroup": machine_network(cluster), "protocol": "rocev2"}
    store = next((one.name for one in cluster.datastores if one.hosts == len(cluster.hosts)), "")
    return {
        "template": _named(template),
        **firmware,
        **({"datastore": store} if store else {}),
        "cpus": 8,
        "memory_mb": 32768,
        "gpus": [{"profile": _gpu_profile(cluster)} if shared else {"device": _device(cluster)}],
        **({"rdma_nics": [rdma]} if has_rdma(cluster) else {}),
        "management_nic": {"portgroup": _management(cluster)},
        "guest": {"gateway": f"{_EXAMPLE}.1", "user": "ubuntu", "ssh_keys": [_SSH_KEY]},
    }


def _named(template: DiscoveredTemplate | None) -> str | dict[str, str]:
    if template is None:
        return "TEMPLATE"
    return {"library": template.library, "item": template.name} if template.library else template.name


def _worker(cluster: DiscoveredCluster, number: int) -> dict[str, object]:
    rdma = {"rdma_addresses": [f"198.51.100.{number + 128}/24"]} if has_rdma(cluster) else {}
    return {"name": f"worker{number:02}", "guest": {"address": f"{_EXAMPLE}.{number + 10}/24", **rdma}}


def _count(cluster: DiscoveredCluster) -> int:
    """Return the number of workers: with vGPUs, one host stays free, so that workers can migrate."""
    return min(max(len(cluster.gpu_hosts) - 1, 1), _MOST_WORKERS)


def _gpu_profile(cluster: DiscoveredCluster) -> str:
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


def described(network: DiscoveredNetwork) -> str:
    """Return a port group for a list."""
    if not network.distributed:
        return network.name
    return f"{network.name} (distributed, {'trunk' if network.vlan is None else f'VLAN {network.vlan or None}'})"


def cards(host: Entry) -> Iterator[str]:
    """Yield the RDMA cards of a host, each with its switch."""
    for card in _rdma_cards(host):
        place = f"on switch {card['switch']}" if card["switch"] else "free"
        yield f"{card['device']} ({card['rdma']}, {card['speed_mbps'] // 1000} Gb/s, {place})"


def profile_items(cluster: DiscoveredCluster) -> Iterator[Item]:
    """Yield the parts of the hosts' profile that concern RDMA."""
    if not _rdma_hosts(cluster):
        return
    tags = {(host.get("pvrdma") or {}).get("vmk") or "" for host in cluster.readable}
    if len(tags) == 1 and (tag := tags.pop()):
        yield Item("pvrdma", {"vmk": tag}, notes=("All hosts have this tag for PVRDMA.",))
    else:
        text = "whether workers get PVRDMA adapters, and the VMkernel adapter of their control channel"
        yield Item("pvrdma", {"vmk": _adapter(cluster) or _DEVICE}, decide=text)
    text = (
        "whether RoCE is lossless, and on which priority. This applies to all ports of the driver; configure the "
        "physical switch in the same way first"
    )
    yield Item("roce", {"priority": 3, "trust": "dscp"}, decide=text)


def fabric_items(cluster: DiscoveredCluster) -> Iterator[Item]:
    """Yield the variables of the RDMA network: nothing if it exists, else a proposal."""
    hosts = _rdma_hosts(cluster)
    if not hosts:
        yield Item(notes=("No host has an RDMA card: training uses TCP.",))
        return
    if used := sorted({card["switch"] for host in hosts for card in _rdma_cards(host) if card["switch"]}):
        note = "dml.vsphere.fabric changes a switch that it did not create only with fabric_adopt."
        yield Item(notes=(f"RDMA cards are on {', '.join(used)}. {note}",))
    if any(card["switch"] is None for host in hosts for card in _rdma_cards(host)):
        yield from _proposal(hosts)


def _proposal(hosts: list[Entry]) -> Iterator[Item]:
    text = "the VLAN of the RDMA network. The physical switch must have it; omit vlan if the network has none"
    groups = [{"name": VMKERNEL, "vlan": 100}, {"name": MACHINES, "vlan": 100}]
    yield Item("fabric_port_groups", groups, decide=text)
    addresses = {host["host"]: f"198.51.100.{number}" for number, host in enumerate(hosts[:254], 1)}
    adapter = {
        "port_group": VMKERNEL,
        "device": _DEVICE,
        "network": "198.51.100.0/24",
        "addresses": addresses,
        "services": [],
    }
    text = "the network and the address of each host in it. The addresses below are from a range for examples"
    yield Item("fabric_adapters", [adapter], decide=text)
    if several := [_free(host) for host in hosts if len(_free(host)) > 1]:
        text = "which RDMA card is the uplink of the switch: a host has several that no switch uses"
        yield Item("fabric_uplink", several[0][0], decide=text)


def machine_network(cluster: DiscoveredCluster) -> str:
    """Return the existing or proposed port group for the PVRDMA adapters of workers."""
    switches = {card["switch"] for host in cluster.readable for card in _rdma_cards(host) if card["switch"]}
    there = [network.name for network in cluster.networks if network.distributed]
    named = [name for name in there if name == MACHINES or any(switch in name for switch in switches)]
    return MACHINES if MACHINES in named or not named else named[0]


def has_rdma(cluster: DiscoveredCluster) -> bool:
    return bool(_rdma_hosts(cluster))


def _rdma_hosts(cluster: DiscoveredCluster) -> list[Entry]:
    return [host for host in cluster.readable if _rdma_cards(host)]


def _rdma_cards(host: Entry) -> list[Entry]:
    return [card for card in host["uplinks"] if card["rdma"]]


def _free(host: Entry) -> list[str]:
    return [card["device"] for card in _rdma_cards(host) if card["switch"] is None]


def _adapter(cluster: DiscoveredCluster) -> str:
    """Return the VMkernel adapter that all hosts have on the switch of an RDMA card; empty if none exists."""
    found = [set(_adapters(host)) for host in _rdma_hosts(cluster)]
    return min(set.intersection(*found), default="") if found else ""


def _adapters(host: Entry) -> Iterator[str]:
    switches = {card["switch"] for card in _rdma_cards(host)} - {None}
    return (adapter["device"] for adapter in host["vmkernel"] if adapter["switch"] in switches)
