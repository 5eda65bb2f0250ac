# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""A vMotion test as JUnit XML, which every CI server shows: one case for the job, one for each move."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import Any

from .foreign import xml

CONTINUOUS = "continuous"


def report(name: str, verdict: Mapping[str, Any], moves: Sequence[Mapping[str, Any]]) -> str:
    """The whole file; an inconclusive test is an error, a broken job or a failed move a failure."""
    suite = ET.Element("testsuite", name=xml(name))
    _job(suite, verdict)
    for move, judged in zip(moves, verdict.get("moves", [])):
        _move(suite, move, judged)
    cases = list(suite)
    counts = {kind: sum(case.find(kind[:-1]) is not None for case in cases) for kind in ("failures", "errors")}
    suite.attrib.update(tests=str(len(cases)), **{kind: str(count) for kind, count in counts.items()})
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _job(suite: ET.Element, verdict: Mapping[str, Any]) -> None:
    case = ET.SubElement(suite, "testcase", classname="continuity", name="the job ran on")
    if verdict["verdict"] == CONTINUOUS:
        return
    broken = verdict["verdict"] == "broken"
    texts = [one["detail"] for one in verdict["breaches"]] if broken else list(verdict["unproven"])
    problem = ET.SubElement(case, "failure" if broken else "error", message=xml(texts[0] if texts else ""))
    problem.text = xml("\n".join(texts))


def _move(suite: ET.Element, move: Mapping[str, Any], judged: Mapping[str, Any]) -> None:
    name = f"{move['worker']} from {move.get('source')} to {move.get('target')}"
    case = ET.SubElement(suite, "testcase", classname="moves", name=xml(name))
    if move.get("started") is not None and move.get("completed") is not None:
        case.set("time", f"{move['completed'] - move['started']:.3f}")
    if not judged.get("moved"):
        said = str(move.get("said") or "it was not moved")
        ET.SubElement(case, "failure", message=xml(said))
