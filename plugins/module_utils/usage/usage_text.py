"""The report on GPUs as text: safe names, short numbers, tables for a terminal, and metrics of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core import prometheus
from ..core.json_values import JsonObject
from ..core.names import printable
from ..core.prometheus import Gauge
from ..maintenance.lock.lock_rules import parse_stamp
from .usage_report import STATES, Report

NO_USERS, NO_NAME = "(nobody)", "no tenant"
NOT_KNOWN = "not measured"
_LONGEST_CELL = 48
GPU_COLUMNS = ("State", "Host", "GPU", "Utilisation mean/peak", "Model", "Mode", "Slots used/free", "Used by")
GROUP_COLUMNS = ("Tenant", "GPUs", "Idle GPUs", "VMs", "Utilisation", "GPU hours")
SLURM_COLUMNS, COST = ("Account in Slurm", "User", "Jobs", "GPU hours"), "Cost in the period"


def lines(report: Report) -> list[str]:
    """Return the report as lines: sums, idle GPUs, every GPU, every tenant, VMs without a GPU, and unknown hosts."""
    text = [headline(report), period(report)]
    text += [f"IDLE: {', '.join(map(plain, report['idle']))}"] if report["idle"] else []
    text += ["", *_table(GPU_COLUMNS, [gpu_cells(gpu) for gpu in report["gpus"]])]
    text += ["", *_table(group_columns(report), [group_cells(one, report) for one in report["groups"]])]
    text += ["", *_table(slurm_columns(report), slurm_cells(report))] if report["slurm"] else []
    text += [f"off: {waiting(one)}" for one in report["waiting"]]
    text += [lost(one) for one in report["lost"]]
    text += [unread(host) for host in report["unread"]]
    return text


def headline(report: Report) -> str:
    totals = report["totals"]
    states = ", ".join(f"{totals['states'][state]} {state}" for state in STATES if totals["states"][state])
    parts = [
        f"{plain(report['cluster'])}: {number(totals['gpus'])} GPUs on {totals['hosts']} hosts, {states or 'none'}",
        f"{number(totals['assigned'])} GPUs are assigned to {totals['vms']} VMs, {number(totals['free'])} are free",
    ]
    if totals["cost_per_hour"] is not None:
        parts.append(f"assigned GPUs cost {money(totals['cost_per_hour'], report)} per hour")
        parts.append(f"idle GPUs cost {money(totals['idle_cost_per_hour'], report)} per hour")
    return "; ".join(parts)


def period(report: Report) -> str:
    """Return the period and the GPUs that the counters cover."""
    span, totals = report["period"], report["totals"]
    text = (
        f"Counters of {totals['measured']} of {totals['gpus']} GPUs, last {number(span['hours'])} hours"
        f" ({span['since']} to {span['until']}, one sample every {span['sample_seconds']} s)"
    )
    if span["why"]:
        text += f", not {number(span['asked_hours'])} hours: {span['why']}"
    strangers = [plain(one) for one in span["unknown_instances"]]
    return f"{text}. These counters belong to no known GPU: {', '.join(strangers)}" if strangers else text


def gpu_cells(gpu: JsonObject) -> list[str]:
    mode = " ".join(filter(None, [gpu["mode"], gpu["vgpu_mode"].replace("_", " ")]))
    places = ", ".join(f"{plain(one['profile'])} {one['used']}/{one['free']}" for one in gpu["slots"])
    users = ", ".join(user(one) for one in gpu["users"])
    return [
        gpu["state"] + (" (maintenance)" if gpu["maintenance"] else ""),
        plain(gpu["host"]),
        plain(gpu["address"]),
        busy(gpu["utilisation"]),
        plain(gpu["name"]),
        mode,
        places or "none",
        users or NO_USERS,
    ]


def user(one: Mapping[str, Any]) -> str:
    """Return a user of a GPU with its tenant and its share."""
    owner = f" of {plain(one['owner'])}" if one["owner"] else ""
    guess = "" if one["card_told"] else ", GPU inferred"
    return f"{plain(one['vm'])}{owner} ({plain(one['tenant']) or NO_NAME}, {percent(100 * one['share'])}{guess})"


def group_columns(report: Report) -> tuple[str, ...]:
    """Return the columns of the table of tenants, with costs only if there is a price."""
    return (*GROUP_COLUMNS, "Cost per hour", COST) if report["price"] else GROUP_COLUMNS


def group_cells(one: Mapping[str, Any], report: Report) -> list[str]:
    """Return the cells of one tenant, by column."""
    hours = "" if one["gpu_hours"] is None else number(one["gpu_hours"])
    cells = [
        tenant(one["tenant"]),
        number(one["gpus"]),
        number(one["idle_gpus"]),
        str(len(one["vms"])),
        NOT_KNOWN if one["card_utilisation"] is None else percent(one["card_utilisation"]),
        hours,
    ]
    if report["price"]:
        cells += [money(one["cost_per_hour"], report), "" if one["cost"] is None else money(one["cost"], report)]
    return cells


def slurm_columns(report: Report) -> tuple[str, ...]:
    """Return the columns of the table of accounts in Slurm."""
    return (*SLURM_COLUMNS, COST) if report["price"] else SLURM_COLUMNS


def slurm_cells(report: Report) -> list[list[str]]:
    """Return the cells of each account and user in Slurm, by column."""
    rows = []
    for one in report["slurm"]:
        cells = [plain(one["account"]), plain(one["user"]), str(one["jobs"]), number(one["gpu_hours"])]
        rows.append([*cells, money(one["cost"], report)] if report["price"] else cells)
    return rows


def waiting(one: Mapping[str, Any]) -> str:
    """Return the line of a virtual machine that is off and needs a GPU."""
    fits = "fits now" if one["fits"] else "does not fit now"
    whose = plain(one["tenant"]) or NO_NAME
    wants = ", ".join(map(plain, one["wants"]))
    return f"{plain(one['vm'])} ({whose}) on {plain(one['host'])} needs {wants}: {fits}"


def lost(one: Mapping[str, object]) -> str:
    """Return the line of a running virtual machine whose GPU is not known."""
    return f"{plain(one['vm'])} on {plain(one['host'])} runs with {plain(one['profile'])}, but its GPU is not known"


def unread(host: Mapping[str, object]) -> str:
    """Return the line of a host whose GPUs are not known."""
    return f"{plain(host['host'])} is unreachable, and vCenter has no data about its GPUs"


def tenant(name: str | None) -> str:
    """Return the name of a tenant or, for None, of the unused share."""
    return NO_USERS if name is None else plain(name) or NO_NAME


def busy(utilisation: Mapping[str, Any] | None) -> str:
    return NOT_KNOWN if utilisation is None else f"{percent(utilisation['mean'])} / {percent(utilisation['peak'])}"


def money(value: float, report: Report) -> str:
    """Return an amount in the currency of the report."""
    return f"{amount(value)} {plain(report['price']['currency'])}".strip()


def amount(value: float) -> str:
    return f"{value:,.2f}"


def percent(value: float) -> str:
    return f"{value:.0f}%" if value >= 10 or value == int(value) else f"{value:.1f}%"


def number(value: float) -> str:
    """Return a number with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def plain(name: object) -> str:
    """Return a name without characters that control a terminal."""
    return printable(str(name))


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cut = [[_cut(cell) for cell in row[:-1]] + [row[-1]] for row in rows]
    widths = [max(len(row[place]) for row in (columns, *cut)) for place in range(len(columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in (columns, *cut)]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 3] + "..."


def metrics(report: Report) -> str:
    """Return the metrics of a report; a value that was not measured is left out."""
    return prometheus.text(_gauges(report))


def _gauges(report: Report) -> Iterator[Gauge]:
    cluster = {"cluster": report["cluster"]}
    taken = parse_stamp(report["taken"]).timestamp()
    yield Gauge("dml_audit_read_timestamp_seconds", "When the GPUs were read, on vCenter's clock.", [(cluster, taken)])
    gpus = [({**cluster, "host": gpu["host"], "gpu": gpu["address"]}, gpu) for gpu in report["gpus"]]
    states = [({**key, "state": state}, int(gpu["state"] == state)) for key, gpu in gpus for state in STATES]
    yield Gauge("dml_audit_gpu_state", "Whether the GPU is in this state.", states)
    shares = [(key, gpu["assigned_share"]) for key, gpu in gpus]
    yield Gauge("dml_audit_gpu_assigned_ratio", "The share of the GPU that virtual machines have.", shares)
    busy = [(key, gpu["utilisation"] and gpu["utilisation"]["mean"] / 100) for key, gpu in gpus]
    yield Gauge("dml_audit_gpu_utilization_ratio", "The mean utilization of the GPU in the period.", busy)
    hosts = {entry["host"]: entry for entry in [*report["gpus"], *report["unread"]]}
    reached = [({**cluster, "host": host}, int(entry["reachable"])) for host, entry in hosts.items()]
    yield Gauge("dml_audit_host_reachable", "Whether vCenter reaches the host.", reached)
    out = [({**cluster, "host": host}, int(entry["maintenance"])) for host, entry in hosts.items()]
    yield Gauge("dml_audit_host_maintenance", "Whether the host is in maintenance mode.", out)
