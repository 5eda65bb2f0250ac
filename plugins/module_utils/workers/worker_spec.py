"""The options of worker VMs: their specification, the defaults for all workers of a call, and their checks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core import names
from ..errors import Refused
from .placement.host_room import group_profiles
from .placement.place import DeviceRequest

_NETWORK: dict[str, Any] = {"portgroup": {"type": "str"}, "mac": {"type": "str"}}
_WORKER: dict[str, Any] = {
    "template": {"type": "raw"},
    "clone": {"type": "str", "choices": ["full", "linked"]},
    "snapshot": {"type": "str"},
    "folder": {"type": "str"},
    "resource_pool": {"type": "str"},
    "datastore": {"type": "str"},
    "storage_policy": {"type": "str"},
    "host": {"type": "str"},
    "cpus": {"type": "int"},
    "cores_per_socket": {"type": "int"},
    "memory_mb": {"type": "int"},
    "reserve_memory": {"type": "bool"},
    "numa": {"type": "dict"},
    "latency_sensitivity": {"type": "str", "choices": ["normal", "high"]},
    "firmware": {"type": "str", "choices": ["bios", "efi"]},
    "vmotion_encryption": {"type": "str", "choices": ["required", "opportunistic", "disabled"]},
    "gpus": {
        "type": "list",
        "elements": "dict",
        "options": {
            "profile": {"type": "str"},
            "group": {"type": "str"},
            "device": {"type": "str"},
            "label": {"type": "str"},
            "device_class": {"type": "str"},
            "address": {"type": "str"},
            "count": {"type": "int", "default": 1},
            "memory_gb": {"type": "int"},
        },
        "required_one_of": [("profile", "group", "device", "label", "device_class", "address")],
        "mutually_exclusive": [
            ("profile", "group", "device", "device_class", "address"),
            ("profile", "group", "label", "device_class", "address"),
        ],
    },
    "mmio_gb": {"type": "int"},
    "vgpu_unified_memory": {"type": "bool"},
    "rdma_nics": {
        "type": "list",
        "elements": "dict",
        "options": {
            **_NETWORK,
            "protocol": {"type": "str", "choices": ["rocev1", "rocev2"]},
            "device_class": {"type": "str"},
        },
    },
    "management_nic": {"type": "dict", "options": _NETWORK},
    "disks_gb": {"type": "list", "elements": "int"},
    "guest": {
        "type": "dict",
        "options": {
            "hostname": {"type": "str"},
            "address": {"type": "str"},
            "gateway": {"type": "str"},
            "dns": {"type": "list", "elements": "str"},
            "rdma_addresses": {"type": "list", "elements": "str"},
            "rdma_mtu": {"type": "int"},
            "user": {"type": "str"},
            "ssh_keys": {"type": "list", "elements": "str", "no_log": False},
        },
    },
    "annotation": {"type": "str"},
    "tenant": {"type": "str"},
    "role": {"type": "str"},
    "power": {"type": "str", "choices": ["on", "off"]},
}
OPTIONS: dict[str, Any] = {
    "cluster": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "workers": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {"name": {"type": "str", "required": True}, **_WORKER},
    },
    "defaults": {"type": "dict", "options": _WORKER},
    "hosts": {"type": "list", "elements": "str"},
    "to_come": {
        "type": "dict",
        "options": {
            "port_groups": {"type": "list", "elements": "str", "default": []},
            "gpus": {"type": "bool", "default": False},
        },
    },
    "one_per_host": {"type": "bool", "default": True},
    "same_numa_node": {"type": "str", "choices": ["require", "prefer", "ignore"], "default": "prefer"},
    "allow_moves": {"type": "bool", "default": False},
    "adopt": {"type": "bool", "default": False},
    "put_back": {"type": "bool", "default": False},
    "power_cycle": {"type": "bool", "default": False},
    "wait_for_address": {"type": "bool", "default": True},
    "clone_timeout": {"type": "int", "default": 3600},
    "power_timeout": {"type": "int", "default": 300},
    "force_off": {"type": "bool", "default": True},
    "address_timeout": {"type": "int", "default": 600},
}
BUILT_IN = {"clone": "full", "reserve_memory": True, "role": "worker", "tenant": "", "power": "on"}
PROTOCOL = "rocev2"
DISK_FORMATS = ("", "thin", "thick", "eagerZeroedThick")
_KIND = re.compile(r"10de:[0-9a-f]{4}")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


@dataclass(frozen=True)
class Gpu:
    """One GPU of a worker: a vGPU, a device group, a PCI device, or a device of a class."""

    profile: str = ""
    group: str = ""
    device: DeviceRequest = field(default_factory=DeviceRequest)
    memory_gb: int | None = None

    def __str__(self) -> str:
        return self.profile or self.group or str(self.device)


@dataclass(frozen=True)
class LibraryTemplate:
    """A template in a content library, with the options for the deployment of an OVF item."""

    library: str
    item: str
    accept_eula: bool = False
    networks: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    disk_format: str = ""

    @property
    def path(self) -> str:
        """Return the name of the item with that of its library."""
        return f"{self.library}/{self.item}"


@dataclass(frozen=True)
class WorkerSpec:
    """The options of one worker; an option that is None is not managed.

    For a template in a content library, the option ``template`` is its path.
    """

    name: str
    given: Mapping[str, Any]
    gpus: tuple[Gpu, ...] | None = None
    library: LibraryTemplate | None = None

    def __getitem__(self, key: str) -> Any:
        return self.given.get(key)


@dataclass(frozen=True)
class PendingPreparation:
    """The port groups and GPUs that will be prepared before the workers are built.

    Check mode includes them in its plan; a real run requires them.
    """

    port_groups: tuple[str, ...] = ()
    gpus: bool = False


@dataclass(frozen=True)
class WorkerSetOptions:
    """The options for all workers of a call."""

    cluster: str
    state: str = "present"
    hosts: tuple[str, ...] | None = None
    one_per_host: bool = True
    same_numa_node: str = "prefer"
    allow_moves: bool = False
    adopt: bool = False
    put_back: bool = False
    power_cycle: bool = False
    wait_for_address: bool = True
    clone_timeout: int = 3600
    power_timeout: int = 300
    force_off: bool = True
    address_timeout: int = 600
    to_come: PendingPreparation = PendingPreparation()


def set_options_of(params: Mapping[str, Any]) -> WorkerSetOptions:
    keys = WorkerSetOptions.__dataclass_fields__
    hosts, coming = params.get("hosts"), params.get("to_come") or {}
    made = {
        "hosts": tuple(hosts) if hosts else None,
        "to_come": PendingPreparation(tuple(coming.get("port_groups") or ()), bool(coming.get("gpus"))),
    }
    return WorkerSetOptions(**{**{key: params[key] for key in keys if key in params}, **made})


def worker_specs_of(params: Mapping[str, Any]) -> list[WorkerSpec]:
    """Return the checked specifications of the workers, each merged with the defaults."""
    defaults = _given(params.get("defaults") or {})
    worker_specs = [_desired(_merged(_merged(BUILT_IN, defaults), _given(options))) for options in params["workers"]]
    names = [desired.name for desired in worker_specs]
    for name in names:
        if names.count(name) > 1:
            raise Refused(name, "take it as a worker", "it is named twice in this call", "name it once")
    return worker_specs


def _given(options: Mapping[str, object]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}


def _merged(defaults: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, object]:
    """Return the options of a worker merged with the defaults: management NIC, guest and NUMA, key by key."""
    merged = {**defaults, **options}
    for key in ("management_nic", "guest", "numa"):
        if key in merged:
            merged[key] = {**_given(defaults.get(key) or {}), **_given(options.get(key) or {})}
    if "rdma_nics" in merged:
        merged["rdma_nics"] = [_given(nic) for nic in merged["rdma_nics"]]
    return merged


def _desired(options: dict[str, Any]) -> WorkerSpec:
    name = options.pop("name")
    _check(name, options)
    entries = options.pop("gpus", None)
    gpus = None if entries is None else tuple(gpu for entry in entries for gpu in _gpus(name, _given(entry)))
    library = _library_template(name, options.get("template"))
    return WorkerSpec(name, {**options, "template": library.path} if library else options, gpus, library)


def _library_template(name: str, given: Any) -> LibraryTemplate | None:
    """Return the template in a library; None for a template by its name, or without a template."""
    if given is None or isinstance(given, str):
        return None
    known = {"library": str, "item": str, "accept_eula": bool, "networks": dict, "properties": dict, "disk_format": str}
    wrong = "it is neither a name nor a library and an item"
    if isinstance(given, dict):
        wrong = next((f"it has no {key}" for key in ("library", "item") if not given.get(key)), "")
        wrong = wrong or next((f"{key} is unknown" for key in given if key not in known), "")
        wrong = wrong or next(
            (f"{key} has another type" for key in given if not isinstance(given[key], known[key])), ""
        )
        if given.get("disk_format", "") not in DISK_FORMATS:
            wrong = wrong or f"disk_format is {given['disk_format']!r}, not one of {', '.join(DISK_FORMATS[1:])}"
    if wrong:
        raise Refused(name, "use its template", wrong, "write it as NAME or {library: NAME, item: NAME}")
    texts = {
        key: {str(one): str(value) for one, value in given.get(key, {}).items()} for key in ("networks", "properties")
    }
    return LibraryTemplate(**{**given, **texts})


def _gpus(name: str, entry: Mapping[str, Any]) -> Sequence[Gpu]:
    if entry["count"] < 1:
        raise Refused(name, "assign GPUs", f"count is {entry['count']}", "remove the entry to assign none")
    kind = str(entry.get("device", "")).lower()
    if kind and not _KIND.fullmatch(kind):
        raise Refused(
            name, "use the GPU's device", f"{kind!r} is not an NVIDIA vendor:device ID", "write it as 10de:20f1"
        )
    if entry.get("group") and not group_profiles(entry["group"]):
        reason = f"{entry['group']!r} is not the name of a device group"
        raise Refused(name, "use the GPUs' group", reason, "write it as Nvidia:2@grid_a100-40c%NVLink")
    address, device_class = str(entry.get("address", "")).lower(), str(entry.get("device_class", ""))
    desired = DeviceRequest(kind, entry.get("label", ""), address, device_class)
    return [Gpu(entry.get("profile", ""), entry.get("group", ""), desired, entry.get("memory_gb"))] * entry["count"]


def _check(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that contradict each other, without a call to the server."""
    cpus, cores = options.get("cpus"), options.get("cores_per_socket")
    checks = (
        (names.is_machine(name), "name it", "a name has letters, digits, dots, dashes", "choose another name"),
        (not cpus or cpus > 0, "set its CPUs", f"cpus is {cpus}", "set at least one"),
        (
            not cpus or not cores or cpus % cores == 0,
            "set its sockets",
            f"{cpus} CPUs are not a multiple of {cores} cores",
            "choose a cores_per_socket that divides cpus",
        ),
        (options.get("memory_mb", 4) % 4 == 0, "set its memory", "memory_mb is not a multiple of 4", "round it"),
        (
            options.get("clone") != "linked" or options.get("template"),
            "clone it",
            "a linked clone needs a template",
            "name the template",
        ),
    )
    for good, tried, reported, remedy in checks:
        if not good:
            raise Refused(name, tried, reported, remedy)
    _check_devices(name, options)


def _check_devices(name: str, options: Mapping[str, Any]) -> None:
    if any(gpu.get("address") for gpu in options.get("gpus") or []) and not options.get("host"):
        reason = "a PCI address identifies a different device on each host"
        raise Refused(
            name, "assign a GPU by address", reason, "name its host too, or choose the GPU by device or label"
        )
    if "management_nic" in options:
        _check_nic(name, "management_nic", options["management_nic"])
    for nic in options.get("rdma_nics") or []:
        _check_nic(name, "rdma_nics", nic)


def _check_nic(name: str, key: str, given: Mapping[str, Any]) -> None:
    checks = (
        (given.get("portgroup"), "no port group is named", "name one in portgroup"),
        (
            not given.get("mac") or _MAC.fullmatch(given["mac"].lower()),
            f"{given.get('mac')!r} is not a MAC address",
            "correct it",
        ),
        (
            not (given.get("device_class") and given.get("protocol")),
            "protocol is a setting of PVRDMA, and device_class makes it another card",
            "remove one of them",
        ),
    )
    for good, reported, remedy in checks:
        if not good:
            raise Refused(name, f"configure its {key}", reported, remedy)
