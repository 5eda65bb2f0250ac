"""Findings are ordered and unique, and accepted by rule or by rule and object."""

from __future__ import annotations

from plugins.module_utils.core.findings import NOTE, STOP, WARN, Finding, as_dicts, lines, stops

FOUND = [
    Finding(NOTE, "mig", "esx2", "is in MIG mode"),
    Finding(STOP, "rdma", "esx2", "has no RDMA device; look."),
    Finding(WARN, "plan", "esx1", "set the switch"),
    Finding(STOP, "rdma", "esx1", "has no RDMA device; look."),
    Finding(WARN, "plan", "esx2", "set the switch"),
    Finding(WARN, "plan", "esx2", "set the switch"),
]


def test_stops_come_first_and_each_finding_is_listed_once() -> None:
    assert [(one["severity"], one["text"]) for one in as_dicts(FOUND)] == [
        ("stop", "esx1: has no RDMA device; look."),
        ("stop", "esx2: has no RDMA device; look."),
        ("warn", "esx1: set the switch."),
        ("warn", "esx2: set the switch."),
        ("note", "esx2: is in MIG mode."),
    ]


def test_the_same_finding_at_many_objects_is_one_line() -> None:
    assert lines(as_dicts(FOUND))[:2] == [
        "stop     esx1, esx2: has no RDMA device; look.  (rdma)",
        "warn     esx1, esx2: set the switch.  (plan)",
    ]


def test_a_rule_is_accepted_everywhere_or_at_one_object() -> None:
    found = as_dicts(FOUND)
    assert len(stops(found)) == 2
    assert stops(found, ["rdma"]) == []
    assert [one["object"] for one in stops(found, ["rdma:esx1", "plan"])] == ["esx2"]


def test_the_lines_show_accepted_findings_and_the_last_one_counts_the_lines() -> None:
    shown = lines(as_dicts(FOUND), ["rdma:esx1"])
    assert shown[0].split()[0] == "accepted" and shown[1].split()[0] == "stop"
    assert shown[1].endswith("(rdma)")
    assert shown[-1] == "1 stop, 1 warn, 1 note, 1 accepted"
    assert lines([]) == ["0 stop, 0 warn, 0 note"]
