"""Whether the NCCL of a job starts on GPUs: some versions need memory pools, which a vGPU that moves does not have."""

from __future__ import annotations

from typing import Any

from ..core.json_values import JsonObject

# From stacks/facts/compatibility.yml: NCCL from the first version to before the second makes a memory pool for each
# communicator. From the second version on, its source has a way without pools, untested on a vGPU.
NEEDS_POOLS, NEEDS_NONE = (2, 23, 4), (2, 32, 3)
REMEDY = (
    "use the stack vgpu-ubuntu24 (NCCL 2.21.5) or vgpu-ubuntu24-nccl232 (NCCL 2.32.3), train with Gloo or MPI, or set "
    "vgpu_unified_memory for the worker, which prevents its vMotion"
)


def version(code: object) -> tuple[int, int, int]:
    """Return the version that ncclGetVersion reports as a number: 23203 is 2.32.3, and 2408 is 2.4.8."""
    number = code if isinstance(code, int) and not isinstance(code, bool) else 0
    if number < 10000:
        return number // 1000, number // 100 % 10, number % 100
    return number // 10000, number // 100 % 100, number % 100


def misfits(found: JsonObject) -> list[str]:
    """Return a sentence if the NCCL of the job needs memory pools that a GPU does not have; both must be known.

    ``found`` has ``pools``, the attribute of each GPU, and ``nccl``, the number of the version.
    """
    pools, loaded = found.get("pools"), version(found.get("nccl"))
    if not isinstance(pools, list) or not NEEDS_POOLS <= loaded < NEEDS_NONE:
        return []
    without = [str(number) for number, has_pools in enumerate(pools) if has_pools == 0]
    if not without:
        return []
    words = ".".join(map(str, loaded))
    which = f"GPU {', '.join(without)} has none" if len(without) == 1 else f"the GPUs {', '.join(without)} have none"
    return [f"NCCL {words} of the job needs CUDA's memory pools, and {which}: {REMEDY}"]


def facts(found: JsonObject) -> dict[str, Any]:
    """Return what the driver and the job's NCCL report; None is unknown."""
    loaded = version(found.get("nccl"))
    return {"memory_pools": found.get("pools"), "nccl": ".".join(map(str, loaded)) if any(loaded) else None}
