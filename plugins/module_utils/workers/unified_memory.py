"""The unified memory of a worker's vGPUs: CUDA's memory pools need it, but vSphere cannot move a worker with it."""

from __future__ import annotations

import re

from ..errors import Refused
from ..plan import State
from ..vsphere.options import is_on
from .capacity import machines
from .machine import Machine
from .worker_gpus import demand_of
from .worker_spec import WorkerSpec

OPTION = "vgpu_unified_memory"
CONSEQUENCE = (
    "its vGPUs have unified memory, so vSphere cannot move the worker: its host changes only after the "
    "worker is shut down"
)
_FLAG = re.compile(r"pciPassthru(\d+)\.cfg\.enable_uvm")
# https://docs.nvidia.com/vgpu/latest/grid-vgpu-user-guide/: one setting for each vGPU, starting at 0.
_SETTING = "pciPassthru{}.cfg.enable_uvm"


def state(machine: Machine) -> bool | None:
    """Return whether all vGPUs have unified memory; None if some of them have it."""
    numbers = {
        int(match[1]) for key, value in machine.extra.items() if (match := _FLAG.fullmatch(key)) and is_on(value)
    }
    if not numbers:
        return False
    return True if numbers.issuperset(range(len(machines.vgpus(machine.values)))) else None


def desired_state(desired: WorkerSpec, current: State) -> bool | None:
    """Return the desired state; the current one if it is not managed."""
    desired_value: bool | None = desired[OPTION]
    if desired_value is None:
        kept: bool | None = current[OPTION]
        return kept
    gpus = desired.gpus
    if desired_value and gpus is not None and not demand_of(gpus, 0, 0).vgpus:
        message = "unified memory is a setting of vGPUs, and the worker has none"
        raise Refused(desired.name, f"set {OPTION}", message, f"remove {OPTION}, or give it a GPU with a profile")
    return desired_value


def options(desired: WorkerSpec, machine: Machine) -> dict[str, str]:
    """Return the advanced settings of the desired state; an empty text removes a setting."""
    desired_value: bool | None = desired[OPTION]
    there = {key: "" for key in machine.extra if _FLAG.fullmatch(key)}
    if desired_value is None:
        return {}
    if not desired_value:
        return there
    gpus = desired.gpus
    count = len(machines.vgpus(machine.values) if gpus is None else demand_of(gpus, 0, 0).vgpus)
    return {**there, **{_SETTING.format(number): "1" for number in range(count)}}
