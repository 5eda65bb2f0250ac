"""Virtual machines with their properties, many in one read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import Refused
from ..vsphere import properties, tasks
from ..vsphere.faults import translating_faults
from ..vsphere.options import extra_config
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from .capacity import machines

# The file of its configuration, and the properties of the OVF that it or its template came from.
HOME, VAPP = "config.files.vmPathName", "config.vAppConfig"
LIGHT = ("name", "runtime.host", "runtime.powerState", "config.template")
PATHS = (
    *LIGHT,
    "config.instanceUuid",
    "parent",
    "resourcePool",
    "datastore",
    "config.version",
    "config.changeVersion",
    "config.annotation",
    "config.firmware",
    "config.hardware.numCPU",
    "config.hardware.numCoresPerSocket",
    "config.hardware.memoryMB",
    machines.DEVICES,
    "config.memoryReservationLockedToMax",
    machines.RESERVED_MB,
    "config.cpuAllocation.reservation",
    "config.latencySensitivity",
    "config.migrateEncryption",
    "config.keyId",
    "config.extraConfig",
    "guest.ipAddress",
    "guest.toolsRunningStatus",
    HOME,
    VAPP,
    "snapshot",
    "customValue",
)
GROUPS = "config.deviceGroups"
GROUPS_SINCE = (8, 0, 0, 1)
RECONFIGURE_SECONDS = 600
HIDDEN = "vCenter does not show its configuration, as while its datastore is inaccessible"
# The properties of virtual machines that are not workers of the call: the resources that they use on their hosts.
HOLDING = ("name", "runtime.host", machines.DEVICES, machines.RESERVED_MB, "config.cpuAllocation.reservation")


@dataclass
class Machine:
    """One virtual machine: its reference, the properties from the latest read, and the name of its worker.

    ``built`` is false for a machine that this collection did not build. ``expected_gb`` are the sizes that the options
    and the template of a worker give to its disks.
    """

    session: Session
    ref: Any
    values: Mapping[str, Any] = field(default_factory=dict)
    worker: str = ""
    built: bool = True
    expected_gb: Sequence[int] = ()

    def __getitem__(self, path: str) -> Any:
        """Return a property from the latest read; None if it is not set."""
        return self.values.get(path)

    @property
    def name(self) -> str:
        """The name of the worker, even if its machine was renamed; for other machines, the machine's name."""
        return self.worker or self.shown

    @property
    def shown(self) -> str:
        """The name that vCenter shows."""
        return str(self["name"])

    @property
    def on(self) -> bool:
        return bool(self["runtime.powerState"] == "poweredOn")

    @property
    def suspended(self) -> bool:
        """Whether its memory, with all processes, is in a file; the server deletes it like a machine that is off."""
        return bool(self["runtime.powerState"] == "suspended")

    @property
    def host(self) -> str:
        return properties.id_of(self["runtime.host"])

    def must_be_known(self, tried: str) -> None:
        """Refuse a machine whose configuration vCenter does not show: without it, nothing confirms that it is ours."""
        if self["config.hardware.numCPU"] is None:
            raise Refused(self.name, tried, HIDDEN, "bring its datastore and its host back, and run again")

    @property
    def extra(self) -> dict[str, str]:
        return extra_config(self["config.extraConfig"])

    def devices(self, kind: object) -> list[ApiObject]:
        """Return its devices of a type, sorted by key."""
        return sorted(machines.devices(self.values, kind), key=lambda device: int(device.key))

    @property
    def cards(self) -> list[ApiObject]:
        """Its network cards, without SR-IOV functions of the host."""
        fixed = vim.vm.device.VirtualSriovEthernetCard
        return [card for card in self.devices(vim.vm.device.VirtualEthernetCard) if not isinstance(card, fixed)]

    def reconfigure(self, spec: ApiObject, tried: str, remedy: str = "") -> None:
        """Change its configuration, and wait until the server has done so."""
        with translating_faults(self.name, tried, remedy):
            task = self.ref.ReconfigVM_Task(spec)
        tasks.wait(self.session, tasks.Started(task, self.name, tried, remedy), RECONFIGURE_SECONDS)

    def refresh(self) -> None:
        self.values = read(self.session, [self.ref])[self.ref._moId].values


def read(session: Session, refs: Sequence[ApiObject]) -> dict[str, Machine]:
    """Return virtual machines by object id, with one read."""
    paths = (*PATHS, GROUPS) if session.api_version >= GROUPS_SINCE else PATHS
    values_by_id = properties.read_many(session, refs, paths)
    return {ref._moId: Machine(session, ref, values_by_id[ref._moId]) for ref in refs if ref._moId in values_by_id}
