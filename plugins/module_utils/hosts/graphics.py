# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: how the GPUs of a host are shared: the host's default, every NVIDIA device, and the assignment policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..core.versions import numbers
from ..errors import Refused
from ..maintenance import boot
from ..plan import MAINTENANCE, REBOOT, Plan
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.sdk import vim
from . import gpus
from .gpus import MIG, MODES, POLICY_NOTE, TYPES, active_types, ours
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
    "NVIDIA's guide restarts nv-hostengine beside Xorg, which the API cannot: where it runs, leave restart_xorg out "
    "and reboot the host"
)


@dataclass(frozen=True)
class GraphicsSpec:
    """The options of the user; None leaves a setting as it is."""

    type: str | None = None
    policy: str | None = None
    vgpu_mode: str | None = None
    restart_xorg: bool = False


class Graphics:
    """The graphics settings of one host."""

    name = "graphics settings"

    def __init__(self, host: Host, desired: GraphicsSpec) -> None:
        self.host, self.target, self.desired = host, host.name, desired

    def read(self) -> dict[str, Any]:
        """The settings as configured and as active, and the GPUs they are about."""
        self.host.must_answer(f"read its {self.name}")
        return gpus.facts(self.host)

    def apply(self, plan: Plan) -> None:
        """Write the whole configuration, as the API wants it, and restart Xorg where that was asked for."""
        changed = {change.key for change in plan.due}
        restarts = self.desired.restart_xorg and REBOOT not in plan.needs
        if "policy" in changed and not restarts:
            boot.remember(self.host, POLICY_NOTE, plan.before["policy"])
        if changed & {"default_type", "types", "policy", "modes"}:
            wanted = self._config({**plan.before, **{change.key: change.after for change in plan.due}}, plan.before)
            with translating_faults(self.target, f"change its {self.name}"):
                self._graphics.UpdateGraphicsConfig(wanted)
            self.host.settle(
                ("config.graphicsConfig",),
                lambda values: _types_in(values.get("config.graphicsConfig")) == _types_in(wanted),
            )
        if restarts:
            self._restart_xorg(plan.after["active_types"])

    @property
    def _graphics(self) -> Any:
        return self.host["configManager.graphicsManager"]

    def _config(self, wanted: Mapping[str, Any], before: Mapping[str, Any]) -> Any:
        """The wanted configuration; entries that do not change, and those of other devices, are kept as they are."""
        kept = {one.deviceId: one for one in self.host["config.graphicsConfig"].deviceType or []}
        for gpu in _differing(before, wanted):
            kind = wanted["types"][gpu] or wanted["default_type"]
            # A mode that is active by default is not written: it would outlive what made it the default.
            asked = before["modes"][gpu] != wanted["modes"][gpu]
            mode = wanted["modes"][gpu] if asked else ours(getattr(kept.get(gpu), "vgpuMode", None))
            kept[gpu] = _device_type(gpu, kind, mode)
        return vim.host.GraphicsConfig(
            hostDefaultGraphicsType=TYPES[wanted["default_type"]],
            sharedPassthruAssignmentPolicy=wanted["policy"],
            deviceType=list(kept.values()),
        )

    def _restart_xorg(self, wanted: Mapping[str, str]) -> None:
        with translating_faults(self.target, "restart Xorg", "reboot the host instead"):
            self.host["configManager.serviceSystem"].Restart("xorg")
            self._graphics.Refresh()
        self.host.settle(
            ("config.graphicsInfo",),
            lambda values: active_types(values.get("config.graphicsInfo"), wanted) == wanted,
            XORG_SECONDS,
        )


def plan_graphics(
    current: Mapping[str, Any], desired: GraphicsSpec, *, passthrough_ends: bool = False, boots: bool = False
) -> Plan:
    """The plan that shares the GPUs as desired; those in passthrough stay, or wait for a later boot.

    ``boots``: the host is emptied and rebooted anyway, which does more than a restart of Xorg.
    """
    _refuse_impossible(current, desired)
    held = [gpu for gpu, facts_ in current["gpus"].items() if facts_["passthrough"] != "off"]
    managed = [gpu for gpu in current["types"] if passthrough_ends or gpu not in held]
    after = _configured(current, desired, managed)
    waiting = [gpu for gpu in current["gpus"] if gpu not in held and _waits(current, desired, gpu)]
    if boots or not all(_takes_restart(current, desired, gpu) for gpu in waiting):
        desired = replace(desired, restart_xorg=False)
    restarted = waiting if desired.restart_xorg else []
    after["active_types"] = {**current["active_types"], **{gpu: desired.type for gpu in restarted if desired.type}}
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


def _refuse_impossible(current: Mapping[str, Any], desired: GraphicsSpec) -> None:
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
            f"ESXi {current['version']} has none",
            "update it to 8.0.3 or leave vgpu_mode out",
        )
    in_mig = [gpu for gpu, mode in current["active_modes"].items() if mode == MIG]
    if in_mig:
        raise Refused(
            target,
            "set the vGPU mode",
            f"{', '.join(_called(current, gpu) for gpu in in_mig)} is in MIG mode, which has slices instead",
            "leave vgpu_mode out, or switch MIG off by hand: " + "; ".join(MIG_PROCEDURE),
        )


