"""Plots stay valid for any values from a script: an impossible rate is drawn at the edge."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

import pytest

from plugins.module_utils.pages import scaling_plot, timeline_plot

ODD = (1e308, math.inf, -math.inf, math.nan, -1.0, 5e-324, 0.0)
TIMELINE: dict[str, Any] = {"seconds": 10.0, "unit": "images/s", "bin_s": 5.0, "phases": [], "moves": [], "gaps": []}


def numbers(svg: str) -> list[float]:
    """Return all coordinates of a drawing."""
    places = [place for element in ET.fromstring(svg).iter() for place in (element.get("points"), element.get("y1"))]
    return [float(number) for place in places if place for number in re.split(r"[ ,]", place)]


def is_inside(page: str, caption: str) -> bool:
    """Return whether the figures with this caption on a page draw all their lines between the ends of their axis."""
    figures = [figure for figure in re.findall(r"<figure>.*?</figure>", page, re.DOTALL) if caption in figure]
    lines = [points for figure in figures for points in re.findall(r'<polyline points="(.+?)"', figure)]
    heights = [float(point.partition(",")[2]) for points in lines for point in points.split()]
    assert len(heights) > 1
    return min(heights) >= scaling_plot.TOP and max(heights) <= scaling_plot.HEIGHT - scaling_plot.BOTTOM


@pytest.mark.parametrize("value", ODD)
def test_a_curve_with_an_odd_value_is_drawn(value: float) -> None:
    line = scaling_plot.PlotLine("rdma", ((1.0, 10.0), (2.0, value), (2.0, 1e308)))
    assert all(math.isfinite(number) for number in numbers(scaling_plot.plot("Throughput", "images/s", [line])))
    curve = scaling_plot.PlotLine("rdma", tuple((10.0 ** (index * 20), value) for index in range(14)))
    assert all(math.isfinite(number) for number in numbers(scaling_plot.plot("Loss", "", [curve], scaling_plot.STEPS)))


@pytest.mark.parametrize("value", ODD)
def test_a_timeline_with_an_odd_rate_is_drawn(value: float) -> None:
    drawing = timeline_plot.plot({**TIMELINE, "rates": [10.0, value], "hosts": []})
    assert all(math.isfinite(number) for number in numbers(drawing))


@pytest.mark.parametrize("value", [1e308, math.inf, math.nan])
def test_an_axis_ends_at_the_highest_measurable_value(value: float) -> None:
    assert scaling_plot.nice(value) <= scaling_plot.HIGHEST
    assert [scaling_plot.nice(number) for number in (0.7, 11, 1.0)] == [pytest.approx(0.8), 12, 1]


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ((2.31, 2.285, 2.29), (2.28, 2.312)),
        ((10.4, 2.1), (0, 12)),
        ((-3.2, -1.5), (-3.6, -1.2)),
        ((-0.5, 0.5), (-0.64, 0.64)),
        ((0.0, 0.0), (0, scaling_plot.LOWEST)),
        ((-1e15, 1e15), (-1.2e15, 1.2e15)),
    ],
)
def test_axis_of_a_loss_contains_every_value(values: Sequence[float], ends: Sequence[float]) -> None:
    bottom, top = scaling_plot.around(values)

    assert (bottom, top) == pytest.approx(ends)
    assert bottom <= min(values) and top >= max(values)


def test_a_negative_loss_is_drawn_inside_its_axis() -> None:
    line = scaling_plot.PlotLine("run", ((1.0, -0.2), (2.0, -3.9)))

    drawing = scaling_plot.plot("Loss", "", [line], scaling_plot.STEPS, scaling_plot.Extras(from_zero=False))

    assert [text.text for text in ET.fromstring(drawing).iter("text")][:5] == ["-4", "-3", "-2", "-1", "0"]
    heights = [float(mark.get("cy", 0)) for mark in ET.fromstring(drawing).iter("circle")]
    assert len(heights) == 2 and all(
        scaling_plot.TOP <= one <= scaling_plot.HEIGHT - scaling_plot.BOTTOM for one in heights
    )
