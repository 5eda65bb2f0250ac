# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Findings in the nodes of a job that forbid a stun: timers that are too short, licences, checkpoints; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from ..findings import NOTE, STOP, WARN, Finding
from ..nodes import stun
from ..transport.settings import RETRIES, TICK_SECONDS

# What Horovod and Gloo take where nobody says otherwise, in seconds.
GLOO_SECONDS = 30.0
_LICENCE = re.compile(
    r"License Status\s*: (?P<status>[^\n(]+?)\s*(?:\((?:Expiry: (?P<expiry>[^)]+)|[^)]*)\))?$", re.MULTILINE
)
_EXPIRY = "%Y-%m-%d %H:%M:%S"

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
        if "error" in seen:
            found.append(Finding(WARN, "guest", node, f"it could not be looked into: {seen['error']}"))
            continue
        told = [*_timers(seen, budget), *_environment(seen, budget), *_licence(seen, now, lasts), *_unread(seen)]
        if minutes is not None:
            told += _checkpoint(seen, minutes)
        found += [Finding(severity, rule, node, text) for severity, rule, text in told]
    return found


def _timers(seen: Mapping[str, Any], budget: float) -> Told:
    """ssh, sshd, TCP and Open MPI."""
    for name, seconds in stun.patience({key: value for key, value in seen.items() if value}).items():
        if seconds < budget:
            yield STOP, "timers", _short(name, seconds, budget)


def _environment(seen: Mapping[str, Any], budget: float) -> Told:
    """What the ranks were told: NCCL, UCX, Gloo, Horovod and torch."""
    told = seen.get("environment") or {}
    words = " ".join(map(str, seen.get("mpirun") or []))
    if told.get("NCCL_IB_DISABLE") == "0" or "NCCL_IB_HCA" in told:
        yield from _nccl(told, budget)
    if "pml ucx" in words or told.get("OMPI_MCA_pml") == "ucx":
        seconds = _seconds(told.get("UCX_RC_TIMEOUT", "1000ms")) * (int(told.get("UCX_RC_RETRY_COUNT", "7")) + 1)
        if seconds < budget:
            yield STOP, "timers", _short("UCX_RC_TIMEOUT with UCX_RC_RETRY_COUNT", seconds, budget)
    is_gloo = "HOROVOD_GLOO_RENDEZVOUS_ADDR" in told or "gloo" in (
        told.get("HOROVOD_CONTROLLER"),
        told.get("HOROVOD_CPU_OPERATIONS"),
    )
    limits = {"HOROVOD_GLOO_TIMEOUT_SECONDS": GLOO_SECONDS if is_gloo else 0.0}
    for name in ("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "TORCH_NCCL_TIMEOUT_SEC"):
        limits[name] = 0.0
    for name, usual in limits.items():
        seconds = float(told.get(name, usual))
        if 0 < seconds < budget:
            yield STOP, "timers", _short(name, seconds, budget)


def _nccl(told: Mapping[str, str], budget: float) -> Told:
    if "NCCL_IB_TIMEOUT" not in told:
        text = "NCCL_IB_TIMEOUT is not set, and its default differs by version: some give a peer up after half a second"
        yield STOP, "timers", text
        return
    retries = int(told.get("NCCL_IB_RETRY_CNT", RETRIES))
    seconds = TICK_SECONDS * 2 ** int(told["NCCL_IB_TIMEOUT"]) * (retries + 1)
    if seconds < budget:
        yield STOP, "timers", _short("NCCL_IB_TIMEOUT with NCCL_IB_RETRY_CNT", seconds, budget)


def _licence(seen: Mapping[str, Any], now: float, lasts: float) -> Told:
    told = seen.get("nvidia")
    if not told:
        return
    found = _LICENCE.search(told)
    if not found:
        yield NOTE, "licence", "nvidia-smi names no licence: this GPU needs none, or its driver tells none"
        return
    if found["status"] != "Licensed":
        yield STOP, "licence", f"its vGPU is {found['status'].lower()}: it will be slowed down; license it"
        return
    left = _expires(found["expiry"]) - now if found["expiry"] else float("inf")
    if left < lasts:
        yield STOP, "licence", f"its vGPU licence ends within {max(left, 0) / 60:.0f} min, before the test: renew it"


def _expires(text: str) -> float:
    """The moment of an expiry such as ``2026-3-4 12:0:0 GMT``."""
    moment = datetime.strptime(text.replace("GMT", "").strip(), _EXPIRY)
    return moment.replace(tzinfo=timezone.utc).timestamp()


def _checkpoint(seen: Mapping[str, Any], minutes: float) -> Told:
    newest = seen.get("checkpoint")
    if newest is None:
        yield STOP, "checkpoint", "there is no checkpoint on it: let the job make one first"
        return
    age, path = newest["age_s"] / 60, newest["path"]
    if age > minutes:
        yield STOP, "checkpoint", f"its newest checkpoint {path} is {age:.0f} min old, more than {minutes:g} min"
    if newest["verified"] is False or not newest["bytes"]:
        yield STOP, "checkpoint", f"its newest checkpoint {path} is not what its checksum says: do not count on it"
    elif newest["verified"] is None:
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
    found = re.fullmatch(r"([\d.]+)(us|ms|s|m)?", text.strip())
    if not found:
        return float("inf")
    return float(found[1]) * {"us": 1e-6, "ms": 1e-3, "m": 60.0}.get(found[2] or "s", 1.0)
