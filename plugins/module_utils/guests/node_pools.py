# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The workers of an inventory as machines of SkyPilot and dstack, which both connect with ssh.

SkyPilot: https://docs.skypilot.co/en/latest/reservations/existing-machines.html
dstack: https://dstack.ai/docs/reference/dstack.yml/fleet/
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, TypedDict

USUAL_PORT = 22
NAME = re.compile(r"[a-z][a-z0-9-]{1,39}", re.ASCII)
ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]*", re.ASCII)
USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
JUMP = re.compile(r"(?:^|\s)(?:-J|-W|-o\s*Proxy(?:Jump|Command))", re.IGNORECASE)


class PoolError(ValueError):
    """A worker cannot be used as a machine of another tool."""


class _Machine(TypedDict):
    address: str
    user: str
    key: str
    port: int
    internal: str


def skypilot(name: str, workers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the workers as an SSH node pool of SkyPilot, for ~/.sky/ssh_node_pools.yaml."""
    machines = _machines(name, workers)
    other = [worker for worker, machine in machines.items() if machine["port"] != USUAL_PORT]
    if other:
        raise PoolError(
            f"{other[0]}: ansible_port is {machines[other[0]]['port']}, and a node pool of SkyPilot contains no ports: "
            "export only the fleet of dstack, with export_tools."
        )
    hosts = [{"ip": each["address"], "user": each["user"], "identity_file": each["key"]} for each in machines.values()]
    return {name: {"hosts": hosts}}


def dstack(name: str, workers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the workers as an SSH fleet of dstack, for ``dstack apply -f``."""
    hosts = [_dstack_host(each) for each in _machines(name, workers).values()]
    return {"type": "fleet", "name": name, "placement": "cluster", "ssh_config": {"hosts": hosts}}


def _dstack_host(machine: _Machine) -> dict[str, Any]:
    host: dict[str, Any] = {"hostname": machine["address"], "user": machine["user"], "identity_file": machine["key"]}
    port = {"port": machine["port"]} if machine["port"] != USUAL_PORT else {}
    internal = {"internal_ip": machine["internal"]} if machine["internal"] else {}
    return {**host, **port, **internal}


def _machines(name: str, workers: Mapping[str, Mapping[str, Any]]) -> dict[str, _Machine]:
    if not NAME.fullmatch(name):
        raise PoolError(f"export_name is {name!r}: expected 2 to 40 small letters, digits and dashes, first a letter.")
    machines = {worker: _machine(worker, variables) for worker, variables in workers.items()}
    if all(_is_private(machine["internal"]) for machine in machines.values()):
        return machines
    return {worker: {**machine, "internal": ""} for worker, machine in machines.items()}


def _is_private(address: str) -> bool:
    """Return whether dstack accepts the address; it detects the addresses if not all machines have one."""
    try:
        return ipaddress.ip_address(address).is_private
    except ValueError:
        return False


def _machine(worker: str, variables: Mapping[str, Any]) -> _Machine:
    """Return the login of a worker; its only secret is the path of the key."""
    address, user = str(variables.get("ansible_host") or worker), str(variables.get("ansible_user") or "")
    key = str(variables.get("ansible_ssh_private_key_file") or variables.get("ansible_private_key_file") or "")
    jumps = [str(variables.get(f"ansible_ssh_{kind}_args") or "") for kind in ("common", "extra")]
    if not ADDRESS.fullmatch(address) or not USER.fullmatch(user):
        raise PoolError(f"{worker}: ansible_host is {address!r} and ansible_user is {user!r}: set both to one word.")
    if not key:
        raise PoolError(f"{worker}: ansible_ssh_private_key_file is not set: the other tool logs in with a key.")
    if any(JUMP.search(words) for words in jumps):
        raise PoolError(f"{worker} is reached through another host: export only workers that ssh reaches directly.")
    port = int(variables.get("ansible_port") or USUAL_PORT)
    internal = next(map(str, variables.get("vm_rdma_addresses") or []), "")
    return {"address": address, "user": user, "key": key, "port": port, "internal": internal}
