"""The JUnit file of a vMotion test: a broken job is a failure, and an inconclusive test an error."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from plugins.module_utils.continuity.verdict import read_case
from plugins.module_utils.pages.verdict_files import junit_report, timeline_texts

MOVES = [
    {"worker": "w1", "source": "a", "target": "b", "started": 10.0, "completed": 12.5},
    {"worker": "w2", "source": "b", "target": "c", "started": 20.0, "completed": None, "said": "No\x00 room."},
]
BREACH = {"kind": "died", "rank": None, "step": None, "at": 1.0, "detail": "the job died"}

ABOUT = {"name": "window", "site": "SIMULATED: <lab>"}


def suite(verdict: str, moved: tuple[bool, bool] = (True, True), **more: Any) -> ET.Element:
    judged = {"verdict": verdict, "breaches": [], "unproven": [], "moves": [{"moved": one} for one in moved], **more}
    return ET.fromstring(junit_report("vmotion_test", judged, MOVES))


def test_a_test_that_passed_has_no_problem() -> None:
    cases = suite("continuous")
    assert (cases.get("tests"), cases.get("failures"), cases.get("errors")) == ("3", "0", "0")
    assert [case.get("name") for case in cases] == ["the job ran on", "w1 from a to b", "w2 from b to c"]
    assert [case.get("time") for case in cases] == [None, "2.500", None]


@pytest.mark.parametrize(
    ("verdict", "more", "counts", "message"),
    [
        ("broken", {"breaches": [BREACH]}, ("1", "0"), "the job died"),
        ("inconclusive", {"unproven": ["records: none"]}, ("0", "1"), "records: none"),
    ],
)
def test_a_job_that_is_not_continuous_has_problems(
    verdict: str, more: dict[str, Any], counts: tuple[str, str], message: str
) -> None:
    cases = suite(verdict, **more)
    assert (cases.get("failures"), cases.get("errors")) == counts
    assert [problem.get("message") for problem in cases[0]] == [message]


def test_a_failed_move_fails_the_test() -> None:
    cases = suite("continuous", moved=(True, False))
    assert (cases.get("failures"), cases.get("errors")) == ("1", "0")
    assert cases[2][0].get("message") == "No room."


def test_the_timeline_has_a_row_per_serviced_host() -> None:
    records = [{"rank": 0, "step": step, "t": 50.0 + step, "seen": 100.0 + step, "host": "w1"} for step in range(60)]
    judged = {
        "verdict": "continuous",
        "moved": "all",
        "longest_gap_s": 1.0,
        "breaches": [],
        "unproven": [],
        "moves": [],
    }
    tracks = read_case(records, [], {}, ended="running").tracks
    change = {"host": "esx01.lab", "out_at": 110.0, "back_at": 152.0, "reboots": 1}
    texts = timeline_texts(ABOUT, tracks, [], judged, {"w1": "esx02.lab"}, [change])
    (found,) = json.loads(texts["timeline.json"])["changes"]
    assert (found["from"], found["until"], found["host"]) == (10.0, 52.0, "esx01.lab")
    assert "esx01.lab: out of service for 42 s, 1 reboot" in texts["timeline.html"]
    assert texts["timeline.html"].partition("<header>")[2].startswith('<p class="site">SIMULATED: &lt;lab&gt;</p>')
    assert "out of service for" not in timeline_texts(ABOUT, tracks, [], judged, {"w1": "esx02.lab"})["timeline.html"]


def test_an_initial_burst_does_not_flatten_the_curve() -> None:
    seen = [*(59 + step / 60 for step in range(60)), *range(60, 160)]
    records = [
        {"rank": 0, "step": step, "t": 50.0 + moment, "seen": 100.0 + moment, "host": "w1"}
        for step, moment in enumerate(seen)
    ]
    judged = {"verdict": "continuous", "moved": "all", "longest_gap_s": 1.0, "breaches": [], "unproven": []}
    judged["moves"] = []
    tracks = read_case(records, [], {}, ended="running").tracks
    page = timeline_texts(ABOUT, tracks, [], judged, {"w1": "esx02.lab"})["timeline.html"]
    assert max(float(text) for text in re.findall(r'class="name"[^>]*>([\d.]+)<', page)) <= 5
