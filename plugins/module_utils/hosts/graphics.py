"""Subject: the sharing of a host's GPUs: the host's default, every NVIDIA device, and the assignment policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..core.versions import numbers
from ..errors import Refused
from ..maintenance import boot
from ..plan import MAINTENANCE, REBOOT, Plan, State
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.sdk import ApiObject, vim
from . import gpus
from .gpus import MIG, MODES, POLICY_NOTE, TYPES, active_types, name_of
from .part import Part, PlannedSubject, ProfileContext
from .privileges.privilege_table import NOTE
from .rollback import restoring

PATHS = ("configManager.graphicsManager", "configManager.serviceSystem", *gpus.PATHS)
POLICIES = ("performance", "consolidation")
OPTIONS: dict[str, Any] = {
    "type": {"type": "str", "choices": list(TYPES)},
    "policy": {"type": "str", "choices": list(POLICIES)},
    "vgpu_mode": {"type": "str", "choices": list(MODES)},
    "restart_xorg": {"type": "bool", "default": False},
}
REQUIRED_ONE_OF = [("type", "policy", "vgpu_mode")]
MODES_SINCE = (8, 0, 3)
MIG_PROCEDURE = (
    "enter maintenance mode: no virtual machine may use the GPU",
    "enable SSH on the host and run: nvidia-smi -i INDEX -mig 1 (0 switches it off)",
    "reset the GPU (nvidia-smi -i INDEX --gpu-reset) or reboot the host",
    "leave maintenance mode; the host then offers MIG-backed profiles such as grid_a100-2-10c",
)
XORG_SECONDS = 60
HOSTENGINE = (
    "NVIDIA's guide restarts nv-hostengine with Xorg, which the API cannot do: if it runs on the host, leave "
    "restart_xorg out and reboot the host"
)


@dataclass(frozen=True)
class GraphicsSpec:
    """The options of the user; None leaves a setting unchanged."""

    type: str | None = None
    policy: str | None = None
    vgpu_mode: str | None = None
    restart_xorg: bool = False


class Graphics:
    """The graphics settings of one host."""

    name = "graphics settings"

    def __init__(self, host: Host, desired: GraphicsSpec) -> None:
        self.host, self.target, self.desired = host, host.name, desired

    def read(self) -> State:
        """Return the configured and the active settings, and their GPUs."""
        self.host.must_answer(f"read its {self.name}")
        return gpus.facts(self.host)

    def apply(self, plan: Plan) -> None:
        """Write the complete configuration, which the API requires, and restart Xorg if requested."""
        changed = {change.key for change in plan.due}
        restarts = self.desired.restart_xorg and REBOOT not in plan.needs
        if "policy" in changed:
            boot.remember(self.host, POLICY_NOTE, plan.before["policy"])
        if changed & {"default_type", "types", "policy", "modes"}:
            config = self._config(plan.before, {**plan.before, **{change.key: change.after for change in plan.due}})
            with translating_faults(self.target, f"change its {self.name}"):
                self._graphics.UpdateGraphicsConfig(config)
            self.host.settle(
                ("config.graphicsConfig",),
                lambda values: _types_in(values.get("config.graphicsConfig")) == _types_in(config),
            )
        if restarts:
            self._restart_xorg(plan.after["active_types"])
            boot.forget(self.host, POLICY_NOTE)

    @property
    def _graphics(self) -> ApiObject:
        return self.host["configManager.graphicsManager"]

    def _config(self, before: State, after: State) -> ApiObject:
        """Return the configuration to write; entries of GPUs that do not change, and of other devices, are kept."""
        devices = {device.deviceId: device for device in self.host["config.graphicsConfig"].deviceType or []}
        for gpu in _differing(before, after):
            kind = after["types"][gpu] or after["default_type"]
            # A mode that is active by default is not written, because it would remain when the default changes.
            mode_changes = before["modes"][gpu] != after["modes"][gpu]
            mode = after["modes"][gpu] if mode_changes else name_of(getattr(devices.get(gpu), "vgpuMode", None))
            devices[gpu] = _device_type(gpu, kind, mode)
        return vim.host.GraphicsConfig(
            hostDefaultGraphicsType=TYPES[after["default_type"]],
            sharedPassthruAssignmentPolicy=after["policy"],
            deviceType=list(devices.values()),
        )

    def _restart_xorg(self, types: Mapping[str, str]) -> None:
        with translating_faults(self.target, "restart Xorg", "reboot the host instead"):
            self.host["configManager.serviceSystem"].Restart("xorg")
            self._graphics.Refresh()
        self.host.settle(
            ("config.graphicsInfo",),
            lambda values: active_types(values.get("config.graphicsInfo"), types) == types,
            XORG_SECONDS,
        )


def plan_graphics(
    current: State, desired: GraphicsSpec, *, passthrough_ends: bool = False, boots: bool = False
) -> Plan:
    """Return the plan that shares the GPUs as desired; GPUs in passthrough stay unchanged or wait for a later boot.

    ``boots``: the host is emptied and rebooted anyway, which makes a restart of Xorg unnecessary.
    """
    _refuse_impossible(current, desired)
    held = [address for address, gpu in current["gpus"].items() if gpu["passthrough"] != "off"]
    managed = [gpu for gpu in current["types"] if passthrough_ends or gpu not in held]
    after = _configured(current, desired, managed)
    waiting = [gpu for gpu in current["gpus"] if gpu not in held and _waits(current, desired, gpu)]
    if boots or not all(_takes_restart(current, desired, gpu) for gpu in waiting):
        desired = replace(desired, restart_xorg=False)
    restarted = waiting if desired.restart_xorg else []
    after["active_types"] = {**current["active_types"], **{gpu: desired.type for gpu in restarted if desired.type}}
    if desired.restart_xorg and desired.policy:
        after["active_policy"] = desired.policy
    changed = {change.key for change in Plan(current, after).changes}
    return Plan(
        before=current,
        after=after,
        needs=_needs(current, desired, bool(set(waiting) - set(restarted)), bool(changed)),
        why=_why(current, desired, waiting, restarted),
        warnings=(*_warnings(current, waiting, () if passthrough_ends else held), *([HOSTENGINE] if restarted else [])),
        unmet=_unmet(current, after, desired, bool(changed)),
        later=frozenset(changed & {"types", "modes"}) if passthrough_ends and held else frozenset(),
    )


def _refuse_impossible(current: State, desired: GraphicsSpec) -> None:
    tried, target = "share its GPUs", "graphics settings"
    if not current["gpus"]:
        raise Refused(target, tried, "the host has no NVIDIA GPU", "leave this host out")
    if current["default_type"] is None:
        raise Refused(
            target, tried, "the host does not report its graphics configuration", "ESXi 6.5 or later is needed"
        )
    if not desired.vgpu_mode:
        return
    if numbers(current["version"]) < MODES_SINCE:
        raise Refused(
            target,
            "set the vGPU mode",
            f"ESXi {current['version']} has no vGPU mode",
            "update it to 8.0.3 or leave vgpu_mode out",
        )
    in_mig = [gpu for gpu, mode in current["active_modes"].items() if mode == MIG]
    if in_mig:
        raise Refused(
            target,
            "set the vGPU mode",
            f"{', '.join(_label(current, gpu) for gpu in in_mig)} is in MIG mode, which has slices instead",
            "omit vgpu_mode, or switch MIG off by hand: " + "; ".join(MIG_PROCEDURE),
        )


def _configured(current: State, desired: GraphicsSpec, managed: Sequence[str]) -> dict[str, object]:
    """Return the state with the desired configuration; settings that the user omitted stay."""
    after = dict(current)
    if desired.type:
        after["default_type"] = desired.type
        after["types"] = {**current["types"], **dict.fromkeys(managed, desired.type)}
    if desired.policy:
        after["policy"] = desired.policy
    if desired.vgpu_mode:
        after["modes"] = {**current["modes"], **dict.fromkeys(managed, desired.vgpu_mode)}
    return after


def _waits(current: State, desired: GraphicsSpec, gpu: str) -> bool:
    """Return whether a GPU does not run as desired yet."""
    active = current["active_types"].get(gpu)
    # Without a driver, basic is equivalent to shared: a host whose vGPU manager was removed has reached it.
    type_differs = (
        desired.type and active != desired.type and not (desired.type == "shared" and active in (None, "basic"))
    )
    mode_differs = desired.vgpu_mode and current["active_modes"].get(gpu) != desired.vgpu_mode
    return bool(type_differs or mode_differs)


def _takes_restart(current: State, desired: GraphicsSpec, gpu: str) -> bool:
    """Return whether a restart of Xorg is enough: it changes only the type of a GPU that has a driver."""
    mode_differs = desired.vgpu_mode and current["active_modes"].get(gpu) != desired.vgpu_mode
    return current["active_types"].get(gpu) in TYPES and not mode_differs


def _policy_waits(current: State, desired: GraphicsSpec) -> bool:
    return bool(desired.policy and current["active_policy"] != desired.policy)


def _needs(current: State, desired: GraphicsSpec, boots: bool, changed: bool) -> frozenset[str]:
    boot = {REBOOT} if boots or (_policy_waits(current, desired) and not desired.restart_xorg) else set()
    return frozenset(boot | ({MAINTENANCE} if desired.restart_xorg and changed else set()))


def _why(current: State, desired: GraphicsSpec, waiting: Sequence[str], restarted: Sequence[str]) -> tuple[str, ...]:
    how = {gpu: "Xorg restarts" if gpu in restarted else "the host boots" for gpu in waiting}
    texts = [f"{_label(current, gpu)} runs as {_running(current, gpu)} until {how[gpu]}" for gpu in waiting]
    if _policy_waits(current, desired):
        when = "Xorg restarts" if desired.restart_xorg else "the host boots"
        texts.append(f"GPUs are assigned with the policy {current['active_policy']} until {when}")
    return tuple(texts)


def _warnings(current: State, waiting: Sequence[str], untouched: Sequence[str]) -> tuple[str, ...]:
    bare = [gpu for gpu in waiting if current["active_types"].get(gpu) in (None, "basic")]
    texts = [
        f"{_label(current, gpu)} is in passthrough and was left alone: esxi_passthrough ends it" for gpu in untouched
    ]
    remedy = "the setting takes effect after esxi_vib has installed the vGPU manager"
    texts += [f"the NVIDIA driver is not loaded for {_label(current, gpu)}: {remedy}" for gpu in bare]
    return tuple(texts)


def _unmet(current: State, after: State, desired: GraphicsSpec, changed: bool) -> tuple[str, ...]:
    """Return the reasons why the change must wait: GPUs that change are in use, or Xorg may not be restarted."""
    used = {gpu: vms for gpu in _differing(current, after) if (vms := current["gpus"][gpu]["vms"])}
    remedy = "move the virtual machines or power them off first"
    texts = [f"{_label(current, gpu)} is in use by {', '.join(vms)}: {remedy}" for gpu, vms in used.items()]
    if desired.restart_xorg and changed and not current["in_maintenance"]:
        texts.append("Xorg is restarted only in maintenance mode: enter it first, or leave restart_xorg out and reboot")
    return tuple(texts)


def _differing(before: State, after: State) -> list[str]:
    return [gpu for gpu in after["types"] if any(before[key][gpu] != after[key][gpu] for key in ("types", "modes"))]


def _types_in(config: ApiObject) -> tuple[object, ...]:
    devices = {device.deviceId: device.graphicsType for device in (config.deviceType if config else None) or []}
    return (config and config.hostDefaultGraphicsType, config and config.sharedPassthruAssignmentPolicy, devices)


def _device_type(gpu: str, kind: str, mode: str | None) -> ApiObject:
    device_type = vim.host.GraphicsConfig.DeviceType(deviceId=gpu, graphicsType=TYPES[kind])
    if mode in MODES:
        device_type.vgpuMode = MODES[mode]
    return device_type


def _label(current: State, gpu: str) -> str:
    return f"{current['gpus'][gpu]['name']} at {gpu}"


def _running(current: State, gpu: str) -> str:
    kind, mode = current["active_types"].get(gpu), current["active_modes"].get(gpu)
    return f"{kind or 'nothing'} ({mode})" if mode not in (None, "none") else f"{kind or 'nothing'}"


def _members(host: Host, requested: State, context: ProfileContext) -> Iterator[PlannedSubject]:
    desired = GraphicsSpec(**requested)
    plan = partial(plan_graphics, desired=desired, passthrough_ends=context.passthrough_ends)
    yield PlannedSubject("graphics", Graphics(host, desired), plan, partial(plan, boots=True))


PART = Part(
    key="graphics",
    module="esxi_graphics",
    spec={"type": "dict", "options": OPTIONS, "required_one_of": REQUIRED_ONE_OF},
    members=_members,
    groups=(gpus.GROUP,),
    kept=("graphics",),
    restore=restoring.graphics,
    restores="host default, type of each GPU, assignment policy",
    calls=(*NOTE, "HostSystem.RefreshGraphicsManager", "HostSystem.RestartService", "HostSystem.UpdateGraphicsConfig"),
    paths=PATHS,
    after=("vibs",),
    result=lambda _requested: {"mig_procedure": list(MIG_PROCEDURE)},
)
