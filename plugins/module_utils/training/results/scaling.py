"""Scaling tables: speed-up and efficiency by number of GPUs and transport, from measured training runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

BASELINE_TRANSPORT = "tcp"
HIGHEST = 1 << 53


class ScalingError(ValueError):
    """The runs are not sufficient for a scaling table."""


@dataclass(frozen=True)
class _Point:
    nodes: int
    gpus: int
    transport: str


def table(runs: Iterable[dict[str, object]], images_per_epoch: int | None = None) -> list[dict[str, Any]]:
    """Return one unrounded row per nodes, GPUs and transport: the median rate, its spread (range) and the gains.

    A rate that was measured once has no spread. The seconds of an epoch are the median of the measured ones; if no run
    measured them, they are calculated from ``images_per_epoch``.
    """
    runs = list(runs)
    if images_per_epoch is not None and not _is_positive(images_per_epoch):
        raise ScalingError(f"images_per_epoch is {_short(images_per_epoch)}: expected a number above zero.")
    rates = _rates_by_point(runs)
    medians = {point: float(median(measured)) for point, measured in rates.items()}
    epochs = _epochs_by_point(runs)
    return [
        {**_row(point, medians, images_per_epoch), "spread": _spread(rates[point]), **_epoch(epochs.get(point))}
        for point in sorted(medians, key=lambda point: (point.gpus, point.transport, point.nodes))
    ]


def _spread(rates: Sequence[float]) -> float | None:
    return max(rates) - min(rates) if len(rates) > 1 else None


def _epoch(measured: Sequence[float] | None) -> dict[str, object]:
    """Return the measured seconds of an epoch: they take precedence over the calculated ones."""
    return {"seconds_per_epoch": float(median(measured)), "epoch_measured": True} if measured else {}


def _epochs_by_point(runs: Iterable[Mapping[str, Any]]) -> dict[_Point, list[float]]:
    epochs: dict[_Point, list[float]] = {}
    for run in runs:
        if _is_positive(run.get("seconds_per_epoch")):
            epochs.setdefault(_point(run), []).append(float(run["seconds_per_epoch"]))
    return epochs


def _row(point: _Point, medians: Mapping[_Point, float], images_per_epoch: int | None) -> dict[str, object]:
    rate = medians[point]
    speedup = rate / _single_gpu_rate(point.transport, medians)
    tcp_rate = medians.get(_Point(point.nodes, point.gpus, BASELINE_TRANSPORT))
    return {
        "nodes": point.nodes,
        "gpus": point.gpus,
        "transport": point.transport,
        "images_per_sec": rate,
        "spread": None,
        "speedup": speedup,
        "efficiency": speedup / point.gpus,
        "ratio_to_tcp": None if tcp_rate is None else rate / tcp_rate,
        "seconds_per_epoch": None if images_per_epoch is None else images_per_epoch / rate,
        "epoch_measured": False,
    }


def _single_gpu_rate(transport: str, medians: Mapping[_Point, float]) -> float:
    rate = medians.get(_Point(1, 1, transport))
    if rate is None:
        raise ScalingError(
            f"The transport {transport!r} has no run on 1 GPU, so no speed-up can be calculated: "
            "measure it on one node with one GPU too."
        )
    return rate


def _rates_by_point(runs: Iterable[dict[str, object]]) -> dict[_Point, list[float]]:
    rates: dict[_Point, list[float]] = {}
    for run in runs:
        rates.setdefault(_point(run), []).append(_rate(run))
    return rates


def _point(run: Mapping[str, object]) -> _Point:
    nodes, gpus, transport = (_given(run, key) for key in ("nodes", "gpus", "transport"))
    for key, value in (("nodes", nodes), ("gpus", gpus)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= HIGHEST:
            raise ScalingError(
                f"The run {_shown(run)} has {key}={_short(value)}: expected a whole number of 1 or more."
            )
    if gpus < nodes:
        raise ScalingError(f"The run {_shown(run)} has fewer GPUs than nodes: gpus counts those of all nodes together.")
    if not isinstance(transport, str) or not transport:
        raise ScalingError(f"The run {_shown(run)} has transport={transport!r}: expected a name such as 'tcp'.")
    return _Point(nodes, gpus, transport)


def _rate(run: Mapping[str, object]) -> float:
    rate = _given(run, "images_per_sec")
    if not _is_positive(rate):
        raise ScalingError(f"The run {_shown(run)} has images_per_sec={_short(rate)}: expected a number above zero.")
    return float(rate)


def _given(run: Mapping[str, object], key: str) -> Any:
    if key not in run:
        raise ScalingError(f"The run {_shown(run)} lacks {key!r}.")
    return run[key]


def _is_positive(value: object) -> bool:
    # Greater numbers do not fit a float, or their quotients do not.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= HIGHEST


def _shown(run: Mapping[str, object]) -> str:
    return f"{{{', '.join(f'{key!r}: {_short(value)}' for key, value in run.items())}}}"


def _short(value: object) -> str:
    """Return a value for a sentence; Python refuses to print numbers with thousands of digits."""
    return "a number beyond 2^53" if isinstance(value, int) and abs(value) > HIGHEST else repr(value)
