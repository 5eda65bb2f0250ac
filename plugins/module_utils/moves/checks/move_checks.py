"""The rules that forbid a move of one worker, checked on the facts about it and its target host; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypedDict

from ...core.findings import NOTE, STOP, WARN, Finding, listed
from ...core.versions import has_roce_v1
from .stun_estimate import Estimate

SWITCHOVER = "vmotion.maxSwitchoverSeconds"
SWITCHOVER_DEFAULT = 100


class HostFacts(TypedDict):
    """The room on the target host."""

    in_service: bool
    offered: list[str]
    slots_free: bool
    holders: list[str]
    free_mb: int


class StunFacts(TypedDict):
    """The estimated stun, the stun that the job tolerates, and the time limit of vSphere."""

    stun: Estimate
    stun_budget_s: float | None
    switchover_s: float


class CheckFacts(TypedDict):
    """The messages of vCenter's check of the move."""

    check_errors: list[str]
    check_warnings: list[str]


class LinkFacts(TypedDict):
    """The device groups of the worker, each of which has vGPUs linked with each other, and those of the target."""

    groups: Sequence[str]
    groups_offered: Sequence[str]


class RdmaFacts(TypedDict):
    """The PVRDMA of the worker, and what the target host supports of it."""

    rdma: bool
    roce_v1: bool
    target_version: str | None
    pvrdma: bool


class ClassFacts(TypedDict):
    """The device classes of the worker and of its target host, with whether they move, and the room for them."""

    classes: list[str]
    target_classes: dict[str, bool]
    class_slots_free: bool


class KeyFacts(TypedDict):
    """The encryption of the worker's moves, its key providers that vCenter lacks, and what the hosts support."""

    encryption: str
    encrypted: bool
    providers_missing: Sequence[str]
    key_pending: bool
    no_encrypted_moves: Sequence[str]


class AccessFacts(TypedDict):
    """The datastores, the networks and the resource pool of the worker that the target host does not have."""

    datastores_missing: list[str]
    networks_missing: list[str]
    pool_lost: str


class MoveFacts(HostFacts, StunFacts, CheckFacts, LinkFacts, RdmaFacts, ClassFacts, KeyFacts, AccessFacts):
    """The facts about one worker, its running tasks and its target host."""

    worker: str
    target: str
    profiles: Sequence[str]
    fixed: Sequence[str]
    flags: Sequence[str]
    hot_migrate: bool
    alarms: list[str]
    memory_reserved_mb: int
    free_mhz: int
    cpu_reserved_mhz: int
    snapshot: bool
    tasks: list[str]


Rule = Callable[[MoveFacts], Iterator[tuple[str, str, str]]]


def findings(facts: MoveFacts) -> list[Finding]:
    return [Finding(severity, rule, facts["worker"], text) for check in RULES for severity, rule, text in check(facts)]


def _movable(facts: MoveFacts) -> Iterator[tuple[str, str, str]]:
    if facts["fixed"]:
        yield STOP, "passthrough", f"it uses {listed(facts['fixed'])} of its host and cannot move: not applicable"
    if facts["profiles"] and not facts["hot_migrate"]:
        text = "this vCenter does not allow vMotion of vGPUs: set vgpu.hotmigrate.enabled (allow_shared_settings: true)"
        yield STOP, "hot_migrate", text
    for flag in facts["flags"]:
        yield STOP, "gpu_flags", f"its setting {flag} is on, which NVIDIA's driver forbids in a move: turn it off"


def _target(facts: MoveFacts) -> Iterator[tuple[str, str, str]]:
    host = facts["target"]
    if not facts["in_service"]:
        yield STOP, "target", f"{host} is not connected, or in maintenance or quarantine mode: use another host"
    for alarm in facts["alarms"]:
        yield STOP, "alarm", f"{host} has the red alarm {alarm}: remove its cause first"
    for profile in sorted(set(facts["profiles"])):
        if profile not in facts["offered"]:
            yield STOP, "profile", f"{host} does not offer {profile}; it offers {listed(facts['offered']) or 'none'}"
    if set(facts["profiles"]) <= set(facts["offered"]) and not facts["slots_free"]:
        text = f"{host} has no room for {', '.join(facts['profiles'])}; it is used by {listed(facts['holders'])}"
        yield STOP, "slots", text
    if facts["memory_reserved_mb"] > facts["free_mb"]:
        text = f"{host} has {facts['free_mb']} MB of unreserved memory, it needs {facts['memory_reserved_mb']} MB"
        yield STOP, "memory", text
    if facts["cpu_reserved_mhz"] > facts["free_mhz"]:
        text = f"{host} has {facts['free_mhz']} MHz of unreserved CPU, it needs {facts['cpu_reserved_mhz']} MHz"
        yield STOP, "cpu", text


