"""Writes the report on training runs to files, from the results of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from .. import runner
from ..continuity.restart_facts import RestartLimits
from ..core import masked
from ..core.json_values import JsonObject
from ..errors import Refused
from ..training.results import saved_attempts, saved_results
from ..training.results.report_files import PRIVATE, ReportFiles
from ..training.results.scaling import ScalingError
from . import pairs_section, restart_section, training_page


def write_report(gate: runner.Gate, options: Mapping[str, Any]) -> dict[str, object]:
    """Write the report, and return the scaling table as lines for a terminal.

    The same results produce the same files, so that a second run changes nothing. Without any result, nothing is
    written.
    """
    report = _report_of(options)
    masked.refuse(report, options["folder"], "write the report")
    files = ReportFiles(Path(options["folder"]), _texts_of(report), PRIVATE)
    shown = {"lines": lines(report), "rows": report["rows"], "not_measured": report["not_measured"]}
    return {**runner.converge_one(gate, files), **shown, "files": files.paths}


def _report_of(options: Mapping[str, Any]) -> dict[str, object]:
    runs = saved_results.runs(Path(options["results"]), options["runs"])
    head = {"title": options["title"], "site": options["site"]}
    images = options["images_per_epoch"] or None
    try:
        report = training_page.report(runs, options["published"], **head, images_per_epoch=images)
    except ScalingError as error:
        raise Refused("published", "make a table of the published runs", str(error), "correct these runs") from error
    tests = saved_results.timelines(Path(options["vmotion_tests"])) if options["vmotion_tests"] else []
    checks = pairs_section.newest(saved_results.fabric_checks(Path(options["fabric"]))) if options["fabric"] else []
    restarts = _restarts(options)
    if not (runs or tests or checks or restarts):
        cause = f"it has no run that matches {options['runs']!r}, and there is no vMotion test or bandwidth measurement"
        raise Refused(options["results"], "write a report", cause, "correct the folder or the names of the runs")
    more = {"vmotion_tests": tests, "fabric": checks, "restarts": restarts}
    return {**report, **{key: found for key, found in more.items() if found}}


def _restarts(options: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return the verdicts on the runs that resumed others."""
    limits = restart_limits(options["loss_tolerance"], options["accept_changes"])
    judged = saved_attempts.resumed_runs(Path(options["results"]), options["runs"], limits)
    return [run.content() for run in judged]


def restart_limits(tolerance: float, accepted: Sequence[str]) -> RestartLimits:
    """Return the limits of a verdict on restarts; refuse a tolerance that is not a share."""
    if not 0 <= tolerance < 1:
        remedy = "set it to the largest relative difference of equal losses, such as 0.001"
        raise Refused("report_loss_tolerance", "compare losses", f"it is {tolerance}", remedy)
    return RestartLimits(loss_tolerance=tolerance, accepted=frozenset(accepted))


def _texts_of(report: JsonObject) -> dict[str, str]:
    """Return the text of each file by its name."""
    return {
        "training.html": training_page.page(report),
        "training.md": training_page.markdown(report),
        "training.csv": training_page.comma_separated(report),
        "training.json": json.dumps(report, indent=4, sort_keys=True) + "\n",
    }


WIDTH = 79
# Ansible folds longer lines.
HEAD = "Nodes GPUs  By        Images/s  Spread Speed-up Effic. | Images/s Speed-up"
SAME = {"pvrdma": "rdma"}


def lines(report: JsonObject) -> list[str]:
    """Return a row for each measured point, next to the published rates for it, and the missing measurements."""
    texts = (report["site"], *report["trained"], report["caution"])
    restarts = [line for run in report.get("restarts", ()) for line in restart_section.lines(run)]
    text_lines = [line for text in (*texts, *restarts) for line in wrap(text, WIDTH)]
    if not report["rows"]:
        return text_lines + [f"Not measured: {text}" for text in report["not_measured"]]
    for published in report["published"] or [{"name": "", "rows": []}]:
        beside = {_point(row): row for row in published["rows"]}
        text_lines.append(HEAD if report["unit"] == "GPUs" else HEAD.replace("GPUs ", "Ranks"))
        text_lines += [_line(row, beside.get(_point(row))) for row in report["rows"]]
        text_lines += [f"Right of the bar: published results of {published['name']}"] if beside else []
    return text_lines + [f"Not measured: {text}" for text in report["not_measured"]]


def _point(row: JsonObject) -> tuple[int, int, str]:
    transport = str(row["transport"])
    return row["nodes"], row["gpus"], SAME.get(transport, transport)


def _line(row: JsonObject, beside: Mapping[str, object] | None) -> str:
    rate, spread = f"{row['images_per_sec']:.1f}", "-" if row["spread"] is None else f"{row['spread']:.1f}"
    own = f"{row['nodes']:<5} {row['gpus']:<5} {row['transport']:<6} {rate:>11} {spread:>7}"
    own += f" {row['speedup']:>8.2f} {100 * row['efficiency']:>5.0f}% |"
    return own + (f" {beside['images_per_sec']:>8.0f} {beside['speedup']:>8.2f}" if beside else f" {'-':>8} {'-':>8}")