def _configured(current: Mapping[str, Any], desired: GraphicsSpec, managed: Sequence[str]) -> dict[str, Any]:
    """The state with the desired configuration; settings that were not given stay."""
    after = dict(current)
    if desired.type:
        after["default_type"] = desired.type
        after["types"] = {**current["types"], **dict.fromkeys(managed, desired.type)}
    if desired.policy:
        after["policy"] = desired.policy
    if desired.vgpu_mode:
        after["modes"] = {**current["modes"], **dict.fromkeys(managed, desired.vgpu_mode)}
    return after


def _waits(current: Mapping[str, Any], desired: GraphicsSpec, gpu: str) -> bool:
    """Whether a GPU does not run as desired yet."""
    active = current["active_types"].get(gpu)
    # Without a driver there is nothing between basic and shared: a host that gave its vGPU manager back is there.
    type_differs = (
        desired.type and active != desired.type and not (desired.type == "shared" and active in (None, "basic"))
    )
    mode_differs = desired.vgpu_mode and current["active_modes"].get(gpu) != desired.vgpu_mode
    return bool(type_differs or mode_differs)


def _takes_restart(current: Mapping[str, Any], desired: GraphicsSpec, gpu: str) -> bool:
    """Whether a restart of Xorg is enough: it changes the type of a GPU that a driver runs, nothing else."""
    mode_differs = desired.vgpu_mode and current["active_modes"].get(gpu) != desired.vgpu_mode
    return current["active_types"].get(gpu) in TYPES and not mode_differs


def _policy_waits(current: Mapping[str, Any], desired: GraphicsSpec) -> bool:
    return bool(desired.policy and current["active_policy"] != desired.policy)


def _needs(current: Mapping[str, Any], desired: GraphicsSpec, boots: bool, changed: bool) -> frozenset[str]:
    boot = {REBOOT} if boots or (_policy_waits(current, desired) and not desired.restart_xorg) else set()
    return frozenset(boot | ({MAINTENANCE} if desired.restart_xorg and changed else set()))


def _why(
    current: Mapping[str, Any], desired: GraphicsSpec, waiting: Sequence[str], restarted: Sequence[str]
) -> tuple[str, ...]:
    how = {gpu: "Xorg restarts" if gpu in restarted else "the host boots" for gpu in waiting}
    texts = [f"{_called(current, gpu)} runs as {_running(current, gpu)} until {how[gpu]}" for gpu in waiting]
    if _policy_waits(current, desired):
        when = "Xorg restarts" if desired.restart_xorg else "the host boots"
        texts.append(f"GPUs are assigned by {current['active_policy']} until {when}")
    return tuple(texts)


def _warnings(current: Mapping[str, Any], waiting: Sequence[str], untouched: Sequence[str]) -> tuple[str, ...]:
    bare = [gpu for gpu in waiting if current["active_types"].get(gpu) in (None, "basic")]
    texts = [
        f"{_called(current, gpu)} is in passthrough and was left alone: esxi_passthrough ends it" for gpu in untouched
    ]
    cure = "this takes force with the vGPU manager, which esxi_vib installs"
    texts += [f"no NVIDIA driver runs {_called(current, gpu)} yet: {cure}" for gpu in bare]
    return tuple(texts)


def _unmet(
    current: Mapping[str, Any], after: Mapping[str, Any], desired: GraphicsSpec, changed: bool
) -> tuple[str, ...]:
    """Why it cannot be done now: the GPUs that change are in use, or Xorg may not be restarted."""
    used = {gpu: vms for gpu in _differing(current, after) if (vms := current["gpus"][gpu]["vms"])}
    texts = [f"{', '.join(vms)} on {_called(current, gpu)}: move or power off first" for gpu, vms in used.items()]
    if desired.restart_xorg and changed and not current["in_maintenance"]:
        texts.append("Xorg is restarted only in maintenance mode: enter it first, or leave restart_xorg out and reboot")
    return tuple(texts)


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [gpu for gpu in after["types"] if any(before[key][gpu] != after[key][gpu] for key in ("types", "modes"))]


def _types_in(config: Any) -> tuple[Any, ...]:
    devices = {one.deviceId: one.graphicsType for one in (config.deviceType if config else None) or []}
    return (config and config.hostDefaultGraphicsType, config and config.sharedPassthruAssignmentPolicy, devices)


def _device_type(gpu: str, kind: str, mode: str | None) -> Any:
    made = vim.host.GraphicsConfig.DeviceType(deviceId=gpu, graphicsType=TYPES[kind])
    if mode in MODES:
        made.vgpuMode = MODES[mode]
    return made


def _called(current: Mapping[str, Any], gpu: str) -> str:
    return f"{current['gpus'][gpu]['name']} at {gpu}"


def _running(current: Mapping[str, Any], gpu: str) -> str:
    kind, mode = current["active_types"].get(gpu), current["active_modes"].get(gpu)
    return f"{kind or 'nothing'} ({mode})" if mode not in (None, "none") else f"{kind or 'nothing'}"


def _members(host: Host, asked: Mapping[str, Any], context: ProfileContext) -> Iterator[PlannedSubject]:
    desired = GraphicsSpec(**asked)
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
    calls=(
        *NOTE,
        "HostSystem.RefreshGraphicsManager",
        "HostSystem.RestartService",
        "HostSystem.UpdateGraphicsConfig",
    ),
    paths=PATHS,
    after=("vibs",),
    result=lambda _asked: {"mig_procedure": list(MIG_PROCEDURE)},
)
