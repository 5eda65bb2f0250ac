"""Subject: one VIB (software package) of a host: the running version, and the version after the next boot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from ..core.vgpu_manager import is_manager
from ..errors import Failed, Refused
from ..maintenance import boot
from ..plan import MAINTENANCE, REBOOT, Plan, State
from ..vsphere.esxcli import Row
from ..vsphere.faults import is_caused_by
from ..vsphere.inventory import Host
from ..vsphere.sdk import vim, vmodl
from . import pci_devices
from .part import Part, PlannedSubject, ProfileContext, list_of
from .privileges.privilege_table import NOTE
from .reading import Entry, Group, Reading
from .rollback import restoring

LIST = "esxcli software vib list"
NVIDIA = re.compile(r"(nvidia|nvd)", re.IGNORECASE)
_RDMA = re.compile(r"nmlx|mlnx", re.IGNORECASE)
_KEYS = {"name": "Name", "version": "Version", "vendor": "Vendor", "acceptance_level": "AcceptanceLevel"}


class InstalledVibs:
    """The VIBs of one host; several subjects share them, and they are read once between two refreshes."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._properties: Any = None
        self._images: tuple[list[Row], list[Row]] = ([], [])

    def read(self) -> tuple[list[Row], list[Row]]:
        """Return the VIBs of the running image, and those of the next boot; empty if no image waits for the boot."""
        if self._properties is not self.host.properties:
            run = self.host.esxcli.rows
            self._images = run("software vib list"), run("software vib list", rebootingimage=True)
            self._properties = self.host.properties
        return self._images


def _relevant(rows: Sequence[Row]) -> list[dict[str, str]]:
    chosen = [row for row in rows if NVIDIA.match(row["Name"]) or _RDMA.search(row["Name"])]
    return [{key: str(row.get(field, "")) for key, field in _KEYS.items()} for row in chosen]


def facts(vibs: InstalledVibs) -> dict[str, list[dict[str, str]]]:
    """Return the VIBs of NVIDIA and of RDMA cards, running and pending."""
    running, pending = vibs.read()
    return {"running": _relevant(running), "pending": _relevant(pending)}


def _read(reading: Reading) -> Entry:
    return {"vibs": facts(InstalledVibs(reading.host))}


def _waiting(entry: Entry) -> list[str]:
    running = {vib["name"]: vib["version"] for vib in entry["vibs"]["running"]}
    pending = [vib for vib in entry["vibs"]["pending"] if running.get(vib["name"]) != vib["version"]]
    return [f"VIB {vib['name']} {vib['version']}" for vib in pending]


GROUP = Group("vib", "packages", (), _read, (LIST,), waiting=_waiting)


PATHS = ("parent", "configManager.imageConfigManager", *pci_devices.PATHS, *boot.PATHS)
OPTIONS: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "version": {"type": "str"},
    "source": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "install_timeout": {"type": "int", "default": 1800},
}
REQUIRED_IF = [("state", "present", ("version", "source"))]
_DATASTORE = re.compile(r"\[([^\]/]+)\] *([^/].*)")


