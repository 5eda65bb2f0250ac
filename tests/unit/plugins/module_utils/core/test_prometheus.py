"""Metrics are text as a textfile collector of Prometheus reads it."""

from __future__ import annotations

import math

from plugins.module_utils.core.prometheus import Gauge, text


def test_gauge_has_help_type_and_known_values() -> None:
    samples = [
        ({"host": 'a"b\\c\nd'}, 1.5),
        ({"host": "x"}, None),
        *(({}, each) for each in (math.inf, -math.inf, math.nan)),
    ]

    assert text([Gauge("dml_size", "How large it is.", samples), Gauge("dml_none", "Unknown.", [({}, None)])]) == (
        "# HELP dml_size How large it is.\n"
        "# TYPE dml_size gauge\n"
        'dml_size{host="a\\"b\\\\c\\nd"} 1.5\n'
        "dml_size{} +Inf\n"
        "dml_size{} -Inf\n"
        "dml_size{} NaN\n"
    )
