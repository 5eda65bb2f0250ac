"""The limits of a version of virtual hardware, as the server reports them: RDMA cards, their protocols, and GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..errors import Refused
from ..vsphere.sdk import ApiObject, vim, vmodl
from .placement.place import Demand

# Each version knows this guest. The server sends its description only, without those of 190 others.
_ANY_GUEST = "otherGuest64"


@dataclass(frozen=True)
class HardwareLimits:
    """The limits of a virtual machine of one hardware version; None is a limit that the server did not report."""

    version: str = ""
    rdma_cards: int | None = None
    protocols: tuple[str, ...] | None = None
    vgpus: int | None = None
    passthrough: int | None = None


@dataclass(frozen=True)
class RequestedDevices:
    """The devices that a virtual machine shall have: protocols of its PVRDMA cards, its GPUs, other passed devices."""

    protocols: Sequence[str] = ()
    gpus: Demand = field(default_factory=Demand)
    classes: int = 0


def read(browser: ApiObject, version: str, host: ApiObject) -> HardwareLimits:
    """Return the limits that a host reports for a hardware version; unknown ones if it does not know the version."""
    spec = vim.EnvironmentBrowser.ConfigOptionQuerySpec(key=version, host=host, guestId=[_ANY_GUEST])
    try:
        return limits_of(version, browser.QueryConfigOptionEx(spec))
    except vmodl.MethodFault:
        return HardwareLimits(version)


def limits_of(version: str, option: ApiObject) -> HardwareLimits:
    """Return the limits in a configuration option; none if it is of another version."""
    if option is None or option.version != version:
        return HardwareLimits(version)
    devices = {one.type.__name__.rpartition(".")[2]: one for one in option.hardwareOptions.virtualDeviceOption or []}
    controller, card = devices.get("VirtualPCIController"), devices.get("VirtualVmxnet3Vrdma")
    choices = getattr(getattr(card, "deviceProtocol", None), "choiceInfo", None) if card else None
    backings = getattr(devices.get("VirtualPCIPassthrough"), "backingOption", None) or []
    return HardwareLimits(
        version,
        rdma_cards=_most(controller, "numVmxnet3VrdmaEthernetCards"),
        protocols=tuple(choice.key for choice in choices) if choices else None,
        vgpus=next((count for one in backings if (count := getattr(one, "maxInstances", None))), None),
        passthrough=_most(controller, "numPCIPassthroughDevices"),
    )


def refuse_excess(name: str, machine: str, devices: RequestedDevices, limits: HardwareLimits) -> None:
    """Refuse devices that the virtual hardware of the machine, or of the template, does not support."""
    if reasons := [*_excess(devices, limits)]:
        reason = f"{machine} has virtual hardware {limits.version.removeprefix('vmx-')}, which {' and '.join(reasons)}"
        remedy = f"request what it supports, or upgrade the hardware of {machine}, powered off"
        raise Refused(name, "configure its devices", reason, remedy)


def _excess(devices: RequestedDevices, limits: HardwareLimits) -> Iterator[str]:
    vgpus = len(devices.gpus.vgpus)
    counts = (
        (len(devices.protocols), limits.rdma_cards, "PVRDMA cards"),
        (vgpus, limits.vgpus, "vGPUs"),
        (vgpus + len(devices.gpus.devices) + devices.classes, limits.passthrough, "devices in passthrough"),
    )
    for number, most, kind in counts:
        if most is not None and number > most:
            yield f"supports at most {most} {kind}, not {number}" if most else f"supports no {kind}"
    if limits.protocols is not None and (other := sorted(set(devices.protocols) - set(limits.protocols))):
        yield f"supports PVRDMA cards with {', '.join(limits.protocols)}, not with {', '.join(other)}"


def _most(controller: ApiObject, key: str) -> int | None:
    count = getattr(controller, key, None)
    return None if count is None else int(count.max)