@dataclass(frozen=True)
class VibSpec:
    """The options of the user."""

    name: str
    version: str = ""
    source: str = ""
    state: str = "present"
    install_timeout: int = 1800

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> VibSpec:
        """Return the desired VIB for validated options; refuse a relative path or an unknown kind of file."""
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
        self, host: Host, desired: VibSpec, cluster_images: Mapping[str, str], installed: InstalledVibs | None = None
    ) -> None:
        self.host, self.desired, self.installed = host, desired, installed or InstalledVibs(host)
        self.cluster_images = cluster_images
        self.target, self.name = host.name, f"VIB {desired.name}"

    def read(self) -> State:
        """Return the running version, the version after the next boot, and a change's effect from a dry run."""
        self.host.must_answer(f"read its {self.name}")
        running, pending = self.installed.read()
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
        return {**state, "rehearsal": self._rehearse() if _may_change(state, self.desired) else None}

    def apply(self, plan: Plan) -> None:
        """Install or remove the VIB; the host checks signatures, and its acceptance level is never changed."""
        if is_manager(self.desired.name) and not (plan.before["rehearsal"] or {}).get("reboot"):
            # The host lists the new version immediately, but runs the old driver until it boots.
            boot.remember(self.host, self.name, plan.before["running"] or "")
        verb = "remove" if plan.after["next_boot"] is None else "install"
        self._esxcli(verb, f"{verb} its {self.name}")

    def _esxcli(self, verb: str, tried: str, **options: object) -> list[Row]:
        vib = option_of(self.desired.source) if verb == "install" else {"vibname": self.desired.name}
        command, patience = f"software vib {verb}", self.desired.install_timeout
        return self.host.esxcli.rows(command, tried=tried, patience=patience, **vib, **options)

    def _rehearse(self) -> dict[str, object]:
        """Return the effect of the change from a dry run on the host, which does not need maintenance mode."""
        verb = "install" if self.desired.state == "present" else "remove"
        tried = f"rehearse to {verb} its {self.name}"
        try:
            answer = next(iter(self._esxcli(verb, tried, dryrun=True, maintenancemode=True)), Row())
        except Failed as error:
            remedy = error.remedy if is_caused_by(error, vim.fault.NoPermission) else self._remedy()
            raise Refused(self.target, error.tried, error.reason, remedy) from error
        return {
            "reboot": str(answer.get("RebootRequired", "")).lower() == "true",
            "installs": _listed(answer, "VIBsInstalled"),
            "removes": _listed(answer, "VIBsRemoved"),
        }

    def _remedy(self) -> str:
        if self.desired.state != "present":
            return "remove it by hand"
        checks = "check source, version and the host's version"
        with suppress(vmodl.MethodFault):  # the error about the VIB is more useful than an error of this call
            level = self.host["configManager.imageConfigManager"].QueryHostAcceptanceLevel()
            checks += f"; the host accepts level {level} and above"
        return checks


def plan_vib(current: State, desired: VibSpec, *, passthrough_ends: bool = False) -> Plan:
    """Return the plan that adds the desired version to the image for the next boot, or removes the VIB from it.

    While a GPU is in passthrough, NVIDIA's VIBs are refused; if the same profile ends its passthrough, they are
    planned for a later boot.
    """
    after = dict(current)
    blocked = _blocked(current, desired)
    if not _is_desired(current["next_boot"], desired):
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


def _blocked(current: State, desired: VibSpec) -> bool:
    """Return whether a GPU in passthrough prevents the installation, which applies to NVIDIA's VIBs."""
    return bool(desired.state == "present" and NVIDIA.match(desired.name) and current["gpus_in_passthrough"])


def _may_change(current: State, desired: VibSpec) -> bool:
    """Return whether to rehearse a change: not if it is refused anyway or planned for a later boot."""
    return not (_is_desired(current["next_boot"], desired) or current["image_of"] or _blocked(current, desired))


def _refuse_impossible(current: State, desired: VibSpec, blocked: bool) -> None:
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


def _late(current: State, desired: VibSpec) -> str:
    gpus = ", ".join(current["gpus_in_passthrough"])
    vib = f"{desired.name} {desired.version}"
    return f"{vib} is installed after the boot that ends the passthrough of GPU {gpus}, and needs another boot"


def _boots(current: State, desired: VibSpec, changed: bool) -> tuple[str, ...]:
    """Return the reasons why the host must boot for the desired state to take effect."""
    name = f"{desired.name} {desired.version}" if desired.state == "present" else f"{desired.name}'s removal"
    if changed:
        # NVIDIA's guide reboots the host after every change of its manager, even if the host does not request it.
        boots = is_manager(desired.name) or (current["rehearsal"] or {}).get("reboot", True)
        return (f"{name} takes effect only when the host boots",) if boots else ()
    if not _is_desired(current["running"], desired):
        return (f"{name} waits for the host to boot",)
    if desired.state == "present" and is_manager(desired.name) and current["gpus_without_driver"]:
        return (f"{name} is installed, but its driver runs no GPU until the host boots",)
    return ()


def _unmet(current: State, desired: VibSpec) -> tuple[str, ...]:
    if current["in_maintenance"]:
        return ()
    return (f"VIB {desired.name} is changed only in maintenance mode: enter it first",)


def _warnings(current: State, desired: VibSpec) -> tuple[str, ...]:
    removed = [vib for vib in (current["rehearsal"] or {}).get("removes", []) if not _has_name(vib, desired.name)]
    texts = [f"this also removes {', '.join(removed)}"] if removed else []
    if desired.state == "present" and is_manager(desired.name) and current["others"]:
        texts.append(f"another vGPU manager is installed: {', '.join(current['others'])}")
    return tuple(texts)


