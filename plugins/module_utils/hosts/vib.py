# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: one VIB (software package) of a host: the version that runs, and the version that the next boot brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core.vgpu_manager import is_manager
from ..errors import Failed, Refused
from ..maintenance import boot
from ..plan import MAINTENANCE, REBOOT, Plan
from ..vsphere.esxcli import Row
from ..vsphere.faults import is_of
from ..vsphere.inventory import Host
from ..vsphere.sdk import vim, vmodl
from . import installed_vibs, pci_devices
from .installed_vibs import NVIDIA, Images
from .part import Part, PlannedSubject, ProfileContext, list_of
from .privileges.privilege_table import NOTE
from .rollback import restoring
from .vib_source import option_of

PATHS = ("parent", "configManager.imageConfigManager", *pci_devices.PATHS, *boot.PATHS)
OPTIONS: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "version": {"type": "str"},
    "source": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "install_timeout": {"type": "int", "default": 1800},
}
REQUIRED_IF = [("state", "present", ("version", "source"))]


@dataclass(frozen=True)
class VibSpec:
    """The options of the user."""

    name: str
    version: str = ""
    source: str = ""
    state: str = "present"
    install_timeout: int = 1800

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> VibSpec:
        """The desired VIB that validated options mean; a relative path or an unknown kind of file is refused here."""
        if options["state"] == "present":
            option_of(options["source"])
        return cls(
            name=options["name"],
            version=options["version"] or "",
            source=options["source"] or "",
            state=options["state"],
            install_timeout=options["install_timeout"],
        )


class Vib:
    """One VIB of one host."""

    def __init__(
        self, host: Host, desired: VibSpec, cluster_images: Mapping[str, str], images: Images | None = None
    ) -> None:
        self.host, self.desired, self.images = host, desired, images or Images(host)
        self.cluster_images = cluster_images
        self.target, self.name = host.name, f"VIB {desired.name}"

    def read(self) -> dict[str, Any]:
        """The version that runs and that of the next boot, and what a change would do, tried by a dry run."""
        self.host.must_answer(f"read its {self.name}")
        running, pending = self.images.read()
        gpus = pci_devices.gpus(self.host)
        state = {
            "running": boot.pending(self.host).get(self.name, _version(running, self.desired.name)) or None,
            "next_boot": _version(pending or running, self.desired.name),
            "others": _other_managers(pending or running, self.desired.name),
            "gpus_in_passthrough": [gpu for gpu, device in gpus.items() if pci_devices.passthrough_of(device) != "off"],
            "gpus_without_driver": _without_driver(self.host, gpus),
            "image_of": self.cluster_images.get(getattr(self.host["parent"], "_moId", ""), ""),
            "in_maintenance": self.host.in_maintenance,
        }
        return {**state, "rehearsal": self._rehearsed() if _may_change(state, self.desired) else None}

    def apply(self, plan: Plan) -> None:
        """Install or remove it; signatures are always checked, and the host's acceptance level is never touched."""
        if is_manager(self.desired.name) and not (plan.before["rehearsal"] or {}).get("reboot"):
            # The host lists the new version at once, while its driver stays the old one until it boots.
            boot.remember(self.host, self.name, plan.before["running"] or "")
        verb = "remove" if plan.after["next_boot"] is None else "install"
        self._esxcli(verb, f"{verb} its {self.name}")

    def _esxcli(self, verb: str, tried: str, **options: Any) -> list[Row]:
        what = option_of(self.desired.source) if verb == "install" else {"vibname": self.desired.name}
        command, patience = f"software vib {verb}", self.desired.install_timeout
        return self.host.esxcli.rows(command, tried=tried, patience=patience, **what, **options)

    def _rehearsed(self) -> dict[str, Any]:
        """The effect of the change, as a dry run of the host shows it; that needs no maintenance mode."""
        verb = "install" if self.desired.state == "present" else "remove"
        tried = f"rehearse to {verb} its {self.name}"
        try:
            answer = next(iter(self._esxcli(verb, tried, dryrun=True, maintenancemode=True)), Row())
        except Failed as error:
            remedy = error.remedy if is_of(error, vim.fault.NoPermission) else self._remedy()
            raise Refused(self.target, error.tried, error.said, remedy) from error
        return {
            "reboot": str(answer.get("RebootRequired", "")).lower() == "true",
            "installs": _listed(answer, "VIBsInstalled"),
            "removes": _listed(answer, "VIBsRemoved"),
        }

    def _remedy(self) -> str:
        if self.desired.state != "present":
            return "remove it by hand"
        checks = "check source, version and the host's version"
        with suppress(vmodl.MethodFault):  # what the host said of the VIB is worth more than what it says of this
            level = self.host["configManager.imageConfigManager"].QueryHostAcceptanceLevel()
            checks += f"; the host accepts level {level} and above"
        return checks


