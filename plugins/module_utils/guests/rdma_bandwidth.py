# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Bandwidth from node to node, from the output of ``ib_write_bw --report_gbits``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# Bytes, iterations, peak, average, messages a second: the row under the heading that names gigabits.
ROW = re.compile(r"^\s*\d+\s+\d+\s+[\d.]+\s+(?P<average>[\d.]+)\s+[\d.]+\s*$", re.MULTILINE)
HEADING = re.compile(r"BW average\[Gb/sec\]")
# All was written and nothing measured: the program could not tell the processor's frequency, and says so elsewhere.
UNMEASURED = re.compile(r"^\s*\d+\s+\d+(?:\s+0\.0+){3}\s*$", re.MULTILINE)


def average(output: str) -> float | None:
    """The average in gigabits a second; None where the program measured nothing, or in other units."""
    rows = ROW.findall(output) if HEADING.search(output) and not UNMEASURED.search(output) else []
    return float(rows[-1]) if rows else None


def misfits(pairs: Sequence[Mapping[str, Any]], least: float) -> list[str]:
    """A sentence for each pair of nodes, ``{"from", "to", "output"}``, whose bandwidth is missing or low."""
    sentences = []
    for pair in pairs:
        found = average(pair["output"])
        way = f"ib_write_bw from {pair['from']} to {pair['to']}"
        if UNMEASURED.search(pair["output"]):
            sentences += [_unmeasured(way, str(pair.get("error") or ""))] if least else []
        elif found is None:
            said = (str(pair.get("error") or pair["output"]).strip() or "it printed nothing")[-400:]
            sentences.append(f"{way} measured nothing: {said}")
        elif found <= 0 or found < least:
            sentences.append(f"{way} measured {found:g} Gbit/s, less than {least:g}.")
    return sentences


def _unmeasured(way: str, error: str) -> str:
    told = next((line.strip() for line in error.splitlines() if "orrelation" in line), "it does not say why")
    return (
        f"{way} wrote all and could not measure how fast, by the clock of the node's processor ({told}): run it again."
    )
