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
# Words of https://docs.nvidia.com/vgpu/latest/grid-licensing-user-guide: "Licensed (Expiry: 2026-3-4 12:0:0 GMT)",
# "Licensed (Expiry: Permanent)", "Unlicensed (Restricted)", "N/A".
_LICENCE = re.compile(
    r"License Status[ \t]*:[ \t]*(?P<status>[^\n(]*?)[ \t]*(?:\((?P<more>[^\n)]*)\)?)?[ \t]*$", re.MULTILINE
)
_EXPIRY = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)[ T](\d\d?):(\d\d?):(\d\d?)(?: ?(GMT|UTC|Z|[+-]\d\d:?\d\d))?", re.ASCII)
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
    if told.get("NCCL_IB_DISABLE") == "0" or "NCCL_IB_HCA" in told:
        yield from _nccl(told, budget)
    if "pml ucx" in words or told.get("OMPI_MCA_pml") == "ucx":
        yield from _ucx(told, budget)
    is_gloo = "HOROVOD_GLOO_RENDEZVOUS_ADDR" in told or "gloo" in (
        told.get("HOROVOD_CONTROLLER"),
        told.get("HOROVOD_CPU_OPERATIONS"),
    )
    limits = {"HOROVOD_GLOO_TIMEOUT_SECONDS": GLOO_SECONDS if is_gloo else 0.0}
    for name in ("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "TORCH_NCCL_TIMEOUT_SEC"):
        limits[name] = 0.0
    for name, usual in limits.items():
        seconds = _number(told.get(name, usual))
        yield from _waits(name, seconds or (None if seconds is None else float("inf")), budget)


def _ucx(told: Mapping[str, Any], budget: float) -> Told:
    """A setting of one kind of connections has precedence over that of all."""
    kind = "RC_VERBS" if any(name.startswith("UCX_RC_VERBS_") for name in told) else "RC"
    retries, timeout = (
        told.get(f"UCX_{kind}_{name}", told.get(f"UCX_RC_{name}", usual))
        for name, usual in (("RETRY_COUNT", "7"), ("TIMEOUT", "1000ms"))
    )
    count = _number(retries)
    seconds = None if count is None else _seconds(str(timeout)) * (count + 1)
    yield from _waits(f"UCX_{kind}_TIMEOUT with UCX_{kind}_RETRY_COUNT", seconds, budget)


def _nccl(told: Mapping[str, Any], budget: float) -> Told:
    if "NCCL_IB_TIMEOUT" not in told:
        text = "NCCL_IB_TIMEOUT is not set, and its default differs by version: some give a peer up after half a second"
        yield STOP, "timers", text
        return
    retries, exponent = _number(told.get("NCCL_IB_RETRY_CNT", RETRIES)), _number(told["NCCL_IB_TIMEOUT"])
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
    for one in dict.fromkeys((one["status"], one["more"] or "") for one in found):
        yield from _one_licence(*one, now, lasts)


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


def _seconds(text: str) -> float:
    """A time as UCX writes it, such as 1000ms or 2s; one without end is endless."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?)(us|ms|s|m)?", text.strip())
    if not found:
        return float("inf")
    return float(found[1]) * {"us": 1e-6, "ms": 1e-3, "m": 60.0}.get(found[2] or "s", 1.0)


def _number(value: object) -> float | None:
    """A finite number, also as text; None for anything else."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
