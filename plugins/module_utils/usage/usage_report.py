"""The report on the GPUs of a cluster: idle GPUs first, sums by tenant, and costs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Mapping

from ..core.json_values import JsonObject

# A report as this file makes it, which a file of JSON keeps.
Report = Mapping[str, Any]
FORMAT = 1
IDLE, UNASSIGNED, NOT_MEASURED, UNREACHABLE, BUSY = "idle", "unassigned", "not measured", "unreachable", "busy"
# The order of the GPUs in the report: underused ones come first.
STATES = (IDLE, UNASSIGNED, NOT_MEASURED, UNREACHABLE, BUSY)
# The columns of sacct. Names of accounts and users contain no "|".
SACCT_FORMAT = "Account,User,ElapsedRaw,AllocTRES"
_GPUS = re.compile(r"(?:^|,)gres/gpu=([0-9]{1,9})(?:,|$)")
_SECONDS = re.compile(r"[0-9]{1,12}")


def report(
    facts: Mapping[str, Any],
    price: float | None = None,
    currency: str = "",
    idle_below: float = 5.0,
    slurm: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the report of a result of gpu_usage; ``price`` is the price of one whole GPU for one hour.

    ``slurm`` are the jobs that sacct lists.
    """
    judged = [_judged(gpu, price, idle_below) for gpu in facts["gpus"]]
    gpus = sorted(judged, key=_order)
    hours = float(facts["period"]["hours"])
    return {
        "format": FORMAT,
        "cluster": facts["cluster"],
        "taken": facts["taken"],
        "group_by": facts["group_by"],
        "period": dict(facts["period"]),
        "price": {"per_gpu_hour": price, "currency": currency} if price is not None else None,
        "idle_below_percent": idle_below,
        "totals": _totals(gpus, price, hours),
        "idle": [_called(gpu) for gpu in gpus if gpu["state"] in (IDLE, UNASSIGNED)],
        "gpus": gpus,
        "groups": groups(gpus, price, hours),
        "slurm": hours_of(slurm, price),
        **{key: [dict(one) for one in facts[key]] for key in ("waiting", "lost", "unread")},
    }


def groups(gpus: Iterable[Mapping[str, Any]], price: float | None, hours: float) -> list[dict[str, Any]]:
    """Return the share of each tenant, largest first, and the unused share last; together they are all GPUs."""
    parts: dict[str | None, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for gpu in gpus:
        for user in gpu["users"]:
            parts.setdefault(str(user["tenant"]), []).append((gpu, user))
        parts.setdefault(None, []).append((gpu, {"share": gpu["free_share"], "vm": None, "running_hours": None}))
    found = [_group(tenant, some, price, hours) for tenant, some in parts.items()]
    return sorted(found, key=lambda one: (one["tenant"] is None, -one["gpus"], str(one["tenant"])))


def state_of(gpu: JsonObject, idle_below: float) -> str:
    if not gpu["reachable"]:
        return UNREACHABLE
    if not gpu["users"]:
        return UNASSIGNED
    if gpu["utilisation"] is None:
        return NOT_MEASURED
    return IDLE if gpu["utilisation"]["mean"] < idle_below else BUSY


def _judged(gpu: JsonObject, price: float | None, idle_below: float) -> dict[str, object]:
    assigned = min(sum(user["share"] for user in gpu["users"]), 1.0)
    return {
        **gpu,
        "state": state_of(gpu, idle_below),
        "assigned_share": assigned,
        "free_share": 1.0 - assigned,
        "users": [{**user, "cost_per_hour": _cost(user["share"], price)} for user in gpu["users"]],
    }


def _order(gpu: JsonObject) -> tuple[object, ...]:
    busy = gpu["utilisation"]["mean"] if gpu["utilisation"] else 0.0
    return STATES.index(gpu["state"]), busy, gpu["host"], gpu["address"]


def _group(
    tenant: str | None, parts: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], price: float | None, hours: float
) -> dict[str, Any]:
    share = sum(float(user["share"]) for _gpu, user in parts)
    used = _gpu_hours((user for _gpu, user in parts), hours) if tenant is not None else None
    idle = sum(float(user["share"]) for gpu, user in parts if gpu["state"] == IDLE)
    return {
        "tenant": tenant,
        "vms": sorted({str(user["vm"]) for _gpu, user in parts if user["vm"]}),
        "gpus": share,
        "idle_gpus": idle if tenant is not None else share,
        "card_utilisation": _weighted((gpu, float(user["share"])) for gpu, user in parts),
        "gpu_hours": used,
        "cost_per_hour": _cost(share, price),
        "cost": None if used is None else _cost(used, price),
    }


