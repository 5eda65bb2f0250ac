# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Findings in the nodes of a job that forbid a stun: timers that are too short, licences, checkpoints; pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from ...core.findings import NOTE, STOP, WARN, Finding
from ...guests import stun_timers
from ...training.transport.job_settings import LONGEST_TIMEOUT, RETRIES, TICK_SECONDS

# What Horovod and Gloo take where nobody says otherwise, in seconds.
GLOO_SECONDS = 30.0
# Defaults of torch.distributed: its NCCL watchdog, and the timeout of process groups over NCCL and over Gloo.
HEARTBEAT_SECONDS, TORCH_NCCL_SECONDS, TORCH_GLOO_SECONDS = 480.0, 600.0, 1800.0
# The shortest default of NCCL_IB_TIMEOUT in any version of NCCL.
NCCL_SHORTEST = 14
# Words of https://docs.nvidia.com/vgpu/latest/grid-licensing-user-guide: "Licensed (Expiry: 2026-3-4 12:0:0 GMT)",
# "Licensed (Expiry: Permanent)", "Unlicensed (Restricted)", "N/A".
_LICENCE = re.compile(r"License Status[ \t]*:([^\n]*)")
_EXPIRY = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)[ T](\d\d?):(\d\d?):(\d\d?)(?: ?(GMT|UTC|Z|[+-]\d\d:?\d\d))?", re.ASCII)
_TIME = re.compile(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(ns|us|ms|s|m)?")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_FOREVER, _UNTOLD = ("permanent", "perpetual"), ("", "n/a", "unknown", "unknown error")

Told = Iterator[tuple[str, str, str]]


def findings(
    nodes: Mapping[str, Mapping[str, Any]],
    budget: float,
    now: float,
    *,
    lasts: float = 0.0,
    minutes: float | None = None,
) -> list[Finding]:
    """All that was found on some nodes.

    ``budget``: seconds for which a peer may be silent. ``lasts``: seconds that the test takes at least. ``minutes``:
    how young a verified checkpoint must be; None where the job makes none.
    """
    found = []
    for node, seen in sorted(nodes.items()):
        if not isinstance(seen, Mapping) or "error" in seen:
            said = seen["error"] if isinstance(seen, Mapping) else "it told nothing"
            found.append(Finding(WARN, "guest", node, f"it could not be looked into: {said}"))
            continue
        told = [*_timers(seen, budget), *_environment(seen, budget), *_licence(seen, now, lasts), *_unread(seen)]
        if minutes is not None:
            told += _checkpoint(seen, minutes)
        found += [Finding(severity, rule, node, text) for severity, rule, text in told]
    return found


def _timers(seen: Mapping[str, Any], budget: float) -> Told:
    """ssh, sshd, TCP and Open MPI."""
    told = {key: value for key, value in seen.items() if value}
    for name, seconds in stun_timers.patience(told).items():
        if seconds < budget:
            yield STOP, "timers", _short(name, seconds, budget)
    for name in stun_timers.untold(told):
        yield NOTE, "guest", f"{name} is not told whole: how long it waits for a silent peer is not known"


def _environment(seen: Mapping[str, Any], budget: float) -> Told:
    """What the ranks were told: NCCL, UCX, Gloo, Horovod and torch."""
    told = _mapping(seen.get("environment"))
    command = seen.get("mpirun")
    words = " ".join(map(str, command)) if isinstance(command, (list, tuple)) else ""
    if _uses_nccl_over_rdma(seen, told):
        yield from _nccl(told, budget)
    if "pml ucx" in words or told.get("OMPI_MCA_pml") == "ucx":
        yield from _ucx(told, budget)
    is_gloo = "HOROVOD_GLOO_RENDEZVOUS_ADDR" in told or "gloo" in (
        told.get("HOROVOD_CONTROLLER"),
        told.get("HOROVOD_CPU_OPERATIONS"),
    )
    limits = {"HOROVOD_GLOO_TIMEOUT_SECONDS": GLOO_SECONDS if is_gloo else 0.0}
    for name in ("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "TORCH_NCCL_TIMEOUT_SEC"):
        limits[name] = 0.0
    for name, usual in limits.items():
        seconds = _number(told.get(name, usual))
        yield from _waits(name, seconds or (None if seconds is None else float("inf")), budget)
    yield from _torch(seen, told, budget)


def _torch(seen: Mapping[str, Any], told: Mapping[str, Any], budget: float) -> Told:
    """The timers of torch.distributed; a GPU on the node means NCCL, otherwise Gloo connects the ranks."""
    heartbeat = "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"
    is_torch = any(name.startswith(("TORCH", "MASTER_ADDR")) for name in told)
    is_nccl = bool(seen.get("nvidia"))
    if heartbeat in told or (is_torch and is_nccl):
        seconds = _number(told.get(heartbeat, HEARTBEAT_SECONDS))
        is_off = seconds == 0 or told.get("TORCH_NCCL_ENABLE_MONITORING") in ("0", "false")
        yield from _waits(heartbeat, float("inf") if is_off else seconds, budget)
    if is_torch:
        name, seconds = ("NCCL", TORCH_NCCL_SECONDS) if is_nccl else ("Gloo", TORCH_GLOO_SECONDS)
        yield from _waits(f"torch's process group over {name}, with its default timeout,", seconds, budget)


def _uses_nccl_over_rdma(seen: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether NCCL uses RDMA: without any variable it does if the node has a GPU and an RDMA device."""
    if _number(told.get("NCCL_IB_DISABLE", "0")) or str(told.get("NCCL_NET")).lower() == "socket":
        return False
    has_ranks = seen.get("environment") is not None
    return (
        "NCCL_IB_DISABLE" in told
        or "NCCL_IB_HCA" in told
        or bool(has_ranks and seen.get("nvidia") and seen.get("rdma"))
    )


def _ucx(told: Mapping[str, Any], budget: float) -> Told:
    """A setting of one kind of connections has precedence over that of all."""
    kind = "RC_VERBS" if any(name.startswith("UCX_RC_VERBS_") for name in told) else "RC"
    retries, timeout = (
        told.get(f"UCX_{kind}_{name}", told.get(f"UCX_RC_{name}", usual))
        for name, usual in (("RETRY_COUNT", "7"), ("TIMEOUT", "1000ms"))
    )
    count = _number(retries)
    each = _seconds(str(timeout))
    seconds = None if count is None or each is None else each * (count + 1)
    yield from _waits(f"UCX_{kind}_TIMEOUT with UCX_{kind}_RETRY_COUNT", seconds, budget)


def _nccl(told: Mapping[str, Any], budget: float) -> Told:
    retries = _number(told.get("NCCL_IB_RETRY_CNT", RETRIES))
    if "NCCL_IB_TIMEOUT" not in told:
        if TICK_SECONDS * 2**NCCL_SHORTEST * ((retries or 0) + 1) < budget:
            text = "NCCL_IB_TIMEOUT is not set, and its default depends on the version: some disconnect after 0.5 s"
            yield STOP, "timers", text
        return
    exponent = _number(told["NCCL_IB_TIMEOUT"])
    if exponent == 0:  # InfiniBand waits without end
        return
    known = retries is not None and exponent is not None and 0 <= exponent <= LONGEST_TIMEOUT
    seconds = TICK_SECONDS * 2 ** (exponent or 0) * ((retries or 0) + 1) if known else None
    yield from _waits("NCCL_IB_TIMEOUT with NCCL_IB_RETRY_CNT", seconds, budget)


def _waits(name: str, seconds: float | None, budget: float) -> Told:
    """A timer of a job; what cannot be read is neither long nor short."""
    if seconds is None:
        yield NOTE, "guest", f"{name} has a value that cannot be read: how long it waits for a silent peer is not known"
    elif 0 <= seconds < budget:
        yield STOP, "timers", _short(name, seconds, budget)


def _licence(seen: Mapping[str, Any], now: float, lasts: float) -> Told:
    told = seen.get("nvidia")
    if not isinstance(told, str) or not told:
        return
    found = list(_LICENCE.finditer(told))
    if not found:
        yield NOTE, "licence", "nvidia-smi names no licence: this GPU needs none, or its driver tells none"
    for text in dict.fromkeys(line[1].strip() for line in found):
        status, _bracket, more = text.partition("(")
        yield from _one_licence(status.strip(), more.removesuffix(")"), now, lasts)


def _one_licence(status: str, more: str, now: float, lasts: float) -> Told:
    """One status of a licence, and what stands behind it in brackets."""
    if status.lower() in _UNTOLD:
        yield NOTE, "licence", f"nvidia-smi tells {status or 'nothing'} as its licence: whether it has one is not known"
        return
    if status != "Licensed":
        yield STOP, "licence", f"its vGPU is {status.lower()}: it will be slowed down; license it"
        return
    expiry = more.partition("Expiry:")[2].strip()
    left = _expires(expiry, now)
    if left is None:
        yield WARN, "licence", f"its vGPU licence ends at {expiry}, which cannot be read: see that it outlasts the test"
    elif left < lasts:
        yield STOP, "licence", f"its vGPU licence ends within {max(left, 0) / 60:.0f} min, before the test: renew it"


def _expires(text: str, now: float) -> float | None:
    """The seconds until an expiry such as ``2026-3-4 12:0:0 GMT``; endless where none is told, None where it is odd."""
    if text.lower() in (*_FOREVER, *_UNTOLD):
        return float("inf")
    found = _EXPIRY.fullmatch(text)
    if found is None:
        return None
    zone = (found[7] or "GMT").replace(":", "")
    ahead = (int(zone[1:3]) * 60 + int(zone[3:5])) * (-60 if zone[0] == "-" else 60) if zone[0] in "+-" else 0
    try:
        moment = datetime(*map(int, found.groups()[:6]), tzinfo=timezone.utc)  # type: ignore[arg-type,misc]
    except ValueError:
        return None
    return moment.timestamp() - ahead - now


def _checkpoint(seen: Mapping[str, Any], minutes: float) -> Told:
    newest = _mapping(seen.get("checkpoint"))
    if not newest:
        yield STOP, "checkpoint", "there is no checkpoint on it: let the job make one first"
        return
    age, path = _number(newest.get("age_s")), newest.get("path")
    if age is None:
        yield STOP, "checkpoint", f"the age of its newest checkpoint {path} is not known: do not count on it"
    elif age > minutes * 60:
        yield STOP, "checkpoint", f"its newest checkpoint {path} is {age / 60:.0f} min old, more than {minutes:g} min"
    if newest.get("verified") is False or not newest.get("bytes"):
        yield STOP, "checkpoint", f"its newest checkpoint {path} is not what its checksum says: do not count on it"
    elif newest.get("verified") is not True:
        yield WARN, "checkpoint", f"its newest checkpoint {path} has no {path}.sha256 beside it: nobody verified it"


def _unread(seen: Mapping[str, Any]) -> Told:
    """What could not be read is said to be so."""
    if seen.get("sshd") is None:
        yield NOTE, "guest", "sshd -T may not be read by this user: its ClientAliveInterval is not known"
    if seen.get("environment") is None:
        yield NOTE, "guest", "the environment of its ranks may not be read: NCCL's, UCX's and Gloo's timers are unknown"


def _short(name: str, seconds: float, budget: float) -> str:
    return f"{name} gives a silent peer up after {seconds:g} s, and a stun may take {budget:g} s: raise it"


def _seconds(text: str) -> float | None:
    """Return a time as UCX reads it, such as ``1000ms``, ``.5s`` or ``inf``; None if UCX would not accept it."""
    text = text.strip()
    if text.lower() == "inf":
        return float("inf")
    found = _TIME.fullmatch(text)
    return float(found[1]) * _UNITS[found[2] or "s"] if found else None


def _number(value: object) -> float | None:
    """A finite number, also as text; None for anything else."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
