"""The capabilities of nodes for training, from the facts of the roles: stack, adapter, transport, framework, ranks."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

Facts = Mapping[str, Any]
MEGABITS = 1000.0


class NetworkCard(TypedDict):
    """A network adapter of a guest; an unknown address is empty, and an unknown speed is None."""

    card: str
    address: str
    network: str
    speed: float | None


def default_settings(nodes: Mapping[str, Facts]) -> dict[str, Any]:
    """Return the default settings of a training job, from the Ansible facts of each node.

    The transport is RDMA if every node has a verified device and the framework uses NCCL. TCP then uses the adapter of
    the first device of each node, so that both use the same network.
    """
    local = [_proofs(facts) for facts in nodes.values()]
    nccl = _common([_nccl(proofs) for proofs in local])
    devices = [_rdma_device(proofs) for proofs in local]
    rdma = bool(nccl) and bool(devices) and all(devices)
    return {
        "transport": "rdma" if rdma else "tcp",
        "transports": ["tcp", "rdma"] if rdma else ["tcp"],
        "nccl": nccl,
        "stack": _common([str(proofs.get("stack", {}).get("name", "")) for proofs in local]),
        "framework": _common([str(_trainer(proofs).get("framework", "")) for proofs in local]) or "tensorflow",
        "python": _common([_python(proofs) for proofs in local]),
        "ranks_per_node": min((_gpus(proofs) for proofs in local), default=1),
        "interfaces": {
            name: device["card"] if all(devices) else interface(facts)
            for (name, facts), device in zip(nodes.items(), devices)
        },
    }


def interface(facts: Facts, address: str = "") -> str:
    """Return the interface that has an address, or that of the default route."""
    for fact in facts.values():
        if address and isinstance(fact, Mapping) and address in [each.get("address") for each in _addresses(fact)]:
            return str(fact["device"])
    return str((facts.get("default_ipv4") or {}).get("interface") or "")


def network_card(facts: Facts, name: str) -> NetworkCard:
    """Return the address, the network (ADDRESS/BITS) and the speed in Gbit/s of an interface; None is unknown."""
    # Ansible's names of facts have no dashes and colons.
    fact = facts.get(name.replace("-", "_").replace(":", "_")) or {}
    address, speed = next(iter(_addresses(fact)), {}), fact.get("speed") or 0
    return {
        "card": name,
        "address": str(address.get("address") or ""),
        "network": _network(address),
        "speed": speed / MEGABITS if speed > 0 else None,
    }


def slowest(cards: Sequence[Facts]) -> dict[str, object]:
    """Return the names of the adapters of all nodes, and the speed of the slowest; None if a speed is unknown."""
    speeds = [float(each["speed"]) for each in cards if each.get("speed")]
    names = dict.fromkeys(str(each["card"]) for each in cards if each.get("card"))
    return {"card": ", ".join(names), "speed": min(speeds) if speeds and len(speeds) == len(cards) else None}


def _addresses(fact: Facts) -> list[Facts]:
    """Return the addresses of an interface; without the program ip, Ansible uses ifconfig, and returns a list."""
    ipv4 = fact.get("ipv4") or []
    first = [ipv4] if isinstance(ipv4, Mapping) else list(ipv4)
    return [*first, *(fact.get("ipv4_secondaries") or [])] if fact.get("device") else []


def _network(address: Facts) -> str:
    """Return the network of an address, such as 10.216.0.0/16."""
    if not address.get("address") or not address.get("netmask"):
        return ""
    return str(ipaddress.ip_network(f"{address['address']}/{address['netmask']}", strict=False))


def _proofs(facts: Facts) -> dict[str, Any]:
    """Return the proofs that the roles stored on a node, by the name of the role."""
    local = (facts.get("ansible_local") or {}).items()
    return {
        name[len("dml_") :]: value for name, value in local if name.startswith("dml_") and isinstance(value, Mapping)
    }


def _rdma_device(proofs: Facts) -> Facts:
    """Return the first of the verified RDMA devices of a node; empty without any."""
    proof = proofs.get("rdma", {})
    devices = proof.get("devices") or []
    return devices[0] if proof.get("proven") and devices else {}


def _trainer(proofs: Facts) -> Facts:
    """Return the proof of the program that trains: that of the verified image, or that of the node's stack."""
    image: Facts = proofs.get("training_image", {})
    stack: Facts = proofs.get("stack", {})
    return image if image.get("proven") else proofs.get(stack.get("trains_by") or "horovod", {})


def _python(proofs: Facts) -> str:
    """Return the interpreter that has the framework of a node; empty for an image, whose interpreter the role has."""
    venv = _trainer(proofs).get("venv")
    return f"{venv}/bin/python" if venv else ""


def _nccl(proofs: Facts) -> str:
    """Return the version of NCCL, empty without NCCL; an image, and PyTorch without Horovod, include another NCCL."""
    trainer = _trainer(proofs)
    if not trainer.get("uses_nccl"):
        return ""
    if trainer is not proofs.get("horovod"):
        return str(trainer["nccl"])
    return str((proofs.get("cuda", {}).get("versions") or {}).get("nccl") or "")


def _gpus(proofs: Facts) -> int:
    """Return the number of ranks of a node: one for each GPU, and one without GPU."""
    gpus = proofs.get("cuda", {}).get("devices") or proofs.get("gpu_driver", {}).get("gpus") or []
    return max(1, len(gpus))


def _common(values: Sequence[str]) -> str:
    """Return the value that all have; empty if they differ."""
    return values[0] if len(set(values)) == 1 else ""
