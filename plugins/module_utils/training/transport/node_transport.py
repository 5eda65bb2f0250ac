# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""How nodes can train, by what the roles noted: stack, network card, transport, framework and ranks."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]
MEGABITS = 1000.0


def known(nodes: Mapping[str, Facts]) -> dict[str, Any]:
    """How nodes train unless told otherwise, by the Ansible facts of each node.

    RDMA where every node has a proven device and the framework uses NCCL. TCP then goes over the same cards as RDMA, so
    that both have the same wire.
    """
    local = [_proofs(facts) for facts in nodes.values()]
    nccl = _common([_nccl(one) for one in local])
    devices = [one.get("rdma", {}) for one in local]
    rdma = bool(nccl) and bool(devices) and all(device.get("proven") for device in devices)
    return {
        "transport": "rdma" if rdma else "tcp",
        "transports": ["tcp", "rdma"] if rdma else ["tcp"],
        "nccl": nccl,
        "stack": _common([str(one.get("stack", {}).get("name", "")) for one in local]),
        "framework": _common([str(_trainer(one).get("framework", "")) for one in local]) or "tensorflow",
        "python": _common([_python(one) for one in local]),
        "ranks_per_node": min((_gpus(one) for one in local), default=1),
        "interfaces": {
            name: device["card"] if all(one.get("card") for one in devices) else interface(facts)
            for (name, facts), device in zip(nodes.items(), devices)
        },
    }


def interface(facts: Facts, address: str = "") -> str:
    """The interface that has an address, or that of the default route."""
    for one in facts.values():
        if address and isinstance(one, Mapping) and address in [each.get("address") for each in _held(one)]:
            return str(one["device"])
    return str((facts.get("default_ipv4") or {}).get("interface") or "")


def card(facts: Facts, name: str) -> dict[str, Any]:
    """An interface: its address, network (ADDRESS/BITS), and speed in Gbit/s as the guest sees it; None is unknown."""
    # Ansible's names of facts have no dashes and colons.
    found = facts.get(name.replace("-", "_").replace(":", "_")) or {}
    address, speed = next(iter(_held(found)), {}), found.get("speed") or 0
    place = {"address": str(address.get("address") or ""), "network": _network(address)}
    return {"card": name, **place, "speed": speed / MEGABITS if speed > 0 else None}


def slowest(cards: Sequence[Facts]) -> dict[str, Any]:
    """The names of the cards of all nodes, and the speed of the slowest; None where one is unknown."""
    speeds = [float(one["speed"]) for one in cards if one.get("speed")]
    names = dict.fromkeys(str(one["card"]) for one in cards if one.get("card"))
    return {"card": ", ".join(names), "speed": min(speeds) if speeds and len(speeds) == len(cards) else None}


def _held(one: Facts) -> list[Facts]:
    """The addresses of an interface; where ip is missing, Ansible asks ifconfig, and tells them as a list."""
    there = one.get("ipv4") or []
    first = [there] if isinstance(there, Mapping) else list(there)
    return [*first, *(one.get("ipv4_secondaries") or [])] if one.get("device") else []


def _network(address: Facts) -> str:
    """The network of an address: 10.216.0.0/16."""
    if not address.get("address") or not address.get("netmask"):
        return ""
    return str(ipaddress.ip_network(f"{address['address']}/{address['netmask']}", strict=False))


def _proofs(facts: Facts) -> dict[str, Any]:
    """What the roles noted on a node, by the name of the role."""
    local = (facts.get("ansible_local") or {}).items()
    return {
        name[len("dml_") :]: value for name, value in local if name.startswith("dml_") and isinstance(value, Mapping)
    }


def _trainer(proofs: Facts) -> Facts:
    """What trains on a node: the image that was proven there, or what the stack put on the node itself."""
    image: Facts = proofs.get("training_image", {})
    stack: Facts = proofs.get("stack", {})
    return image if image.get("proven") else proofs.get(stack.get("trains_by") or "horovod", {})


def _python(proofs: Facts) -> str:
    """The interpreter that has the framework of a node; that of an image is known to the role."""
    venv = _trainer(proofs).get("venv")
    return f"{venv}/bin/python" if venv else ""


def _nccl(proofs: Facts) -> str:
    """The version of the NCCL that is used; empty where none is. An image and PyTorch alone have their own."""
    trainer = _trainer(proofs)
    if not trainer.get("uses_nccl"):
        return ""
    if trainer is not proofs.get("horovod"):
        return str(trainer["nccl"])
    return str((proofs.get("cuda", {}).get("versions") or {}).get("nccl") or "")


def _gpus(proofs: Facts) -> int:
    """The GPUs of a node, one rank for each; one rank where there is none."""
    there = proofs.get("cuda", {}).get("devices") or proofs.get("gpu_driver", {}).get("gpus") or []
    return max(1, len(there))


def _common(values: Sequence[str]) -> str:
    """The value that all have; empty where they differ."""
    return values[0] if len(set(values)) == 1 else ""
