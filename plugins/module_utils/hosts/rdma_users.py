"""The other users of a host's RDMA cards, as far as the API reports them: vSAN, NVMe over RDMA, iSER."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypedDict

from ..vsphere.inventory import Host
from ..vsphere.sdk import vim
from .network import HostNetwork

PATHS = ("config.storageDevice.hostBusAdapter",)
# The API does not report whether vSAN uses RDMA, so vSAN over an RDMA card counts.
SERVICES = {"vsan": "vSAN", "vsanExternal": "vSAN", "nvmeRdma": "NVMe over RDMA"}


class RdmaUser(TypedDict):
    """A user of an RDMA card; ``uplink`` is None if the API does not report the card."""

    kind: str
    name: str
    uplink: str | None


def users(host: Host, net: HostNetwork) -> list[RdmaUser]:
    """Return each user with its kind, its name and its card; the card is None if the API does not report it."""
    return [*_adapters(host, net), *_services(net)]


def descriptions(rdma_users: Collection[RdmaUser]) -> list[str]:
    return [f"{user['kind']} ({user['name']} over {user['uplink'] or 'an unknown card'})" for user in rdma_users]


def on_uplinks(rdma_users: Collection[RdmaUser], uplinks: Collection[str]) -> list[RdmaUser]:
    """Return the users of these cards, and those whose card is unknown."""
    return [user for user in rdma_users if user["uplink"] is None or user["uplink"] in uplinks]


def _adapters(host: Host, net: HostNetwork) -> Iterator[RdmaUser]:
    for adapter in host["config.storageDevice.hostBusAdapter"] or []:
        if isinstance(adapter, vim.host.RdmaHba):
            device = net["rdma"].get(adapter.associatedRdmaDevice or "")
            yield {"kind": "NVMe over RDMA", "name": adapter.device, "uplink": device["uplink"] if device else None}
        elif isinstance(adapter, vim.host.InternetScsiHba) and (adapter.driver or "").lower() == "iser":
            yield {"kind": "iSER", "name": adapter.device, "uplink": None}


def _services(net: HostNetwork) -> Iterator[RdmaUser]:
    cards = {uplink for uplink, nic in net["uplinks"].items() if nic["rdma"]}
    for vmk, adapter in net["vmkernel"].items():
        switch = net["switches"].get(adapter["switch"] or "")
        kinds = sorted({SERVICES[service] for service in adapter["services"] if service in SERVICES})
        for kind in kinds:
            for uplink in sorted(cards.intersection(switch["uplinks"] if switch else [])):
                yield {"kind": kind, "name": vmk, "uplink": uplink}
