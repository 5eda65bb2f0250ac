"""The timeline of a vMotion test: rates over time, moves, silences and hosts, and the page that shows them."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from plugins.module_utils.continuity import verdict
from plugins.module_utils.pages import timeline_plot
from plugins.module_utils.pages import vmotion_page as move_timeline_page
from plugins.module_utils.training.results import timeline as move_timeline

from ...continuity.records import draw, fill
from ...continuity.runs import changed, facts, move, records

AT = {"w0": "esx0", "w1": "esx1", "w2": "esx1", "w3": "esx3"}


def timeline_of(made: list[dict[str, Any]], moves: list[dict[str, Any]], **limits: Any) -> dict[str, Any]:
    case = verdict.read_case(made, moves, limits, ended="running", facts=facts(moves))
    return move_timeline.timeline(case.tracks, moves, verdict.judged(case, ()), AT)


def rate_at(timeline: dict[str, Any], moment: float) -> float:
    return float(timeline["rates"][int(moment / timeline["bin_s"])])


def test_throughput_sums_all_ranks_and_falls_during_stuns() -> None:
    timeline = timeline_of(records(200, stall=(45, 12.0)), [move(40, 60)])
    assert timeline["unit"] == "images/s"
    assert rate_at(timeline, 20) == pytest.approx(4 * 340)
    assert rate_at(timeline, 50) == pytest.approx(4 * 340 / 13, abs=0.001)
    assert rate_at(timeline, 150) == pytest.approx(4 * 340)
    assert [(gap["from"], gap["seconds"], gap["kind"]) for gap in timeline["gaps"]] == [(44.0, 13.0, "in a move")]


def test_without_images_steps_are_counted() -> None:
    timeline = timeline_of(changed(records(100), lambda _record: True, images_per_sec=None), [])
    assert timeline["unit"] == "steps/s"
    assert rate_at(timeline, 50) == pytest.approx(1.0)


def test_steps_before_the_watch_do_not_raise_throughput() -> None:
    made = records(200)
    start = sorted(one["seen"] for one in made)[len(made) // 4] + 0.5
    timeline = timeline_of([{**one, "seen": max(one["seen"], start)} for one in made], [])
    assert timeline["rates"][0] == pytest.approx(4 * 340, rel=0.3)


def test_a_worker_changes_hosts_after_a_successful_move() -> None:
    failed = move(90, 110, rank=2, ok=False)
    timeline = timeline_of(records(200), [move(40, 60), failed])
    stays = {one["worker"]: [stay["host"] for stay in one["stays"]] for one in timeline["hosts"]}
    assert stays == {"w0": ["esx0"], "w1": ["esx1", "esx5"], "w2": ["esx1"], "w3": ["esx3"]}
    assert [band["moved"] for band in timeline["moves"]] == [True, False]


def test_classifies_silences_by_cause() -> None:
    too_long = timeline_of(records(200, stall=(45, 30.0)), [move(40, 80)], max_gap_s=20)
    assert [gap["kind"] for gap in too_long["gaps"]] == ["too long"]
    elsewhere = timeline_of(records(300, stall=(200, 30.0)), [move(40, 60)], max_gap_s=20, resume_deadline_s=30)
    assert [gap["kind"] for gap in elsewhere["gaps"]] == ["unattributed"]


def test_phases_are_drawn_as_bands() -> None:
    made = records(100)
    for mark, after in (("begin", 0.1), ("end", 0.8)):
        one = {**made[200], "mark": mark, "phase": "eval"}
        made.append({**one, "seen": one["seen"] + after, "t": one["t"] + after})
    assert [phase["phase"] for phase in timeline_of(made, [])["phases"]] == ["eval"]


def test_the_page_shows_the_whole_timeline() -> None:
    moves = [
        move(40, 60),
        move(90, 110, rank=2, ok=False, said="<no> room"),
        move(130, 140, external=True, by="someone"),
    ]
    timeline = timeline_of(records(200, stall=(45, 12.0)), moves)
    drawing = ET.fromstring(timeline_plot.plot(timeline))
    kinds = [one.get("class") for one in drawing.iter("rect")]
    assert [kind for kind in kinds if kind and kind.startswith("band")] == ["band", "band failed", "band external"]
    assert sum(kind is not None and kind.startswith("h") for kind in kinds) == 6, (
        "four workers, one of which moved twice"
    )
    page = move_timeline_page.page(timeline)
    for words in ("continuous, moved: some", "13.0 s", "&lt;no&gt; room", "by someone", "esx5"):
        assert words in page
    assert "This worker moved in" not in page, "the whitepaper's one move is beside a test of one worker only"
    assert "| 2 | w2 | esx1 |" in move_timeline_page.markdown(timeline, "Test")


def test_one_worker_has_the_published_move_beside_it() -> None:
    page = move_timeline_page.page(timeline_of(records(200), [move(40, 60)]))
    assert "This worker moved in 20.0 s, the whitepaper&#x27;s in 189 s" in page
    seen = {"hot_migration": True, "encrypted": True}
    page = move_timeline_page.page(timeline_of(records(200), [move(40, 60, vsphere=seen)]))
    assert "in 20.0 s (hot, encrypted), the whitepaper&#x27;s in 189 s" in page


def test_a_move_shows_expected_stun_and_encryption() -> None:
    for is_encrypted, shown in ((True, "yes"), (False, "no"), (None, "-")):
        seen = {"hot_migration": True, "encrypted": is_encrypted, "encryption": "required", "stun_expected_s": 22.0}
        lines = move_timeline_page.markdown(
            timeline_of(records(200), [move(40, 60, vsphere=seen)]), "Test"
        ).splitlines()
        heads, cells = ([cell.strip() for cell in line.split("|")] for line in (lines[4], lines[6]))
        row = dict(zip(heads, cells))
        assert (row["Encrypted"], row["Stun expected"]) == (shown, "22.0")


def test_draws_any_run_with_all_of_its_steps() -> None:
    for number in range(150):
        run = fill(draw(random.Random(f"timeline {number}")))
        positional, named = run.arguments()
        require = named.pop("require", ())
        case = verdict.read_case(*positional, **named)
        timeline = move_timeline.timeline(case.tracks, run.moves, verdict.judged(case, require), {})
        ET.fromstring(timeline_plot.plot(timeline))
        assert len(timeline["rates"]) <= move_timeline.MOST_BINS + 1
        assert all(rate >= 0 for rate in timeline["rates"])


def test_a_timeline_without_records_is_empty() -> None:
    timeline = timeline_of([], [move(40, 60)])
    assert timeline["seconds"] == 0
    ET.fromstring(timeline_plot.plot(timeline))
    assert "inconclusive" in move_timeline_page.page(timeline)
