"""Findings in the nodes of a job that forbid a stun: timers that are too short, licences, checkpoints; pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from ...core.findings import NOTE, STOP, WARN, Finding, FindingRecord, as_dicts
from ...core.json_values import mapping
from ...core.vgpu_manager import is_manager
from ...guests import nvidia, slurm_timers, stun_timers
from ...guests.stack import fit_gpu
from ...training.transport.job_settings import LONGEST_TIMEOUT, RETRIES, TICK_SECONDS

# The default time-out of Horovod and Gloo, in seconds.
GLOO_SECONDS = 30.0
# Defaults of torch.distributed: its NCCL watchdog, and the timeout of process groups over NCCL and over Gloo.
HEARTBEAT_SECONDS, TORCH_NCCL_SECONDS, TORCH_GLOO_SECONDS = 480.0, 600.0, 1800.0
# The shortest default of NCCL_IB_TIMEOUT in any version of NCCL.
NCCL_SHORTEST = 14
# Words of https://docs.nvidia.com/vgpu/latest/grid-licensing-user-guide: "Licensed (Expiry: 2026-3-4 12:0:0 GMT)",
# "Licensed (Expiry: Permanent)", "Unlicensed (Restricted)", "N/A".
_LICENCE = re.compile(r"License Status[ \t]*:([^\n]*)")
_EXPIRY = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)[ T](\d\d?):(\d\d?):(\d\d?)(?: ?(GMT|UTC|Z|[+-]\d\d:?\d\d))?", re.ASCII)
_TIME = re.compile(r"((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(ns|us|ms|s|m)?")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_FOREVER, _UNKNOWN = ("permanent", "perpetual"), ("", "n/a", "unknown", "unknown error")

# The severity, rule and text of each finding.
Rows = Iterator[tuple[str, str, str]]
PASSED_THROUGH = "Pass-Through"


def findings(
    nodes: Mapping[str, Mapping[str, object]],
    budget: float,
    now: float,
    *,
    lasts: float = 0.0,
    minutes: float | None = None,
) -> list[Finding]:
    """Return the findings on some nodes.

    ``budget`` is the longest silence of a peer in seconds, ``lasts`` the shortest duration of the test in seconds,
    ``minutes`` the greatest age of a verified checkpoint; None if the job makes no checkpoints.
    """
    result = []
    for node, facts in sorted(nodes.items()):
        if not isinstance(facts, Mapping) or "error" in facts:
            reason = facts["error"] if isinstance(facts, Mapping) else "it reported nothing"
            result.append(Finding(WARN, "guest", node, f"it could not be read: {reason}"))
            continue
        rows = [*_timers(facts, budget), *_environment(facts, budget), *_licence(facts, now, lasts), *_unread(facts)]
        if facts.get("slurm"):
            rows += [
                (severity, slurm_timers.RULE, text) for severity, text in slurm_timers.rows(facts["slurm"], budget)
            ]
        if minutes is not None:
            rows += _checkpoint(facts, minutes)
        result += [Finding(severity, rule, node, text) for severity, rule, text in rows]
    return result


def _timers(facts: Mapping[str, object], budget: float) -> Rows:
    """Check the timers of ssh, sshd, TCP and Open MPI."""
    known = {key: value for key, value in facts.items() if value}
    for name, seconds in stun_timers.patience(known).items():
        if seconds < budget:
            yield STOP, "timers", _short(name, seconds, budget)
    for name in stun_timers.unknown_timers(known):
        yield NOTE, "guest", f"{name} is only partly known, and so is how long it waits for a silent peer"


def _environment(facts: Mapping[str, object], budget: float) -> Rows:
    """Check the variables of the ranks for NCCL, UCX, Gloo, Horovod and torch."""
    variables = mapping(facts.get("environment"))
    command = facts.get("mpirun")
    words = " ".join(map(str, command)) if isinstance(command, (list, tuple)) else ""
    if _uses_nccl_over_rdma(facts, variables):
        yield from _nccl(variables, budget)
    if "pml ucx" in words or variables.get("OMPI_MCA_pml") == "ucx":
        yield from _ucx(variables, budget)
    is_gloo = "HOROVOD_GLOO_RENDEZVOUS_ADDR" in variables or "gloo" in (
        variables.get("HOROVOD_CONTROLLER"),
        variables.get("HOROVOD_CPU_OPERATIONS"),
    )
    limits = {"HOROVOD_GLOO_TIMEOUT_SECONDS": GLOO_SECONDS if is_gloo else 0.0}
    for name in ("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "TORCH_NCCL_TIMEOUT_SEC"):
        limits[name] = 0.0
    for name, usual in limits.items():
        seconds = _number(variables.get(name, usual))
        yield from _waits(name, seconds or (None if seconds is None else float("inf")), budget)
    yield from _torch(facts, variables, budget)


def _torch(facts: Mapping[str, object], variables: Mapping[str, object], budget: float) -> Rows:
    """Check the timers of torch.distributed: with a GPU on the node, NCCL connects the ranks, otherwise Gloo."""
    heartbeat = "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"
    is_torch = any(name.startswith(("TORCH", "MASTER_ADDR")) for name in variables)
    is_nccl = bool(facts.get("nvidia"))
    if heartbeat in variables or (is_torch and is_nccl):
        seconds = _number(variables.get(heartbeat, HEARTBEAT_SECONDS))
        is_off = seconds == 0 or variables.get("TORCH_NCCL_ENABLE_MONITORING") in ("0", "false")
        yield from _waits(heartbeat, float("inf") if is_off else seconds, budget)
    if is_torch:
        name, seconds = ("NCCL", TORCH_NCCL_SECONDS) if is_nccl else ("Gloo", TORCH_GLOO_SECONDS)
        yield from _waits(f"torch's process group over {name}, with its default timeout,", seconds, budget)


def _uses_nccl_over_rdma(facts: Mapping[str, object], variables: Mapping[str, object]) -> bool:
    """Return whether NCCL uses RDMA: without any variable it does if the node has a GPU and an RDMA device."""
    if _number(variables.get("NCCL_IB_DISABLE", "0")) or str(variables.get("NCCL_NET")).lower() == "socket":
        return False
    has_ranks = facts.get("environment") is not None
    return (
        "NCCL_IB_DISABLE" in variables
        or "NCCL_IB_HCA" in variables
        or bool(has_ranks and facts.get("nvidia") and facts.get("rdma"))
    )


def _ucx(variables: Mapping[str, object], budget: float) -> Rows:
    """Check the timers of UCX: a setting for one kind of connection takes precedence over that for all kinds."""
    kind = "RC_VERBS" if any(name.startswith("UCX_RC_VERBS_") for name in variables) else "RC"
    retries, timeout = (
        variables.get(f"UCX_{kind}_{name}", variables.get(f"UCX_RC_{name}", usual))
        for name, usual in (("RETRY_COUNT", "7"), ("TIMEOUT", "1000ms"))
    )
    count = _number(retries)
    each = _seconds(str(timeout))
    seconds = None if count is None or each is None else each * (count + 1)
    yield from _waits(f"UCX_{kind}_TIMEOUT with UCX_{kind}_RETRY_COUNT", seconds, budget)


def _nccl(variables: Mapping[str, object], budget: float) -> Rows:
    retries = _number(variables.get("NCCL_IB_RETRY_CNT", RETRIES))
    if "NCCL_IB_TIMEOUT" not in variables:
        if TICK_SECONDS * 2**NCCL_SHORTEST * ((retries or 0) + 1) < budget:
            text = "NCCL_IB_TIMEOUT is not set, and its default depends on the version: some disconnect after 0.5 s"
            yield STOP, "timers", text
        return
    exponent = _number(variables["NCCL_IB_TIMEOUT"])
    if exponent == 0:  # InfiniBand waits indefinitely
        return
    known = retries is not None and exponent is not None and 0 <= exponent <= LONGEST_TIMEOUT
    seconds = TICK_SECONDS * 2 ** (exponent or 0) * ((retries or 0) + 1) if known else None
    yield from _waits("NCCL_IB_TIMEOUT with NCCL_IB_RETRY_CNT", seconds, budget)


def _waits(name: str, seconds: float | None, budget: float) -> Rows:
    """Check a timer of a job; an unreadable value is neither long nor short."""
    if seconds is None:
        yield NOTE, "guest", f"{name} has a value that cannot be read: how long it waits for a silent peer is not known"
    elif 0 <= seconds < budget:
        yield STOP, "timers", _short(name, seconds, budget)


def _licence(facts: Mapping[str, object], now: float, lasts: float) -> Rows:
    output = facts.get("nvidia")
    if not isinstance(output, str) or not output:
        return
    lines = list(_LICENCE.finditer(output))
    if not lines:
        yield NOTE, "licence", "nvidia-smi names no licence: this GPU needs none, or its driver does not report it"
    for text in dict.fromkeys(line[1].strip() for line in lines):
        status, _bracket, details = text.partition("(")
        yield from _licence_status(status.strip(), details.removesuffix(")"), now, lasts)


def _licence_status(status: str, details: str, now: float, lasts: float) -> Rows:
    """Check one licence status and the details that follow it in brackets."""
    if status.lower() in _UNKNOWN:
        yield (NOTE, "licence", f"nvidia-smi reports the licence {status or '(empty)'}: whether it is valid is unknown")
        return
    if status != "Licensed":
        yield STOP, "licence", f"its vGPU is {status.lower()}: it will be slowed down; license it"
        return
    expiry = details.partition("Expiry:")[2].strip()
    left = _seconds_left(expiry, now)
    if left is None:
        yield WARN, "licence", f"its vGPU licence ends at {expiry}, an unknown format: check that it outlasts the test"
    elif left < lasts:
        yield STOP, "licence", f"its vGPU licence ends within {max(left, 0) / 60:.0f} min, before the test: renew it"


def _seconds_left(text: str, now: float) -> float | None:
    """Return the seconds until an expiry such as ``2026-3-4 12:0:0 GMT``; inf without expiry, None if unreadable."""
    if text.lower() in (*_FOREVER, *_UNKNOWN):
        return float("inf")
    match = _EXPIRY.fullmatch(text)
    if match is None:
        return None
    zone = (match[7] or "GMT").replace(":", "")
    ahead = (int(zone[1:3]) * 60 + int(zone[3:5])) * (-60 if zone[0] == "-" else 60) if zone[0] in "+-" else 0
    try:
        moment = datetime(*map(int, match.groups()[:6]), tzinfo=timezone.utc)  # type: ignore[arg-type,misc]
    except ValueError:
        return None
    return moment.timestamp() - ahead - now


def _checkpoint(facts: Mapping[str, object], minutes: float) -> Rows:
    newest = mapping(facts.get("checkpoint"))
    if not newest:
        yield STOP, "checkpoint", "there is no checkpoint on it: let the job make one first"
        return
    age, path = _number(newest.get("age_s")), newest.get("path")
    if age is None:
        yield STOP, "checkpoint", f"the age of its newest checkpoint {path} is not known: do not rely on it"
    elif age > minutes * 60:
        yield STOP, "checkpoint", f"its newest checkpoint {path} is {age / 60:.0f} min old, more than {minutes:g} min"
    if newest.get("verified") is False or not newest.get("bytes"):
        yield STOP, "checkpoint", f"its newest checkpoint {path} does not match its checksum: do not rely on it"
    elif newest.get("verified") is not True:
        yield WARN, "checkpoint", f"its newest checkpoint {path} has no checksum file {path}.sha256: it is not verified"


def _unread(facts: Mapping[str, object]) -> Rows:
    """Report the settings that this user may not read."""
    if facts.get("sshd") is None:
        yield NOTE, "guest", "this user may not run sshd -T: the ClientAliveInterval is unknown"
    if facts.get("environment") is None:
        yield NOTE, "guest", "the environment of its ranks cannot be read: the timers of NCCL, UCX and Gloo are unknown"


def _short(name: str, seconds: float, budget: float) -> str:
    return f"{name} gives up on a silent peer after {seconds:g} s, and a stun may take {budget:g} s: raise it"


def _seconds(text: str) -> float | None:
    """Return a time as UCX reads it, such as ``1000ms``, ``.5s`` or ``inf``; None if UCX would not accept it."""
    text = text.strip()
    if text.lower() == "inf":
        return float("inf")
    match = _TIME.fullmatch(text)
    return float(match[1]) * _UNITS[match[2] or "s"] if match else None


def _number(value: object) -> float | None:
    """Return a finite number, also from text; None for anything else."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def node_findings(
    nodes: Mapping[str, Any],
    budget: float,
    now: float,
    fitting: tuple[Iterable[Mapping[str, Any]], Mapping[str, Any]],
    *,
    lasts: float = 0.0,
    minutes: float = 0.0,
) -> list[FindingRecord]:
    """Return the findings as plain data.

    ``budget`` is the longest stun in seconds, ``lasts`` the shortest duration of the test in seconds, ``minutes`` the
    greatest age of a checkpoint (0: no check). ``fitting`` has the hosts of esxi_info with their VIBs, and the table
    stacks/facts/compatibility.yml.
    """
    inside = findings(nodes, budget, now, lasts=lasts, minutes=minutes or None)
    return as_dicts([*inside, *driver_findings(nodes, *fitting)])