def plan_vib(current: Mapping[str, Any], desired: VibSpec, *, passthrough_ends: bool = False) -> Plan:
    """The plan that brings the desired version into the next boot, or the VIB out of it.

    While a GPU is in passthrough NVIDIA's VIBs are refused; where its passthrough ends in the same profile, they are
    for a later boot.
    """
    after = dict(current)
    blocked = _blocked(current, desired)
    if not _granted(current["next_boot"], desired):
        after["next_boot"] = desired.version if desired.state == "present" else None
        _refuse_impossible(current, desired, blocked and not passthrough_ends)
    changed = after["next_boot"] != current["next_boot"]
    late = changed and blocked
    why = (_late(current, desired),) if late else _boots(current, desired, changed)
    return Plan(
        before=current,
        after=after,
        needs=frozenset(({MAINTENANCE} if changed else set()) | ({REBOOT} if why and not late else set())),
        why=why,
        warnings=_warnings(current, desired) if changed else (),
        unmet=_unmet(current, desired) if changed and not late else (),
        later=frozenset({"next_boot"}) if late else frozenset(),
    )


def _blocked(current: Mapping[str, Any], desired: VibSpec) -> bool:
    """NVIDIA's VIBs are not installed while a GPU is in passthrough."""
    return bool(desired.state == "present" and NVIDIA.match(desired.name) and current["gpus_in_passthrough"])


def _may_change(current: Mapping[str, Any], desired: VibSpec) -> bool:
    """Whether there is something to rehearse; what is refused anyway, or is for a later boot, is not."""
    return not (_granted(current["next_boot"], desired) or current["image_of"] or _blocked(current, desired))


def _refuse_impossible(current: Mapping[str, Any], desired: VibSpec, blocked: bool) -> None:
    verb = "install" if desired.state == "present" else "remove"
    target, tried = f"VIB {desired.name}", f"{verb} it"
    if current["image_of"]:
        raise Refused(
            target,
            tried,
            f"the cluster {current['image_of']} is managed by an image, which would undo it at its next remediation",
            "change the component in the cluster's image with esxi_image and let vLCM remediate the hosts",
        )
    if blocked:
        raise Refused(
            target,
            tried,
            f"GPU {', '.join(current['gpus_in_passthrough'])} is in passthrough",
            "end that with esxi_passthrough, reboot the host, then install",
        )
    installs = (current["rehearsal"] or {}).get("installs", [])
    if (
        desired.state == "present"
        and not _blocked(current, desired)
        and not any(_is_vib(vib, desired) for vib in installs)
    ):
        raise Refused(
            target,
            tried,
            f"{desired.source} would install {', '.join(installs) or 'nothing'}, not {desired.name} {desired.version}",
            "correct name and version, or the source",
        )


def _late(current: Mapping[str, Any], desired: VibSpec) -> str:
    gpus = ", ".join(current["gpus_in_passthrough"])
    vib = f"{desired.name} {desired.version}"
    return f"{vib} is installed after the boot that ends the passthrough of GPU {gpus}, and needs another boot"


