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


def test_lists_each_finding_once_with_stops_first() -> None:
    assert [(one["severity"], one["text"]) for one in as_dicts(FOUND)] == [
        ("stop", "esx1: has no RDMA device; look."),
        ("stop", "esx2: has no RDMA device; look."),
        ("warn", "esx1: set the switch."),
        ("warn", "esx2: set the switch."),
        ("note", "esx2: is in MIG mode."),
    ]


def test_joins_the_same_finding_of_many_objects() -> None:
    assert lines(as_dicts(FOUND))[:2] == [
        "stop     esx1, esx2: has no RDMA device; look.  (rdma)",
        "warn     esx1, esx2: set the switch.  (plan)",
    ]


def test_accepts_a_rule_everywhere_or_for_one_object() -> None:
    found = as_dicts(FOUND)
    assert len(stops(found)) == 2
    assert stops(found, ["rdma"]) == []
    assert [one["object"] for one in stops(found, ["rdma:esx1", "plan"])] == ["esx2"]


def test_shows_accepted_findings_and_a_final_count() -> None:
    shown = lines(as_dicts(FOUND), ["rdma:esx1"])
    assert shown[0].split()[0] == "accepted" and shown[1].split()[0] == "stop"
    assert shown[1].endswith("(rdma)")
    assert shown[-1] == "1 stop, 1 warn, 1 note, 1 accepted"
    assert lines([]) == ["0 stop, 0 warn, 0 note"]
