# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The scaling table for a terminal, next to a published one."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

WIDTH = 79
# Ansible folds longer lines.
HEAD = "Nodes GPUs  By        Images/s  Spread Speed-up Effic. | Images/s Speed-up"
SAME = {"pvrdma": "rdma"}


def lines(report: Mapping[str, Any]) -> list[str]:
    """Return a row for each measured point, next to the published rates for it, and the missing measurements."""
    texts = (report["site"], *report["trained"], report["caution"])
    text_lines = [line for text in texts for line in wrap(text, WIDTH)]
    if not report["rows"]:
        return text_lines + [f"Not measured: {text}" for text in report["not_measured"]]
    for published in report["published"] or [{"name": "", "rows": []}]:
        beside = {_point(row): row for row in published["rows"]}
        text_lines.append(HEAD if report["unit"] == "GPUs" else HEAD.replace("GPUs ", "Ranks"))
        text_lines += [_line(row, beside.get(_point(row))) for row in report["rows"]]
        text_lines += [f"Right of the bar: published results of {published['name']}"] if beside else []
    return text_lines + [f"Not measured: {text}" for text in report["not_measured"]]


def _point(row: Mapping[str, Any]) -> tuple[int, int, str]:
    return row["nodes"], row["gpus"], SAME.get(row["transport"], row["transport"])


def _line(row: Mapping[str, Any], beside: Mapping[str, Any] | None) -> str:
    rate, spread = f"{row['images_per_sec']:.1f}", "-" if row["spread"] is None else f"{row['spread']:.1f}"
    own = f"{row['nodes']:<5} {row['gpus']:<5} {row['transport']:<6} {rate:>11} {spread:>7}"
    own += f" {row['speedup']:>8.2f} {100 * row['efficiency']:>5.0f}% |"
    return own + (f" {beside['images_per_sec']:>8.0f} {beside['speedup']:>8.2f}" if beside else f" {'-':>8} {'-':>8}")