def _boots(current: Mapping[str, Any], desired: VibSpec, changed: bool) -> tuple[str, ...]:
    """The reasons why the host must boot until the desired state is in force."""
    name = f"{desired.name} {desired.version}" if desired.state == "present" else f"{desired.name}'s removal"
    if changed:
        # NVIDIA's guide has the host rebooted after every change of its manager, whatever the host says of it.
        boots = is_manager(desired.name) or (current["rehearsal"] or {}).get("reboot", True)
        return (f"{name} is taken only when the host boots",) if boots else ()
    if not _granted(current["running"], desired):
        return (f"{name} waits for the host to boot",)
    if desired.state == "present" and is_manager(desired.name) and current["gpus_without_driver"]:
        return (f"{name} is installed but drives no GPU until the host boots",)
    return ()


def _unmet(current: Mapping[str, Any], desired: VibSpec) -> tuple[str, ...]:
    if current["in_maintenance"]:
        return ()
    return (f"VIB {desired.name} is changed only in maintenance mode: enter it first",)


def _warnings(current: Mapping[str, Any], desired: VibSpec) -> tuple[str, ...]:
    removed = [vib for vib in (current["rehearsal"] or {}).get("removes", []) if not _bears(vib, desired.name)]
    texts = [f"this also removes {', '.join(removed)}"] if removed else []
    if desired.state == "present" and is_manager(desired.name) and current["others"]:
        texts.append(f"another vGPU manager is installed: {', '.join(current['others'])}")
    return tuple(texts)


def _granted(version: str | None, desired: VibSpec) -> bool:
    """Whether a version is the desired one; 550.90.05 means 550.90.05-1OEM.800.1.0.20613240 too."""
    if desired.state == "absent":
        return version is None
    return version is not None and (version == desired.version or version.startswith(f"{desired.version}-"))


def _is_vib(identity: str, desired: VibSpec) -> bool:
    """Whether VENDOR_bootbank_NAME_VERSION is the desired VIB; some servers name it without the vendor."""
    version = identity.rpartition("_bootbank_")[2].removeprefix(f"{desired.name}_")
    return _bears(identity, desired.name) and _granted(version, desired)


def _bears(identity: str, name: str) -> bool:
    """Whether an identity is of a VIB with that name."""
    return identity.rpartition("_bootbank_")[2].startswith(f"{name}_")


def _version(rows: Sequence[Row], name: str) -> str | None:
    return next((str(row["Version"]) for row in rows if row["Name"] == name), None)


def _other_managers(rows: Sequence[Row], name: str) -> list[str]:
    return [f"{row['Name']} {row['Version']}" for row in rows if is_manager(row["Name"]) and row["Name"] != name]


def _without_driver(host: Host, gpus: Mapping[str, Any]) -> list[str]:
    """The GPUs outside passthrough, where no driver runs any of them."""
    types = {one.pciId: one.graphicsType for one in host["config.graphicsInfo"] or []}
    ours = {gpu: types.get(gpu, "basic") for gpu, device in gpus.items() if pci_devices.passthrough_of(device) == "off"}
    return sorted(ours) if set(ours.values()) == {"basic"} else []


def _listed(answer: Row, key: str) -> list[str]:
    value = answer.get(key) or []
    return [value] if isinstance(value, str) else list(value)


def _members(host: Host, asked: Sequence[Mapping[str, Any]], context: ProfileContext) -> Iterator[PlannedSubject]:
    images, clusters = Images(host), context.images()
    for one in asked:
        desired = VibSpec.of(one)
        plan = partial(plan_vib, desired=desired, passthrough_ends=context.passthrough_ends)
        yield PlannedSubject(f"VIB {desired.name}", Vib(host, desired, clusters, images), plan)


def _check(asked: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Refuse a source that esxcli cannot take, before the hosts are read."""
    for one in asked:
        VibSpec.of(one)
    return {}


PART = Part(
    key="vibs",
    module="esxi_vib",
    spec=list_of(OPTIONS, required_if=REQUIRED_IF),
    members=_members,
    groups=(installed_vibs.GROUP,),
    kept=("vibs",),
    restore=restoring.vibs,
    restores="its absence, or the version that was installed before",
    calls=("esxcli software vib install", installed_vibs.LIST, "esxcli software vib remove", *NOTE),
    paths=PATHS,
    after=("passthrough",),
    result=_check,
)
