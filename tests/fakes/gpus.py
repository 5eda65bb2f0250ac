"""The GPUs of a host without a server: PCI devices, passthrough and graphics settings that a boot makes active."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyVmomi import vim

from tests.fakes.esxi import FakeHost, self_of

T4, NIC, FUNCTION = "0000:3b:00.0", "0000:5e:00.0", "0000:3b:00.4"
VGA = 0x0300


@dataclass
class Gpu:
    """One GPU, its settings and what is active of them."""

    address: str = T4
    capable: bool = True
    enabled: bool = False
    passed: bool = False
    configured: str | None = None
    active: str = "shared"
    mode: str | None = None
    active_mode: str | None = "sameSize"
    vms: list[str] = field(default_factory=list)


class FakeGpus:
    """The graphics manager, the passthrough system and the service system of a host, over its GPUs."""

    def __init__(self, host: FakeHost, *gpus: Gpu, rebind: bool = False, profiles: tuple[str, ...] = ()) -> None:
        self.host, self.gpus, self.rebind = host, {gpu.address: gpu for gpu in gpus}, rebind
        self.default, self.policy = "shared", "performance"
        self.foreign = [_type("0000:03:00.0", "shared", None)]
        host.has(
            hardware__pciDevice=self._devices,
            config__pciPassthruInfo=self._passthrough,
            config__graphicsInfo=self._info,
            config__graphicsConfig=self._config,
            config__sharedPassthruGpuTypes=list(profiles),
            capability__deviceRebindWithoutRebootSupported=rebind,
            configManager__pciPassthruSystem=self_of(self),
            configManager__graphicsManager=self_of(self),
            configManager__serviceSystem=self_of(self),
        )

    def UpdatePassthruConfig(self, desired: list[Any]) -> None:
        if self.host.write("UpdatePassthruConfig", *((one.id, one.passthruEnabled) for one in desired)):
            for one in desired:
                self.gpus[one.id].enabled = one.passthruEnabled
                self.gpus[one.id].passed = one.passthruEnabled if self.rebind else self.gpus[one.id].passed

    def UpdateGraphicsConfig(self, config: Any) -> None:
        kinds = {one.deviceId: (one.graphicsType, one.vgpuMode) for one in config.deviceType}
        if self.host.write("UpdateGraphicsConfig", config.hostDefaultGraphicsType, kinds):
            self.default, self.policy = config.hostDefaultGraphicsType, config.sharedPassthruAssignmentPolicy
            self.foreign = [one for one in config.deviceType if one.deviceId not in self.gpus]
            for address, (kind, mode) in kinds.items():
                if address in self.gpus:
                    self.gpus[address].configured, self.gpus[address].mode = kind, mode

    def Restart(self, service: str) -> None:
        if self.host.write("Restart", service):
            self._take()

    def Refresh(self) -> None:
        """Nothing to do: what is shown is always fresh."""

    def boot(self) -> None:
        """Return what a boot makes active."""
        for gpu in self.gpus.values():
            gpu.passed = gpu.enabled
            gpu.active_mode = gpu.mode or gpu.active_mode
        self._take()

    def _take(self) -> None:
        for gpu in self.gpus.values():
            if gpu.active != "basic":
                gpu.active = "direct" if gpu.passed else gpu.configured or self.default

    def _devices(self) -> list[Any]:
        gpus = [_device(address, VGA, 0x10DE, 0x1EB8, "NVIDIA Tesla T4") for address in self.gpus]
        # A virtual function of the GPU, the server's display, and a card whose ids do not fit into 15 bits.
        others = [
            _device(FUNCTION, VGA, 0x10DE, 0x1EB8, "virtual function"),
            _device("0000:03:00.0", VGA, 0x102B, 0x0536, "Matrox G200"),
            _device(NIC, 0x0200, 0x15B3, 0xA2D6, "ConnectX"),
        ]
        return gpus + others

    def _passthrough(self) -> list[Any]:
        gpus = [_passthru(one.address, one.capable, one.enabled, one.passed) for one in self.gpus.values()]
        return [*gpus, _passthru(NIC, True, False, False)]

    def _info(self) -> list[Any]:
        return [
            vim.host.GraphicsInfo(
                deviceName="NVIDIA Tesla T4",
                vendorName="NVIDIA Corporation",
                pciId=gpu.address,
                graphicsType=gpu.active,
                vgpuMode=gpu.active_mode,
                memorySizeInKB=16777216,
                vm=[vim.VirtualMachine(vm) for vm in gpu.vms],
            )
            for gpu in self.gpus.values()
        ]

    def _config(self) -> Any:
        ours = [_type(gpu.address, gpu.configured, gpu.mode) for gpu in self.gpus.values() if gpu.configured]
        return vim.host.GraphicsConfig(
            hostDefaultGraphicsType=self.default,
            sharedPassthruAssignmentPolicy=self.policy,
            deviceType=ours + self.foreign,
        )


def _type(address: str, kind: str | None, mode: str | None) -> Any:
    return vim.host.GraphicsConfig.DeviceType(deviceId=address, graphicsType=kind, vgpuMode=mode)


def _device(address: str, kind: int, vendor: int, device: int, name: str) -> Any:
    return vim.host.PciDevice(
        id=address,
        classId=_signed(kind),
        vendorId=_signed(vendor),
        deviceId=_signed(device),
        deviceName=name,
        vendorName="V",
    )


def _passthru(address: str, capable: bool, enabled: bool, active: bool) -> Any:
    return vim.host.PciPassthruInfo(
        id=address, dependentDevice=address, passthruCapable=capable, passthruEnabled=enabled, passthruActive=active
    )


def _signed(number: int) -> int:
    """As the API shows 16-bit ids."""
    return number - 0x10000 if number & 0x8000 else number