def _is_desired(version: str | None, desired: VibSpec) -> bool:
    """Return whether a version is the desired one; 550.90.05 also matches 550.90.05-1OEM.800.1.0.20613240."""
    if desired.state == "absent":
        return version is None
    return version is not None and (version == desired.version or version.startswith(f"{desired.version}-"))


def _is_vib(identity: str, desired: VibSpec) -> bool:
    """Return whether VENDOR_bootbank_NAME_VERSION is the desired VIB; some servers omit the vendor."""
    version = identity.rpartition("_bootbank_")[2].removeprefix(f"{desired.name}_")
    return _has_name(identity, desired.name) and _is_desired(version, desired)


def _has_name(identity: str, name: str) -> bool:
    return identity.rpartition("_bootbank_")[2].startswith(f"{name}_")


def _version(rows: Sequence[Row], name: str) -> str | None:
    return next((str(row["Version"]) for row in rows if row["Name"] == name), None)


def _other_managers(rows: Sequence[Row], name: str) -> list[str]:
    return [f"{row['Name']} {row['Version']}" for row in rows if is_manager(row["Name"]) and row["Name"] != name]


def _without_driver(host: Host, gpus: Mapping[str, pci_devices.PciDevice]) -> list[str]:
    """Return the GPUs that are not in passthrough, if none of them has a driver."""
    types = {gpu.pciId: gpu.graphicsType for gpu in host["config.graphicsInfo"] or []}
    on_host = [gpu for gpu, device in gpus.items() if pci_devices.passthrough_of(device) == "off"]
    return sorted(on_host) if {types.get(gpu, "basic") for gpu in on_host} == {"basic"} else []


def _listed(answer: Row, key: str) -> list[str]:
    value = answer.get(key) or []
    return [value] if isinstance(value, str) else list(value)


def _members(
    host: Host, requested: Sequence[Mapping[str, object]], context: ProfileContext
) -> Iterator[PlannedSubject]:
    installed, cluster_images = InstalledVibs(host), context.images()
    for options in requested:
        desired = VibSpec.from_options(options)
        plan = partial(plan_vib, desired=desired, passthrough_ends=context.passthrough_ends)
        yield PlannedSubject(f"VIB {desired.name}", Vib(host, desired, cluster_images, installed), plan)


def _check(requested: Sequence[Mapping[str, object]]) -> Mapping[str, Any]:
    """Refuse a source that esxcli does not accept, before the hosts are read."""
    for options in requested:
        VibSpec.from_options(options)
    return {}


def option_of(source: str) -> dict[str, str]:
    """Return the esxcli option for a source: ``depot`` for an offline bundle or an online depot, else ``viburl``."""
    location = _absolute(source)
    file = urlsplit(location).path.rsplit("/", maxsplit=1)[-1].lower()
    if file.endswith(".vib"):
        return {"viburl": location}
    if file.endswith(".zip") or (file.endswith(".xml") and "://" in location):
        return {"depot": location}
    raise Refused(
        "source",
        "read it",
        f"{source!r} is neither a .zip bundle, nor a .vib, nor the URL of a depot's index.xml",
        "correct it",
    )


def _absolute(source: str) -> str:
    """Return a path below /vmfs/volumes, also for "[datastore] folder/file", or a URL."""
    match = _DATASTORE.fullmatch(source.strip())
    if match:
        return f"/vmfs/volumes/{match[1]}/{match[2]}"
    if urlsplit(source).username is not None:
        # The errors of esxcli and the logs of the host contain the URL.
        raise Refused(
            "source", "read it", "its URL contains an account", "serve the file without one, or use a datastore"
        )
    if source.startswith("/") or urlsplit(source).scheme in ("http", "https"):
        return source
    raise Refused(
        "source",
        "read it",
        f"{source!r} is a relative path, which esxcli does not accept",
        "write [datastore] folder/file, /vmfs/volumes/DATASTORE/folder/file, or an http(s) URL",
    )


PART = Part(
    key="vibs",
    module="esxi_vib",
    spec=list_of(OPTIONS, required_if=REQUIRED_IF),
    members=_members,
    groups=(GROUP,),
    kept=("vibs",),
    restore=restoring.vibs,
    restores="its absence, or the previously installed version",
    calls=("esxcli software vib install", LIST, "esxcli software vib remove", *NOTE),
    paths=PATHS,
    after=("passthrough",),
    result=_check,
)