def _device_classes(facts: MoveFacts) -> Iterator[tuple[str, str, str]]:
    host, offered = facts["target"], facts["target_classes"]
    missing = sorted(set(facts["classes"]) - set(offered))
    for name in missing:
        yield STOP, "device_class", f"{host} has no device of class {name}; it has {listed(sorted(offered)) or 'none'}"
    for name in sorted(set(facts["classes"]) & set(offered)):
        if not offered[name]:
            text = f"{host} reports no vMotion support for its devices of class {name}: use another host"
            yield STOP, "device_class", text
    if not missing and not facts["class_slots_free"]:
        yield STOP, "device_class", f"{host} has no free device of class {listed(sorted(set(facts['classes'])))}"


def _links(facts: MoveFacts) -> Iterator[tuple[str, str, str]]:
    host = facts["target"]
    for group in sorted(set(facts["groups"]) - set(facts["groups_offered"])):
        offers = listed(facts["groups_offered"]) or "none"
        text = f"{host} does not offer its linked vGPUs, the device group {group}; it offers {offers}: use another host"
        yield STOP, "device_group", text


def _surroundings(facts: MoveFacts) -> Iterator[tuple[str, str, str]]:
    host = facts["target"]
    if facts["datastores_missing"]:
        yield STOP, "datastore", f"{host} has no access to its datastore {listed(facts['datastores_missing'])}"
    if facts["networks_missing"]:
        yield STOP, "network", f"{host} is not connected to its network {listed(facts['networks_missing'])}"
    if facts["pool_lost"]:
        text = f"it would leave its resource pool {facts['pool_lost']}, which the cluster of {host} does not have"
        yield STOP, "resource_pool", f"{text}: move it to the root of its cluster first, or use another host"
    if facts["rdma"] and not facts["pvrdma"]:
        text = f"{host} has no vmkernel adapter tagged for PVRDMA, so its RDMA would stop: run playbooks/hosts.yml"
        yield STOP, "pvrdma", text
    if facts["roce_v1"] and not has_roce_v1(facts["target_version"]):
        text = f"{host} runs ESX {facts['target_version']}, and 9.0 removed RoCE version 1: set protocol: rocev2"
        yield STOP, "roce_v1", text


def _encryption(facts: MoveFacts) -> Iterator[tuple[str, str, str]]:
    host, is_required = facts["target"], facts["encrypted"] or facts["encryption"] == "required"
    if facts["encrypted"] and facts["providers_missing"]:
        names = listed([name or "no named one" for name in facts["providers_missing"]])
        text = f"its keys are of the key provider {names}, which vCenter does not show this account: add it in vCenter"
        yield STOP, "key_provider", text
    if facts["encrypted"] and facts["key_pending"]:
        yield STOP, "host_key", f"{host} gives up its key at the next boot: reboot {host}, or use another host"
    if is_required and facts["no_encrypted_moves"]:
        names = listed(facts["no_encrypted_moves"])
        why = "it is encrypted" if facts["encrypted"] else "its vmotion_encryption is required"
        verb = "does" if len(facts["no_encrypted_moves"]) == 1 else "do"
        yield STOP, "encrypted_moves", f"{names} {verb} not support encrypted vMotion, and {why}: use another host"


def _state(facts: MoveFacts) -> Iterator[tuple[str, str, str]]:
    if facts["snapshot"]:
        yield STOP, "snapshot", "it has a snapshot, with which a VM with a vGPU cannot move: remove it"
    for task in facts["tasks"]:
        yield STOP, "task", f"{task} is running on it: wait for its end"
    for text in facts["check_errors"]:
        yield STOP, "check", f"vCenter would refuse the move: {text}"
    for text in facts["check_warnings"]:
        yield WARN, "check", f"vCenter warns: {text}"


def _stun(facts: MoveFacts) -> Iterator[tuple[str, str, str]]:
    if not facts["profiles"]:
        return
    stun = facts["stun"]
    if stun.seconds is None:
        yield WARN, "stun", f"the duration of its stun is unknown: {stun.source}"
        return
    limits = [(facts["switchover_s"], f"the limit of vSphere ({SWITCHOVER})")]
    if facts["stun_budget_s"] is not None:
        limits.append((facts["stun_budget_s"], "the limit of the job (stun_budget)"))
    about = f"about {stun.seconds:.0f} s{' or longer' if stun.at_least else ''} according to {stun.source}"
    for limit, name in limits:
        if stun.seconds > limit or (stun.at_least and stun.seconds >= limit):
            yield STOP, "stun", f"it would be stunned for {about}: over {limit:.0f} s, {name}"
            return
    yield WARN if stun.at_least else NOTE, "stun", f"it will be stunned for {about}"


def _unreadable(facts: MoveFacts) -> Iterator[tuple[str, str, str]]:
    if facts["profiles"]:
        text = (
            "no API reports whether both GPUs have the same ECC and MIG settings: compare nvidia-smi -q on both hosts"
        )
        yield NOTE, "ecc", text


RULES: tuple[Rule, ...] = (
    *(_movable, _target, _links, _device_classes, _surroundings),
    *(_encryption, _state, _stun, _unreadable),
)
