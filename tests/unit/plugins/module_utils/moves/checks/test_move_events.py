"""Moves that others started: found in events, explained in the verdict, never counted as moves of the test."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.continuity import verdict
from plugins.module_utils.moves.checks import move_events

from ...continuity.runs import LAUNCHER, SEEN, kinds, move, records

DRS = "VSPHERE.LOCAL\\drs"


def event(kind: str, time: float, chain: int = 7, by: str = DRS, **more: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "time": SEEN + time,
        "chain": chain,
        "by": by,
        "source": "",
        "target": "",
        "text": kind,
        **more,
    }


MIGRATION = [
    event("VmBeingHotMigratedEvent", 40, source="esx1", target="esx5"),
    event("VmEmigratingEvent", 41, source="esx1"),
    event("VmMigratedEvent", 60, source="esx1", target="esx5"),
]


def test_a_chain_of_events_is_one_move() -> None:
    (found,) = move_events.moves("w1", MIGRATION)
    assert (found["worker"], found["source"], found["target"], found["ok"]) == ("w1", "esx1", "esx5", True)
    assert (found["started"], found["completed"], found["by"]) == (SEEN + 40, SEEN + 60, DRS)


def test_reports_hot_migration_as_true_or_unknown() -> None:
    encrypted = [{**MIGRATION[0], "kind": move_events.HOT_ENCRYPTED}, *MIGRATION[1:]]
    for chain, hot in ((MIGRATION, True), (encrypted, True), (MIGRATION[1:], None)):
        (found,) = move_events.moves("w1", chain)
        assert found["vsphere"]["hot_migration"] is hot


def test_reports_a_failed_or_running_move_as_such() -> None:
    failed = event("VmFailedMigrateEvent", 50, source="esx1", target="esx5", text="The stun took too long.")
    (one,) = move_events.moves("w1", [*MIGRATION[:2], failed])
    assert (one["ok"], one["said"], one["vsphere"]["host"]["after"]) == (False, "The stun took too long.", "esx1")
    (under_way,) = move_events.moves("w1", MIGRATION[:2])
    assert (under_way["completed"], under_way["target"]) == (None, "esx5")


def test_returns_only_external_moves() -> None:
    found = move_events.moves("w1", [*MIGRATION, *(one | {"chain": 9, "by": "us"} for one in MIGRATION)])
    (one,) = move_events.moves_of_others(found, [{"chain": 9}], {"w1": [1]})
    assert (one["chain"], one["external"], one["ranks"]) == (7, True, [1])


def test_a_power_event_is_not_a_move() -> None:
    off = [event("VmPoweredOffEvent", 40, by="eve"), event("VmPoweredOnEvent", 45, by="eve")]
    assert move_events.moves("w1", off) == []
    (result,) = move_events.power("w1", off)
    assert (result["at"], result["by"], result["what"]) == (SEEN + 40, "eve", "VmPoweredOffEvent, VmPoweredOnEvent")


def test_reports_each_power_cycle() -> None:
    """A machine that was switched on before the job began, and reset in the middle of it."""
    began = [event("VmStartingEvent", -900), event("VmPoweredOnEvent", -899)]
    resets = [event("VmResettingEvent", 40, by="eve"), event("VmResettingEvent", 70, by="bob")]
    cycles = move_events.power("w1", [*began, *resets])
    assert [(cycle["at"] - SEEN, cycle["by"], cycle["what"]) for cycle in cycles[1:]] == [
        (40, "eve", "VmResettingEvent"),
        (70, "bob", "VmResettingEvent"),
    ]
    assert (cycles[0]["at"], cycles[0]["what"]) == (SEEN - 900, "VmStartingEvent, VmPoweredOnEvent")


def judge(stall: tuple[int, float], external: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return the verdict on one move of the test, and perhaps one of others while the job stands still."""
    own = move(120, 130, rank=2)
    seen = {
        "launcher": {"before": LAUNCHER, "after": LAUNCHER},
        "transport": [{"before": "tcp", "after": "tcp"}],
        "vsphere": [
            {
                "hot_migration": True,
                "power_cycled": False,
                "host": {"before": "esx1", "after": "esx5"},
                "gpus": {"before": ["a"], "after": ["a"]},
            }
        ],
        **more,
    }
    limits = {"max_gap_s": 20, "resume_deadline_s": 30}
    return verdict.verdict(records(300, stall=stall), [own, *external], limits, ended="running", facts=seen)


def test_names_the_external_move_behind_a_silence() -> None:
    (external,) = move_events.moves_of_others(move_events.moves("w1", MIGRATION), [], {"w1": [1]})
    unexplained = judge((45, 15.0), [])
    explained = judge((45, 15.0), [external])
    assert unexplained["moves"][0]["gap_s"] == pytest.approx(1.0, abs=0.02), "joined over the ranks"
    assert (explained["verdict"], explained["moved"]) == ("continuous", "all")
    assert explained["moves"][1]["gap_s"] == 16.0
    (note,) = explained["notes"]
    assert note == f"moved by others: {DRS} moved w1 from esx1 to esx5; this test did not start that"


def test_long_silence_is_a_breach_after_external_moves() -> None:
    (external,) = move_events.moves_of_others(move_events.moves("w1", MIGRATION), [], {"w1": [1]})
    alone = judge((45, 25.0), [])
    assert (alone["verdict"], [text.split(":")[0] for text in alone["unproven"]]) == ("inconclusive", ["unattributed"])
    assert kinds(judge((45, 25.0), [external])) == {"gap"}


def test_failed_external_move_does_not_reduce_our_count() -> None:
    (external,) = move_events.moves_of_others(move_events.moves("w1", MIGRATION), [], {"w1": [1]})
    failed = judge((45, 0.0), [{**external, "ok": False}])
    assert (failed["verdict"], failed["moved"]) == ("continuous", "all")
    assert "failed to move w1" in failed["notes"][0]


def test_reports_a_power_cycle_outside_all_moves() -> None:
    power = move_events.power("w1", [event("VmResettingEvent", 80, by="eve")])
    result = judge((45, 0.0), [], power=power)
    assert [(one["kind"], one["at"], one["detail"]) for one in result["breaches"]] == [
        ("power_cycle", SEEN + 80, "w1 was power-cycled by eve (VmResettingEvent)")
    ]


def test_different_final_parameters_of_ranks_are_a_breach() -> None:
    equal = judge((45, 0.0), [], checksums={"w0:summary0.json": "aa", "w1:summary1.json": "aa"})
    assert equal["verdict"] == "continuous"
    differ = judge((45, 0.0), [], checksums={"w0:summary0.json": "aa", "w1:summary1.json": "bb"})
    assert [one["detail"] for one in differ["breaches"]] == [
        "the ranks ended with different parameters: w0:summary0.json aa, w1:summary1.json bb"
    ]


def test_reads_encryption_of_a_move_from_its_event() -> None:
    plain, encrypted = "VmBeingHotMigratedEvent", "com.vmware.vc.vm.VmHotMigratingWithEncryptionEvent"
    reported = [
        move_events.is_encrypted(kinds) for kinds in ([encrypted, "VmMigratedEvent"], [plain], ["VmMigratedEvent"])
    ]
    assert reported == [True, False, None]
