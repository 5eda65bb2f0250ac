"""Gauges in the text format of Prometheus; a gauge without a known value is left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Tuple

# The labels of one series, and its value; None is unknown.
Sample = Tuple[Mapping[str, object], "float | None"]


class Gauge(NamedTuple):
    """A metric: its name, its help, and the value of each of its series."""

    name: str
    help: str
    samples: Iterable[Sample]


def text(gauges: Iterable[Gauge]) -> str:
    """Return gauges as the text that a textfile collector reads."""
    return "".join(f"{line}\n" for gauge in gauges for line in _lines(gauge))


def _lines(gauge: Gauge) -> Iterator[str]:
    known = [(labels, value) for labels, value in gauge.samples if value is not None]
    if known:
        yield f"# HELP {gauge.name} {gauge.help}"
        yield f"# TYPE {gauge.name} gauge"
    for labels, value in known:
        shown = ",".join(f"{name}={_quoted(str(each))}" for name, each in labels.items())
        yield f"{gauge.name}{{{shown}}} {_number(value)}"


def _quoted(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
