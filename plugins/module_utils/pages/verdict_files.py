"""The files of a verdict, as texts by name: the verdict itself as JSON and as JUnit XML, and its timeline."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence

from ..continuity.judged_facts import Move, MoveVerdict, Verdict
from ..continuity.step_records import Track
from ..training.results.timeline import timeline
from .escaping import xml
from .vmotion_page import page

CONTINUOUS = "continuous"
VERDICT, TIMELINE = ("verdict.json", "junit.xml"), ("timeline.json", "timeline.html")


def verdict_texts(name: str, moves: Sequence[Move], judged: Verdict) -> dict[str, str]:
    """Return the verdict as JSON and as JUnit XML."""
    return dict(zip(VERDICT, (json.dumps(judged, indent=2) + "\n", junit_report(name, judged, moves))))


def timeline_texts(
    about: Mapping[str, str],
    tracks: Sequence[Track],
    moves: Sequence[Move],
    judged: Verdict,
    at: Mapping[str, str],
    changes: Iterable[Mapping[str, object]] = (),
) -> dict[str, str]:
    """Return the timeline as JSON and as a page.

    ``about`` contains the ``name`` of the test and a caution about its ``site``, ``at`` the host of each worker before
    the first move, and ``changes`` the hosts that were out of service.
    """
    content = {**about, **timeline(tracks, moves, judged, at)}
    content["changes"] = [
        {
            "host": change["host"],
            "from": change["out_at"] - content["began"],
            # A host whose change failed is still out of service.
            "until": change["back_at"] - content["began"] if change["back_at"] else content["seconds"],
            "reboots": change["reboots"],
        }
        for change in changes
    ]
    return dict(zip(TIMELINE, (json.dumps(content, indent=1) + "\n", page(content, about["name"]))))


def junit_report(name: str, verdict: Verdict, moves: Sequence[Move]) -> str:
    """Return a test as JUnit XML for a CI server: one case for the job, and one for each move.

    An inconclusive test is an error, and a broken job or a failed move is a failure.
    """
    suite = ET.Element("testsuite", name=xml(name))
    _job(suite, verdict)
    for move, judged in zip(moves, verdict.get("moves", [])):
        _move(suite, move, judged)
    for text in verdict.get("not_made") or []:
        case = ET.SubElement(suite, "testcase", classname="moves", name=xml(text))
        ET.SubElement(case, "error", message=xml("the test ended before it"))
    cases = list(suite)
    counts = {kind: sum(case.find(kind[:-1]) is not None for case in cases) for kind in ("failures", "errors")}
    suite.attrib.update(tests=str(len(cases)), **{kind: str(count) for kind, count in counts.items()})
    ET.indent(suite)
    # Some versions of Python would declare the encoding of the locale, but the file is written as UTF-8.
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def _job(suite: ET.Element, verdict: Verdict) -> None:
    case = ET.SubElement(suite, "testcase", classname="continuity", name="the job ran on")
    if verdict["verdict"] == CONTINUOUS:
        return
    broken = verdict["verdict"] == "broken"
    texts = [breach["detail"] for breach in verdict["breaches"]] if broken else list(verdict["unproven"])
    problem = ET.SubElement(case, "failure" if broken else "error", message=xml(texts[0] if texts else ""))
    problem.text = xml("\n".join(texts))


def _move(suite: ET.Element, move: Move, judged: MoveVerdict) -> None:
    name = f"{move['worker']} from {move.get('source')} to {move.get('target')}"
    case = ET.SubElement(suite, "testcase", classname="moves", name=xml(name))
    started, completed = move.get("started"), move.get("completed")
    if started is not None and completed is not None:
        case.set("time", f"{completed - started:.3f}")
    if not judged.get("moved"):
        reason = str(move.get("said") or "it was not moved")
        ET.SubElement(case, "failure", message=xml(reason))
