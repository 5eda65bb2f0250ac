# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What speaks against one move of one worker: pure rules over what was read beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .findings import NOTE, STOP, WARN, Finding, listed

# The GPU's driver does not move what these switch on.
GPU_FLAGS = ("enable_uvm", "enable_debugging", "enable_profiling")
SWITCHOVER = "vmotion.maxSwitchoverSeconds"
SWITCHOVER_DEFAULT = 100
# VMware's table of vSphere 7 at 10 Gb/s, one virtual machine at a time: gigabytes of framebuffer -> seconds.
STUN_TABLE = ((1, 2.0), (2, 2.0), (4, 4.0), (8, 6.0), (16, 22.0), (32, 39.0))
TABLE_MEGABITS = 10_000

Facts = Mapping[str, Any]
Rule = Callable[[Facts], Iterator[tuple[str, str, str]]]


def findings(facts: Facts) -> list[Finding]:
    """All that speaks against the move, for every rule."""
    return [Finding(severity, rule, facts["worker"], text) for each in RULES for severity, rule, text in each(facts)]


def stun_estimate(
    gigabytes: float, megabits: int | None, told: Iterable[Mapping[str, int]]
) -> tuple[float | None, str]:
    """Seconds that the guest will stand still, and whence that is known; None where nothing tells."""
    bandwidth = megabits or TABLE_MEGABITS
    usable = sorted((one for one in told if one["megabits"] <= bandwidth), key=lambda one: one["megabits"])
    if usable:
        return float(usable[-1]["seconds"]), f"the server's estimate at {usable[-1]['megabits']} Mb/s"
    row = next(((size, seconds) for size, seconds in STUN_TABLE if gigabytes <= size), None)
    if row is None or not gigabytes:
        return None, "neither the server nor VMware's table tells"
    slower = max(1.0, TABLE_MEGABITS / bandwidth)
    return row[1] * slower, f"VMware's table of vSphere 7 for {row[0]} GB at {bandwidth} Mb/s"


def _movable(facts: Facts) -> Iterator[tuple[str, str, str]]:
    if facts["fixed"]:
        yield STOP, "passthrough", f"it holds {listed(facts['fixed'])} of its host and cannot move: not applicable"
    if facts["profiles"] and not facts["hot_migrate"]:
        text = "this vCenter does not move vGPUs hot: set vgpu.hotmigrate.enabled (allow_shared_settings: true)"
        yield STOP, "hot_migrate", text
    for flag in facts["flags"]:
        yield STOP, "gpu_flags", f"its setting {flag} is on, with which NVIDIA's driver does not move: switch it off"


def _target(facts: Facts) -> Iterator[tuple[str, str, str]]:
    host = facts["target"]
    if not facts["in_service"]:
        yield STOP, "target", f"{host} is not connected, or in maintenance or quarantine mode: take another"
    for alarm in facts["alarms"]:
        yield STOP, "alarm", f"{host} has the red alarm {alarm}: mend its cause first"
    for profile in sorted(set(facts["profiles"])):
        if profile not in facts["offered"]:
            yield STOP, "profile", f"{host} does not offer {profile}; it offers {listed(facts['offered']) or 'none'}"
    if set(facts["profiles"]) <= set(facts["offered"]) and not facts["slots_free"]:
        text = f"{host} has no room for {', '.join(facts['profiles'])}; it is held by {listed(facts['holders'])}"
        yield STOP, "slots", text
    if facts["memory_reserved_mb"] > facts["free_mb"]:
        text = f"{host} has {facts['free_mb']} MB that nobody reserved, it needs {facts['memory_reserved_mb']} MB"
        yield STOP, "memory", text


def _surroundings(facts: Facts) -> Iterator[tuple[str, str, str]]:
    host = facts["target"]
    if facts["datastores_missing"]:
        yield STOP, "datastore", f"{host} does not see its datastore {listed(facts['datastores_missing'])}"
    if facts["networks_missing"]:
        yield STOP, "network", f"{host} is not connected to its network {listed(facts['networks_missing'])}"
    if facts["rdma"] and not facts["pvrdma"]:
        text = f"{host} has no vmkernel adapter tagged for PVRDMA, so its RDMA would stop: run playbooks/hosts.yml"
        yield STOP, "pvrdma", text


def _state(facts: Facts) -> Iterator[tuple[str, str, str]]:
    if facts["snapshot"]:
        yield STOP, "snapshot", "it has a snapshot, which a vGPU machine cannot move with: remove it"
    for task in facts["tasks"]:
        yield STOP, "task", f"{task} is running on it: wait for its end"
    for text in facts["check_errors"]:
        yield STOP, "check", f"vCenter would refuse the move: {text}"
    for text in facts["check_warnings"]:
        yield WARN, "check", f"vCenter warns: {text}"


def _stun(facts: Facts) -> Iterator[tuple[str, str, str]]:
    if not facts["profiles"]:
        return
    seconds, whence = facts["stun_s"], facts["stun_source"]
    if seconds is None:
        yield WARN, "stun", f"how long it will stand still is not known: {whence}"
        return
    limits = [(facts["switchover_s"], f"vSphere's own limit ({SWITCHOVER})")]
    if facts["stun_budget_s"] is not None:
        limits.append((facts["stun_budget_s"], "what the job can bear (stun_budget)"))
    for limit, what in limits:
        if seconds > limit:
            yield (
                STOP,
                "stun",
                f"it would stand still for about {seconds:.0f} s by {whence}: over {limit:.0f} s, {what}",
            )
            return
    yield NOTE, "stun", f"it will stand still for about {seconds:.0f} s by {whence}"


def _unseen(facts: Facts) -> Iterator[tuple[str, str, str]]:
    if facts["profiles"]:
        text = (
            "whether ECC and MIG settings of both GPUs are equal is told by no API: compare nvidia-smi -q on both hosts"
        )
        yield NOTE, "ecc", text


RULES: tuple[Rule, ...] = (_movable, _target, _surroundings, _state, _stun, _unseen)
