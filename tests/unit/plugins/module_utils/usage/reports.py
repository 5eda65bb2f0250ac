"""Facts about GPUs, to report on."""

from __future__ import annotations

from typing import Any

PERIOD = {
    "asked_hours": 24.0,
    "hours": 24.0,
    "since": "2026-01-01T00:00:00Z",
    "until": "2026-01-02T00:00:00Z",
    "sample_seconds": 300,
    "why": "",
    "unknown_instances": [],
}


def user(vm: str, tenant: str, share: float, hours: float | None = 24.0, **more: Any) -> dict[str, Any]:
    return {
        "vm": vm,
        "tenant": tenant,
        "owner": "",
        "what": "grid_t4-8c",
        "share": share,
        "running_hours": hours,
        "card_told": True,
        **more,
    }


def gpu(host: str, *users: dict[str, Any], mean: float | None = None, **more: Any) -> dict[str, Any]:
    reported = None if mean is None else {"mean": mean, "peak": min(2 * mean, 100.0), "samples": 288}
    return {
        "host": host,
        "reachable": True,
        "maintenance": False,
        "address": "0000:3b:00.0",
        "name": "NVIDIA Tesla T4",
        "gigabytes": 16.0,
        "mode": "vgpu",
        "vgpu_mode": "same_size",
        "slots": [{"profile": "grid_t4-8c", "used": len(users), "free": 2 - len(users)}],
        "users": list(users),
        "utilisation": reported,
        **more,
    }


def facts(*gpus: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "cluster": "gpu",
        "taken": "2026-01-02T00:00:00Z",
        "group_by": "folder",
        "period": PERIOD,
        "gpus": list(gpus),
        "waiting": [],
        "lost": [],
        "unread": [],
        **more,
    }
