"""The network of a host in the API's types, as few words as possible: cards, switches, vmkernel adapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyVmomi import vim

from tests.fakes.esxi import FakeHost


@dataclass
class Card:
    """A physical network card; ``rdma`` names its RDMA device."""

    device: str
    driver: str = "i40en"
    rdma: str | None = None
    state: str = "active"
    roce: bool = True
    megabits: int = 100_000


@dataclass
class Switch:
    """A virtual switch of a host."""

    name: str
    uplinks: Sequence[str]
    mtu: int = 9000
    distributed: bool = True
    lag: bool = False


@dataclass
class Vmk:
    """A vmkernel adapter."""

    device: str
    switch: str
    mtu: int = 9000
    address: str = "10.0.0.1"
    services: Sequence[str] = ()


@dataclass
class FakeNetwork:
    """Two cards (one of them ConnectX-5), a standard and a distributed switch, a vmkernel adapter on each."""

    cards: list[Card] = field(
        default_factory=lambda: [Card("vmnic0"), Card("vmnic1"), Card("vmnic2", "nmlx5_core", "vmrdma0")]
    )
    switches: list[Switch] = field(
        default_factory=lambda: [Switch("vSwitch0", ["vmnic0"], 1500, distributed=False), Switch("rdma", ["vmnic2"])]
    )
    vmks: list[Vmk] = field(
        default_factory=lambda: [Vmk("vmk0", "vSwitch0", 1500, services=("management",)), Vmk("vmk1", "rdma")]
    )

    def on(self, host: FakeHost) -> FakeNetwork:
        """Give it to a host."""
        host.properties_of({"config.network": self._info, "config.virtualNicManagerInfo.netConfig": self._services})
        return self

    def switch(self, name: str) -> Switch:
        (found,) = [one for one in self.switches if one.name == name]
        return found

    def vmk(self, device: str) -> Vmk:
        (found,) = [one for one in self.vmks if one.device == device]
        return found

    def _info(self) -> Any:
        standard = [one for one in self.switches if not one.distributed]
        return vim.host.NetworkInfo(
            pnic=[_pnic(card) for card in self.cards],
            rdmaDevice=[_rdma(card) for card in self.cards if card.rdma],
            vswitch=[vim.host.VirtualSwitch(name=one.name, mtu=one.mtu, pnic=_keys(one.uplinks)) for one in standard],
            portgroup=[_port_group(one.name) for one in standard],
            proxySwitch=[_proxy(one) for one in self.switches if one.distributed],
            vnic=[self._vnic(one) for one in self.vmks],
        )

    def _vnic(self, vmk: Vmk) -> Any:
        spec = vim.host.VirtualNic.Specification(
            ip=vim.host.IpConfig(ipAddress=vmk.address), mtu=vmk.mtu, netStackInstanceKey="defaultTcpipStack"
        )
        if self.switch(vmk.switch).distributed:
            spec.distributedVirtualPort = vim.dvs.PortConnection(switchUuid=vmk.switch, portgroupKey="dvportgroup-1")
        else:
            spec.portgroup = f"net of {vmk.switch}"
        return vim.host.VirtualNic(
            device=vmk.device, key=f"key-{vmk.device}", portgroup=spec.portgroup or "", spec=spec
        )

    def _services(self) -> list[Any]:
        def config(kind: str) -> Any:
            candidates = [vim.host.VirtualNic(device=one.device, key=f"{kind}.{one.device}") for one in self.vmks]
            selected = [f"{kind}.{one.device}" for one in self.vmks if kind in one.services]
            return vim.host.VirtualNicManager.NetConfig(nicType=kind, candidateVnic=candidates, selectedVnic=selected)

        return [config(kind) for kind in ("management", "vmotion", "vsan")]


def _keys(devices: Sequence[str]) -> list[str]:
    return [f"key-{device}" for device in devices]


def _pnic(card: Card) -> Any:
    speed = vim.host.PhysicalNic.LinkSpeedDuplex(speedMb=card.megabits, duplex=True) if card.megabits else None
    return vim.host.PhysicalNic(
        device=card.device,
        key=f"key-{card.device}",
        driver=card.driver,
        pci=f"0000:{card.device[-1]}8:00.0",
        linkSpeed=speed,
    )


def _rdma(card: Card) -> Any:
    return vim.host.RdmaDevice(
        device=card.rdma,
        key=f"key-{card.rdma}",
        driver="nmlx5_rdma",
        backing=vim.host.RdmaDevice.PnicBacking(pairedUplink=f"key-{card.device}"),
        connectionInfo=vim.host.RdmaDevice.ConnectionInfo(state=card.state, mtu=4096, speedInMbps=100000),
        capability=vim.host.RdmaDevice.Capability(roceV1Capable=card.roce, roceV2Capable=card.roce, iWarpCapable=True),
    )


def _port_group(switch: str) -> Any:
    return vim.host.PortGroup(spec=vim.host.PortGroup.Specification(name=f"net of {switch}", vswitchName=switch))


def _proxy(switch: Switch) -> Any:
    lag = vim.host.HostProxySwitch.HostLagConfig(
        lagKey="lag", uplinkPort=[vim.KeyValue(key="1", value="lag1-0")] if switch.lag else []
    )
    return vim.host.HostProxySwitch(
        dvsUuid=switch.name, dvsName=switch.name, mtu=switch.mtu, pnic=_keys(switch.uplinks), hostLag=[lag]
    )