def _totals(gpus: Sequence[Mapping[str, Any]], price: float | None, hours: float) -> dict[str, object]:
    users = [user for gpu in gpus for user in gpu["users"]]
    used, assigned = _gpu_hours(users, hours), sum(gpu["assigned_share"] for gpu in gpus)
    wasted = [gpu for gpu in gpus if gpu["state"] in (IDLE, UNASSIGNED)]
    return {
        "gpus": len(gpus),
        "hosts": len({gpu["host"] for gpu in gpus}),
        "vms": len({(gpu["host"], user["vm"]) for gpu in gpus for user in gpu["users"]}),
        "assigned": assigned,
        "free": sum(gpu["free_share"] for gpu in gpus),
        "states": {state: sum(gpu["state"] == state for gpu in gpus) for state in STATES},
        "measured": sum(gpu["utilisation"] is not None for gpu in gpus),
        "utilisation": _weighted((gpu, 1.0) for gpu in gpus),
        "gpu_hours": used,
        "cost_per_hour": _cost(assigned, price),
        "cost": _cost(used, price),
        "idle_cost_per_hour": _cost(float(len(wasted)), price),
    }


def _gpu_hours(users: Iterable[Mapping[str, Any]], period: float) -> float:
    """Return the GPU hours of the users' current runs within a period; a run with an unknown start counts as zero."""
    runs = [(float(one["share"]), one["running_hours"]) for one in users]
    return sum(share * min(float(ran), period) for share, ran in runs if ran is not None)


def _weighted(parts: Iterable[tuple[Mapping[str, Any], float]]) -> float | None:
    """Return the weighted mean utilisation of the measured GPUs; None without a measured GPU."""
    measured = [(gpu["utilisation"]["mean"], weight) for gpu, weight in parts if gpu["utilisation"] is not None]
    total = sum(weight for _mean, weight in measured)
    return sum(mean * weight for mean, weight in measured) / total if total else None


def _cost(amount: float, price: float | None) -> float | None:
    return None if price is None else amount * price


def _called(gpu: JsonObject) -> str:
    return f"{gpu['host']} {gpu['address']}"


def hours_of(lines: Iterable[str], price: float | None = None) -> list[dict[str, object]]:
    """Return the jobs with GPUs, GPU hours and costs by account and user, the largest first.

    ``lines`` are those of ``sacct --allocations --truncate --parsable2 --noheader`` with ``SACCT_FORMAT``.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in (line.split("|") for line in lines):
        gpus = _GPUS.search(row[3]) if len(row) == SACCT_FORMAT.count(",") + 1 and _SECONDS.fullmatch(row[2]) else None
        if gpus and int(row[2]):
            one = found.setdefault((row[0], row[1]), {"account": row[0], "user": row[1], "jobs": 0, "gpu_hours": 0.0})
            one["jobs"] += 1
            one["gpu_hours"] += int(gpus[1]) * int(row[2]) / 3600
    for one in found.values():
        one["cost"] = None if price is None else one["gpu_hours"] * price
    return sorted(found.values(), key=lambda one: (-one["gpu_hours"], one["account"], one["user"]))
