# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The rules that forbid a move of one worker, over what was read before; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...core.findings import NOTE, STOP, WARN, Finding, listed

SWITCHOVER = "vmotion.maxSwitchoverSeconds"
SWITCHOVER_DEFAULT = 100
Facts = Mapping[str, Any]
Rule = Callable[[Facts], Iterator[tuple[str, str, str]]]


def findings(facts: Facts) -> list[Finding]:
    """The findings of every rule."""
    return [Finding(severity, rule, facts["worker"], text) for each in RULES for severity, rule, text in each(facts)]


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
    if facts["cpu_reserved_mhz"] > facts["free_mhz"]:
        text = f"{host} has {facts['free_mhz']} MHz that nobody reserved, it needs {facts['cpu_reserved_mhz']} MHz"
        yield STOP, "cpu", text


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
    stun = facts["stun"]
    if stun.seconds is None:
        yield WARN, "stun", f"how long it will stand still is not known: {stun.whence}"
        return
    limits = [(facts["switchover_s"], f"vSphere's own limit ({SWITCHOVER})")]
    if facts["stun_budget_s"] is not None:
        limits.append((facts["stun_budget_s"], "what the job can bear (stun_budget)"))
    about = f"about {stun.seconds:.0f} s{' or longer' if stun.at_least else ''} by {stun.whence}"
    for limit, what in limits:
        if stun.seconds > limit or (stun.at_least and stun.seconds >= limit):
            yield STOP, "stun", f"it would stand still for {about}: over {limit:.0f} s, {what}"
            return
    yield WARN if stun.at_least else NOTE, "stun", f"it will stand still for {about}"


def _unseen(facts: Facts) -> Iterator[tuple[str, str, str]]:
    if facts["profiles"]:
        text = (
            "whether ECC and MIG settings of both GPUs are equal is told by no API: compare nvidia-smi -q on both hosts"
        )
        yield NOTE, "ecc", text


RULES: tuple[Rule, ...] = (_movable, _target, _surroundings, _state, _stun, _unseen)