def driver_findings(
    nodes: Mapping[str, Mapping[str, object]], hosts: Iterable[Mapping[str, object]], table: Mapping[str, object]
) -> list[Finding]:
    """Return the drivers of nodes that do not fit the vGPU managers of the hosts, and the unknown pairs.

    ``nodes`` are those of read_guests.
    """
    managers = {str(host["host"]): version for host in hosts if (version := _manager(host))}
    misfits = []
    for node, driver in _drivers(nodes).items():
        stack = {"gpu_driver": {"version": driver}, "gpu": {"attachment": "vgpu"}}
        for host, version in sorted(managers.items()):
            misfits += [
                Finding(STOP if one.misfit else NOTE, "versions", node, f"on {host}: {one.sentence}")
                for one in fit_gpu.host_and_guest(stack, table, version)
            ]
    return misfits


def _drivers(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the driver of each node that has a virtual GPU."""
    reports = {node: nvidia.report(facts["nvidia"]) for node, facts in sorted(nodes.items()) if facts.get("nvidia")}
    return {
        node: report["driver"]
        for node, report in reports.items()
        if report["driver"] and any(gpu["mode"] != PASSED_THROUGH for gpu in report["gpus"])
    }


def _manager(host: Mapping[str, Any]) -> str:
    """Return the version of the vGPU manager that runs on a host; empty if none does."""
    running = (host.get("vibs") or {}).get("running") or []
    return next((str(vib["version"]) for vib in running if is_manager(vib["name"])), "")
