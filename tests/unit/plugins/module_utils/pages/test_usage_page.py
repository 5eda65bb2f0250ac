"""The report on GPUs as lines and as a page: complete, safe with any name, and without external files."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.pages.usage_page import page
from plugins.module_utils.usage.usage_report import report
from plugins.module_utils.usage.usage_text import lines
from tests.page import Page
from tests.unit.plugins.module_utils.usage.reports import PERIOD, facts, gpu, user

EVIL = "</title><script src=//evil.example/x.js>alert(1)</script><img src=x onerror=alert(2)>"
WAITING = {"host": "e1", "vm": "later", "tenant": "red", "wants": ["grid_t4-16c"], "fits": False}
LOST = {"host": "e1", "vm": "ghost", "profile": "grid_t4-1q"}


def full(name: str = "red") -> dict[str, Any]:
    """Return a report with one GPU in each state, and with foreign names everywhere."""
    return facts(
        gpu(f"e1{name}", user(name, name, 0.5, owner=name), mean=50.0),
        gpu("e2", user("b", name, 1.0), mean=0.5),
        gpu("e3", name=name, mode="passthrough", vgpu_mode=""),
        gpu("e4", user("c", "blue", 0.25, card_told=False), slots=[{"profile": name, "used": 1, "free": 0}]),
        gpu("e5", user("d", "blue", 0.25), reachable=False),
        cluster=name,
        group_by=name,
        waiting=[{**WAITING, "vm": name, "tenant": name, "wants": [name]}],
        lost=[{**LOST, "vm": name, "profile": name}],
        unread=[{"host": name, "reachable": False, "maintenance": False}],
    )


def read(report_: dict[str, Any]) -> Page:
    return Page(page(report_))


def test_the_page_shows_each_gpu_and_tenant() -> None:
    shown = read(report(full(), 2.5, "EUR"))
    tenants, gpus = shown.tables
    assert [row[0] for row in gpus] == ["idle", "unassigned", "not measured", "unreachable", "busy"]
    assert [row[1] for row in gpus] == ["e2", "e3", "e4", "e5", "e1red"]
    assert [row[0] for row in tenants] == ["red", "blue", "(nobody)"]
    assert tenants[0][-2:] == ["3.75 EUR", "90.00 EUR"]
    assert len(shown.titles) == 5 and shown.titles[0].startswith("e2  0000:3b:00.0: idle")
    assert gpus[3][3] == "not measured" and gpus[4][3] == "50% / 100%"
    assert "GPU inferred" in gpus[2][7]


def test_the_page_names_hosts_with_unknown_gpus() -> None:
    unread = {"host": "e9", "reachable": False, "maintenance": False}

    assert "<li>e9 is unreachable" in page(report(facts(gpu("e1"), unread=[unread])))
    assert "unreachable" not in page(report(facts(gpu("e1")))).partition("</style>")[2]


def test_the_page_fetches_nothing() -> None:
    text = page(report(full(), 1.0))
    assert Page(text).external == []
    assert not re.search(r"https?:|@import|<script|<link|<img", text)
    assert "prefers-color-scheme: dark" in text and "@media print" in text


def test_detects_a_page_that_fetches() -> None:
    for piece in ('<img src="x">', "<style>@import 'x';</style>", "<a href='http://x'>x</a>", "<p onclick='x'>x</p>"):
        assert Page(f"<html><body>{piece}</body></html>").external


def test_other_users_names_are_shown_as_text() -> None:
    shown, text = read(report(full(EVIL), 1.0, EVIL)), page(report(full(EVIL), 1.0, EVIL))
    assert shown.external == [] and not {"script", "img"} & set(shown.elements)
    assert "<script" not in text and "<img" not in text
    assert EVIL in [row[0] for row in shown.tables[0]]
    assert EVIL in shown.tables[1][1][4]


@given(name=st.text(max_size=40))
def test_the_page_is_complete_with_any_names(name: str) -> None:
    shown = read(report(full(name), 1.0, name))
    assert shown.external == []
    assert [len(table) for table in shown.tables][1] == 5
    assert all(len(row) == 8 for row in shown.tables[1])


@given(name=st.text(max_size=40))
def test_names_cannot_inject_terminal_commands(name: str) -> None:
    shown = "\n".join(lines(report(full(name), 1.0, name)))
    assert all(one == "\n" or one.isprintable() for one in shown)


def test_lines_begin_with_totals_period_and_idle_gpus() -> None:
    shown = lines(report(full(), 2.5, "EUR"))
    assert shown[0] == (
        "red: 5 GPUs on 5 hosts, 1 idle, 1 unassigned, 1 not measured, 1 unreachable, 1 busy; "
        "2 GPUs are assigned to 4 VMs, 3 are free; assigned GPUs cost 5.00 EUR per hour; "
        "idle GPUs cost 5.00 EUR per hour"
    )
    assert shown[1].startswith("Counters of 2 of 5 GPUs, last 24 hours")
    assert shown[2] == "IDLE: e2 0000:3b:00.0, e3 0000:3b:00.0"
    assert shown[4].split()[:3] == ["State", "Host", "GPU"]
    assert shown[5].startswith("idle ") and "b (red, 100%)" in shown[5]
    assert shown[-3] == "off: red (red) on e1 needs red: does not fit now"
    assert shown[-2] == "red on e1 runs with red, but its GPU is not known"


@pytest.mark.parametrize(
    ("period", "words"),
    [
        ({"hours": 1, "why": "level 1"}, "last 1 hours"),
        ({"hours": 1, "why": "level 1"}, "not 24 hours: level 1"),
        ({"unknown_instances": ["e1: gpu7"]}, "These counters belong to no known GPU: e1: gpu7"),
    ],
)
def test_both_pages_name_gaps_in_the_counters(period: dict[str, Any], words: str) -> None:
    made = report(facts(gpu("e1"), period={**PERIOD, **period}))
    assert words in lines(made)[1]
    assert words in page(made)


def test_reports_clusters_without_price_idle_gpus_or_gpus() -> None:
    busy = report(facts(gpu("e1", user("a", "red", 1.0), mean=90.0)))
    assert "No GPU is idle or unassigned." in page(busy) and not any("IDLE" in line for line in lines(busy))
    assert "Cost" not in page(busy)
    assert read(report(facts())).tables == [[], []]
