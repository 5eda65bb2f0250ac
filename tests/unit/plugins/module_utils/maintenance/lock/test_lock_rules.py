"""Who may take, renew and free a lock, and what is written about it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from plugins.module_utils.maintenance.lock import lock_rules

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PROCESS = lock_rules.RunProcess("ctl01", "2b1c5d9e-0000-4000-8000-000000000001", "4026531836", 4711, 987654)
ALICE = lock_rules.LockRequest("alice@ctl01", "run-a", 3600, PROCESS)
BOB = lock_rules.LockRequest("bob@ctl02", "run-b", 3600)


def record(desired: lock_rules.LockRequest, *, left: float) -> lock_rules.LockRecord:
    return lock_rules.LockRecord(
        desired.owner, desired.run, NOW - timedelta(hours=1), NOW + timedelta(seconds=left), desired.process
    )


FREE = lock_rules.LockRecord("bob@ctl02", "run-b", NOW, NOW, free=True)


@pytest.mark.parametrize("found", [None, FREE], ids=["never held", "given back"])
def test_a_free_lock_is_taken(found: lock_rules.LockRecord | None) -> None:
    decision = lock_rules.hold(found, ALICE, NOW, dead=False)
    assert decision == lock_rules.LockDecision(
        lock_rules.LockRecord("alice@ctl01", "run-a", NOW, NOW + timedelta(seconds=3600), PROCESS)
    )


def test_renewed_lock_keeps_the_time_of_acquisition() -> None:
    decision = lock_rules.hold(record(ALICE, left=600), ALICE, NOW, dead=False)
    assert decision.write is not None
    assert (decision.write.since, decision.write.until) == (NOW - timedelta(hours=1), NOW + timedelta(hours=1))


def test_a_fresh_lock_of_ours_needs_no_write() -> None:
    assert lock_rules.hold(record(ALICE, left=3590), ALICE, NOW, dead=False) == lock_rules.LockDecision()


@pytest.mark.parametrize("rule", [lock_rules.hold, lock_rules.release])
def test_refuses_the_lock_of_another_user_by_name(rule) -> None:
    decision = rule(record(ALICE, left=1), BOB, NOW, dead=False)
    assert decision.write is None
    assert decision.refusal == (
        "it is held by alice@ctl01 (run run-a) since 2026-01-02T02:04:05Z until 2026-01-02T03:04:06Z"
    )


@pytest.mark.parametrize("rule", [lock_rules.hold, lock_rules.release])
@pytest.mark.parametrize(
    ("left", "dead", "force", "why"),
    [(0, False, False, "has run out"), (9, True, False, "its process is gone"), (9, False, True, "by force")],
)
def test_a_lock_changes_hands_only_with_a_warning(rule, left: float, dead: bool, force: bool, why: str) -> None:
    decision = rule(record(ALICE, left=left), replace(BOB, force=force), NOW, dead=dead)
    assert decision.write is not None and decision.write.run == "run-b"
    assert why in decision.warning and "alice@ctl01" in decision.warning


def test_a_request_survives_the_end_of_its_controller() -> None:
    requested = replace(record(ALICE, left=9), note="1of4", request="end", requester="carol@ops")

    taken = lock_rules.hold(requested, BOB, NOW, dead=True).write
    freed = lock_rules.release(requested, ALICE, NOW, dead=False).write

    assert taken is not None and (taken.run, taken.request, taken.requester) == ("run-b", "end", "carol@ops")
    assert freed is not None and not freed.request, "the window that reads it ends with its lock"


def test_warns_when_it_renews_its_expired_lock() -> None:
    decision = lock_rules.hold(record(ALICE, left=0), ALICE, NOW, dead=False)
    assert decision.write is not None and decision.write.since == NOW
    assert "has run out" in decision.warning


def test_release_writes_nothing_without_a_held_lock() -> None:
    assert (
        lock_rules.release(None, ALICE, NOW, dead=False)
        == lock_rules.release(FREE, ALICE, NOW, dead=False)
        == lock_rules.LockDecision()
    )


def test_release_frees_its_own_lock() -> None:
    decision = lock_rules.release(record(ALICE, left=9), ALICE, NOW, dead=False)
    assert decision.write is not None and decision.write.free and not decision.warning


LONG = replace(ALICE, owner="a" * 200 + "/%\\ ü", run="r" * 200)


@pytest.mark.parametrize("desired", [ALICE, BOB, LONG], ids=["process", "no process", "long"])
def test_reads_a_record_that_was_encoded_as_names(desired: lock_rules.LockRequest) -> None:
    desired = replace(desired, owner=lock_rules.safe_text(desired.owner), run=lock_rules.safe_text(desired.run))
    written = record(desired, left=60)
    lines = lock_rules.encode(written)
    assert lock_rules.decode(list(reversed(lines))) == written
    assert all(len(line) <= 80 and not set(line) & set("/%\\") for line in lines)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "https://ci.example.com/job/gpu-cluster-nightly/run/" + "x" * 20 + "1",
            "https://ci.example.com/job/gpu-cluster-nightly/run/" + "x" * 20 + "2",
        ),
        ("controller." * 8 + ".4711.1", "controller." * 8 + ".4712.1"),
        ("a b", "a_b"),
        ("a b", "a/b"),
        ("ü", "ö"),
    ],
)
def test_runs_whose_names_begin_alike_are_two_runs(one: str, other: str) -> None:
    assert lock_rules.safe_text(one) != lock_rules.safe_text(other)
    for text in (one, other):
        assert lock_rules.safe_text(lock_rules.safe_text(text)) == lock_rules.safe_text(text)
    held = record(replace(ALICE, run=lock_rules.safe_text(one)), left=9)
    assert lock_rules.hold(held, replace(BOB, run=lock_rules.safe_text(other)), NOW, dead=False).refusal


@pytest.mark.parametrize("rule", [lock_rules.hold, lock_rules.release])
def test_keeps_an_expired_lock_of_a_running_process(rule) -> None:
    decision = rule(record(ALICE, left=-100), BOB, NOW, dead=False, alive=True)
    assert decision.write is None and decision.refusal.endswith("and process 4711 of that run is alive")
    assert rule(record(ALICE, left=-100), replace(BOB, force=True), NOW, dead=False, alive=True).write
    assert rule(record(ALICE, left=-100), ALICE, NOW, dead=False, alive=True).write, "its own lock it may renew"


def test_rejects_a_record_with_missing_or_foreign_lines() -> None:
    lines = lock_rules.encode(record(ALICE, left=60))
    assert len(lines) > 2
    for index in range(len(lines)):
        assert lock_rules.decode(lines[:index] + lines[index + 1 :]) is None
    assert lock_rules.decode([*lines, "New folder"]) is None
    assert lock_rules.decode([]) is None


@pytest.mark.parametrize("key", ["owner", "run", "note", "request", "by"])
def test_record_shows_no_terminal_control_characters(key: str) -> None:
    words = {"state": "held", "owner": "alice", "run": "one", "since": "2026-01-01T00:00:00Z"}
    words |= {"until": "2026-01-01T01:00:00Z", key: "bob\u202e\x1b[2Ktxt"}
    record = lock_rules.decode([f"1of1 {' '.join(f'{name}={value}' for name, value in words.items())}"])
    assert record is not None
    shown = f"{record} {record.note} {record.request} {record.requester}"
    assert shown.isprintable() and "bob__" in shown


@pytest.mark.parametrize(("note", "kept"), [("", "end"), ("1of4", "")], ids=["rollout", "window"])
def test_release_leaves_a_request_that_no_window_read(note: str, kept: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    held = lock_rules.LockRecord("a", "one", now, now, note=note, request="end", requester="carol")

    freed = lock_rules.release(held, lock_rules.LockRequest("a", "one", 60), now, dead=False).write
    window = lock_rules.hold(freed, lock_rules.LockRequest("a", "one", 60, note="0of4"), now, dead=False).write
    other = lock_rules.hold(freed, lock_rules.LockRequest("a", "two", 60), now, dead=False).write

    assert freed and freed.free and window and other
    assert (freed.request, window.request, other.request) == (kept, kept, "")
