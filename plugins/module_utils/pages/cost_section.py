"""The cost of moves and of hosts out of service on the page of a test, with published figures for comparison."""

from __future__ import annotations

from collections.abc import Sequence

from ..continuity.cost_lines import lost, sentences, service
from ..continuity.judged_facts import HostCost
from ..core.json_values import JsonObject
from . import escaping
from .escaping import html as escape

TITLE, FIGURES_TITLE = "Cost", "Published figures"
HOST_HEADS = ("Host", "Out of service", "Reboots", "Moves", "Longest silence", "Lost")
FIGURE_HEADS = ("Subject", "Published figure", "Source")
VSPHERE_67 = "VMware vSphere 6.7 documentation, GUID-8FE6A0DA-49E9-472B-815B-D630CF2014AD"
# The figures are as published. No source reports whether the same job continued.
FIGURES = (
    (
        "vMotion of one vGPU, P40, 10 Gbit/s, vSphere 6.7: stun",
        "9.0 s with 1 GB of GPU memory in use, 31.4 s with 4 GB, 91.2 s with 12 GB; the move fails from 16 GB on",
        VSPHERE_67,
    ),
    (
        "vMotion of one vGPU, V100, 10 Gbit/s, vSphere 7.0: stun",
        "2 s with 1 GB of GPU memory in use, 22 s with 16 GB, 39 s with 32 GB",
        "VMware vSphere 7.0 documentation, the page of the same GUID",
    ),
    (
        "vMotion of one of the workers of a job, T4-16C with 13.9 GB in use",
        "189 s for the move; the time without a step is not reported",
        '"Distributed Machine Learning on vSphere leveraging NVIDIA vGPU and Mellanox PVRDMA", VMware',
    ),
    (
        "TrainMover: ranks move to standby machines inside the framework, 1,024 GPUs",
        "about 20 s without a step; 55 % fewer wasted GPU hours than the best alternative (projected)",
        "arXiv 2412.12636v3",
    ),
    ("TrainMover, a move every 10 minutes", "99 % training efficiency", "arXiv 2412.12636v2"),
    (
        "Llama 3 405B, 16,384 GPUs, restarts from checkpoints: 466 interruptions in 54 days",
        "more than 90 % effective training time",
        '"The Llama 3 Herd of Models", Meta, 2024',
    ),
)


def section(timeline: JsonObject) -> str:
    """Return the cost as HTML, empty if it is not known."""
    cost = timeline.get("cost")
    if not cost:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in sentences(cost))
    hosts = _table(HOST_HEADS, [_cells(host) for host in cost["hosts"]]) if cost["hosts"] else ""
    figures = f"<h3>{FIGURES_TITLE}</h3>{_table(FIGURE_HEADS, FIGURES)}"
    return f"<h3>{TITLE}</h3><ul>{items}</ul>{hosts}{figures}"


def markdown(timeline: JsonObject) -> list[str]:
    """Return the cost as lines of Markdown, none if it is not known."""
    cost = timeline.get("cost")
    if not cost:
        return []
    lines = ["", f"### {TITLE}", "", *(f"- {escaping.markdown(text)}" for text in sentences(cost))]
    if cost["hosts"]:
        lines += ["", *_rows(HOST_HEADS, [_cells(host) for host in cost["hosts"]])]
    return [*lines, "", f"### {FIGURES_TITLE}", "", *_rows(FIGURE_HEADS, FIGURES)]


def _cells(host: HostCost) -> tuple[str, ...]:
    stall = host["longest_stall_s"]
    moves = ", ".join(map(str, host["moves"])) or "none"
    return (
        str(host["host"]),
        service(host),
        str(host["reboots"]),
        moves,
        "-" if stall is None else f"{stall:.1f} s",
        lost(host),
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    shown = (" | ".join(map(escaping.markdown, row)) for row in rows)
    return ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads), *(f"| {row} |" for row in shown)]
