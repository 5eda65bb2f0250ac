"""The report on GPUs as one HTML page that needs no other file: on screen, light or dark, and on paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core.json_values import JsonObject
from ..usage import usage_text
from ..usage.usage_report import IDLE, UNASSIGNED, UNREACHABLE, Report
from ..usage.usage_text import amount, busy, money, number, percent, plain
from .escaping import html as escape
from .style import STYLE

_NUMBERS = frozenset({"GPUs", "Idle GPUs", "VMs", "Utilisation", "GPU hours", "Cost per hour", "Cost in the period"})
_SHORT = frozenset({"State", "GPU", "Utilisation mean/peak"})
_SHARES = "A virtual GPU counts as its profile's share of the GPU's memory; a GPU in passthrough counts as one."
_COUNTERS = (
    "The utilisation comes from vCenter's counters. They measure the whole GPU, not each virtual machine on it. "
    "GPUs in passthrough are not measured, because NVIDIA's driver on the host has no access to them."
)
_HOURS = (
    "GPU hours count the current run of each virtual machine within the period. vCenter does not report earlier runs, "
    "nor those of powered-off virtual machines. The cost per hour is based on the current assignment."
)
WIDTH, ROW, BAR, TOP, BOTTOM = 960, 26, 14, 34, 8
LABEL, TRACK, TEXT = 250, 420, 106
SHARE_AT, SHARE = LABEL + TRACK + TEXT + 20, 110
HATCH = (
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern>'
)
TICKS = (0, 25, 50, 75, 100)


def page(report: Report) -> str:
    title = f"GPUs of cluster {plain(report['cluster'])}"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>",
        f"<header><h1>{escape(title)}</h1><p>{escape(usage_text.period(report))}.</p></header>",
        _tiles(report),
        _idle(report),
        _section("Utilisation of each GPU", _utilisation(report)),
        _section(f"GPUs by {plain(report['group_by']).replace('_', ' ')}", _groups(report)),
        _section("GPU hours in Slurm", _slurm(report)) if report["slurm"] else "",
        _section("All GPUs", _gpus(report["gpus"])),
        _list("Virtual machines without a GPU", _without_gpu(report)),
        _list("Hosts with unknown GPUs", map(usage_text.unread, report["unread"])),
        _section("Notes", "".join(f"<p>{escape(text)}</p>" for text in _how(report))),
        "</main></body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _tiles(report: Report) -> str:
    totals = report["totals"]
    unused = totals["states"][IDLE] + totals["states"][UNASSIGNED]
    mean = usage_text.NOT_KNOWN if totals["utilisation"] is None else percent(totals["utilisation"])
    tiles = [
        (number(totals["gpus"]), f"GPUs on {totals['hosts']} hosts"),
        (number(totals["assigned"]), f"assigned to {totals['vms']} VMs, {number(totals['free'])} free"),
        (str(unused), f"GPUs: {totals['states'][IDLE]} idle, {totals['states'][UNASSIGNED]} unassigned"),
        (mean, f"mean utilisation of {totals['measured']} measured GPUs"),
    ]
    if report["price"]:
        currency = plain(report["price"]["currency"])
        tiles.append((amount(totals["cost_per_hour"]), f"{currency} per hour for assigned GPUs".strip()))
        wasted = f"{currency} per hour for idle and unassigned GPUs".strip()
        tiles.append((amount(totals["idle_cost_per_hour"]), wasted))
    cells = (f"<div><b>{escape(value)}</b><span>{escape(text)}</span></div>" for value, text in tiles)
    return f'<div class="tiles">{"".join(cells)}</div>'


def _idle(report: Report) -> str:
    gpus = [gpu for gpu in report["gpus"] if gpu["state"] in (IDLE, UNASSIGNED)]
    if not gpus:
        return '<p class="call none">No GPU is idle or unassigned.</p>'
    rows = "".join(f"<li>{_idle_words(gpu)}</li>" for gpu in gpus)
    return f'<div class="call"><h2>Idle and unassigned GPUs</h2><ul>{rows}</ul></div>'


def _idle_words(gpu: JsonObject) -> str:
    name = f"<b>{escape(plain(gpu['host']))} {escape(plain(gpu['address']))}</b>"
    if not gpu["users"]:
        return f"{name}: unassigned ({escape(plain(gpu['mode']))})"
    users = ", ".join(usage_text.user(user) for user in gpu["users"])
    utilisation = gpu["utilisation"]
    load = f"mean utilisation {percent(utilisation['mean'])}, peak {percent(utilisation['peak'])}"
    return f"{name}: {load}, assigned to {escape(users)}"


def _utilisation(report: Report) -> str:
    """Return the bars with their legend, which stay together on paper."""
    return f'<figure><div class="wide">{plot(report["gpus"])}</div>{_legend()}</figure>'


def _legend() -> str:
    names = ("busy", "idle", "not measured", "unassigned")
    keys = (f'<span class="{name.replace(" ", "-")}"><i></i>{name}</span>' for name in names)
    return f'<p class="legend">{"".join(keys)}</p>'


def _groups(report: Report) -> str:
    columns = usage_text.group_columns(report)
    rows = (_row(columns, usage_text.group_cells(group, report)) for group in report["groups"])
    totals = report["totals"]
    free = sum(group["idle_gpus"] for group in report["groups"])
    hours = number(totals["gpu_hours"])
    mean = usage_text.NOT_KNOWN if totals["utilisation"] is None else percent(totals["utilisation"])
    sums = ["All", number(totals["gpus"]), number(free), str(totals["vms"]), mean, hours]
    if report["price"]:
        everything = sum(group["cost_per_hour"] for group in report["groups"])
        sums += [money(everything, report), money(totals["cost"], report)]
    return _table(columns, rows, f"<tfoot>{_row(columns, sums)}</tfoot>")


def _slurm(report: Report) -> str:
    columns = usage_text.slurm_columns(report)
    return _table(columns, (_row(columns, cells) for cells in usage_text.slurm_cells(report)))


def _gpus(gpus: Iterable[Mapping[str, Any]]) -> str:
    columns = usage_text.GPU_COLUMNS
    rows = (_row(columns, usage_text.gpu_cells(gpu), gpu["state"].replace(" ", "-")) for gpu in gpus)
    return _table(columns, rows)


def _without_gpu(report: Report) -> list[str]:
    return [*map(usage_text.waiting, report["waiting"]), *map(usage_text.lost, report["lost"])]


def _list(title: str, texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return _section(title, f"<ul>{items}</ul>") if items else ""


def _how(report: Report) -> Iterator[str]:
    below = number(report["idle_below_percent"])
    yield (
        f"A GPU is idle if it is assigned and its mean utilisation is below {below}%. A GPU is unassigned if no "
        "running virtual machine uses it."
    )
    yield from (_SHARES, _COUNTERS, _HOURS)
    yield f"Read at {report['taken']} on vCenter's clock."


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _table(columns: Sequence[str], rows: Iterable[str], foot: str = "") -> str:
    heads = "".join(f"<th{_kind(name)}>{escape(name)}</th>" for name in columns)
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody>{foot}</table></div>'


def _row(columns: Sequence[str], cells: Sequence[str], state: str = "") -> str:
    row = "".join(f"<td{_kind(name)}>{escape(cell)}</td>" for name, cell in zip(columns, cells))
    return f'<tr class="{state}">{row}</tr>' if state else f"<tr>{row}</tr>"


def _kind(column: str) -> str:
    kind = "number" if column in _NUMBERS else "short" if column in _SHORT else ""
    return f' class="{kind}"' if kind else ""


def plot(gpus: Sequence[Mapping[str, object]]) -> str:
    height = TOP + ROW * len(gpus) + BOTTOM
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Utilisation and assigned share of each GPU">',
        f"<defs>{HATCH}</defs>",
        *_axes(height),
    ]
    for place, gpu in enumerate(gpus):
        parts += _plot_row(gpu, TOP + ROW * place)
    return "\n".join([*parts, "</svg>"])


def _axes(height: int) -> Iterator[str]:
    yield f'<text class="head" x="{LABEL}" y="12">Utilisation: bar mean, line peak</text>'
    yield f'<text class="head" x="{SHARE_AT}" y="12">Assigned</text>'
    for tick in TICKS:
        across = _x(tick)
        yield f'<line class="grid" x1="{across}" y1="{TOP - 4}" x2="{across}" y2="{height - BOTTOM}"/>'
        yield f'<text class="tick" x="{across}" y="{TOP - 8}">{tick}%</text>'


def _plot_row(gpu: JsonObject, top: int) -> Iterator[str]:
    """Yield one GPU: its name, its bar or the state that replaces the bar, and its share."""
    state = gpu["state"].replace(" ", "-")
    bar_top, base = top + (ROW - BAR) // 2, top + ROW // 2 + 4
    name = escape(f"{plain(gpu['host'])}  {plain(gpu['address'])}")
    utilisation = busy(gpu["utilisation"])
    yield f'<g class="gpu {state}"><title>{name}: {escape(gpu["state"])}, {escape(utilisation)}</title>'
    yield f'<text class="name" x="{LABEL - 12}" y="{base}">{name}</text>'
    yield f'<rect class="track" x="{LABEL}" y="{bar_top}" width="{TRACK}" height="{BAR}" rx="3"/>'
    yield from _bar(gpu, bar_top)
    text = gpu["state"] if gpu["state"] in (UNASSIGNED, UNREACHABLE) else utilisation
    yield f'<text class="value" x="{LABEL + TRACK + 10}" y="{base}">{escape(text)}</text>'
    yield from _share(gpu["assigned_share"], bar_top, base)
    yield "</g>"


def _bar(gpu: JsonObject, top: int) -> Iterator[str]:
    utilisation = gpu["utilisation"]
    if utilisation is None or gpu["state"] == UNASSIGNED:
        yield f'<rect class="hollow" x="{LABEL}" y="{top}" width="{TRACK}" height="{BAR}" rx="3"/>'
        return
    width = max(TRACK * min(utilisation["mean"], 100) / 100, 2)
    yield f'<rect class="bar" x="{LABEL}" y="{top}" width="{width:.1f}" height="{BAR}" rx="3"/>'
    peak = _x(min(utilisation["peak"], 100))
    yield f'<line class="peak" x1="{peak}" y1="{top - 2}" x2="{peak}" y2="{top + BAR + 2}"/>'


def _share(share: float, top: int, base: int) -> Iterator[str]:
    yield f'<rect class="track" x="{SHARE_AT}" y="{top}" width="{SHARE}" height="{BAR}" rx="3"/>'
    if share:
        yield f'<rect class="share" x="{SHARE_AT}" y="{top}" width="{SHARE * share:.1f}" height="{BAR}" rx="3"/>'
    yield f'<text class="value" x="{SHARE_AT + SHARE + 8}" y="{base}">{percent(100 * share)}</text>'


def _x(value: float) -> str:
    return f"{LABEL + TRACK * value / 100:.1f}".rstrip("0").rstrip(".")
