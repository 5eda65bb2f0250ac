"""The event source for Event-Driven Ansible sends each finding once, and the rulebook uses its keys."""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "extensions" / "eda" / "plugins" / "event_source" / "observation.py"
RULEBOOK = ROOT / "extensions" / "eda" / "rulebooks" / "observation.yml"
OPEN = {"key": "start", "value": {"cluster": "gpu", "observe": {"seconds": 60}}}
MOVE = {"worker": "w1", "source": "esx1", "target": "esx3", "by": "eve", "started": 5.0, "completed": 9.0, "ok": True}
READING = {"moves": [{**MOVE, "chain": 7, "events": []}], "power": []}
CYCLE = {"worker": "w2", "at": 8.0, "by": "eve", "what": "VmPoweredOffEvent"}
VERDICT = {"moves": [{"gap_s": 12.5}], "breaches": [{"detail": "rank 1 lost 3 steps"}]}
OTHERS = {"key": "others 1", "value": READING}
POWER = {"key": "others 2", "value": {**READING, "power": [CYCLE]}}
LAST_POWER = {"key": "last events of others", "value": {**READING, "power": [CYCLE]}}
JUDGE = {"key": "judged 2", "value": VERDICT}
LAST_JUDGE = {"key": "last verdict", "value": {"verdict": VERDICT, "lines": []}}
QUIET = {"key": "judged 1", "value": {"moves": [{"gap_s": 1.0}], "breaches": []}}
END = {"key": "end", "value": {"passed": False, "said": "it is broken"}}


def write(folder: Path, name: str, *entries: dict[str, Any], rest: str = "") -> None:
    (folder / name).mkdir(exist_ok=True)
    with (folder / name / "journal.jsonl").open("a") as journal:
        journal.writelines(f"{json.dumps(entry)}\n" for entry in entries)
        journal.write(rest)


async def _follow(folder: Path, *later: tuple[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    # ansible-rulebook loads a source like this too.
    main = runpy.run_path(str(SOURCE))["main"]
    queue: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(main(queue, {"dir": str(folder), "interval": 0.01}))
    for name, entries in later:
        await asyncio.sleep(0.1)
        write(folder, name, *entries)
    await asyncio.sleep(0.2)
    assert not task.done(), task
    task.cancel()
    return [queue.get_nowait()["observation"] for _event in range(queue.qsize())]


def follow(folder: Path, *later: tuple[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return asyncio.run(_follow(folder, *later))


def test_sends_one_event_per_finding(tmp_path: Path) -> None:
    write(tmp_path, "gpu-1", OPEN, OTHERS, QUIET)
    sent = follow(tmp_path, ("gpu-1", [POWER, JUDGE]), ("gpu-1", [LAST_POWER, LAST_JUDGE, END]))
    assert [event["kind"] for event in sent] == ["move", "power", "stalled", "broken", "ended"]
    move, power, stalled, broken, ended = sent
    assert move["move"] == MOVE and (move["cluster"], move["folder"]) == ("gpu", str(tmp_path / "gpu-1"))
    assert power["power"]["worker"] == "w2" and (stalled["gap_s"], stalled["move"]) == (12.5, MOVE)
    assert broken["detail"] == "rank 1 lost 3 steps" and ended["passed"] is False


def test_ended_observations_and_other_tests_send_nothing(tmp_path: Path) -> None:
    write(tmp_path, "gpu-1", OPEN, OTHERS, END)
    write(tmp_path, "gpu-2", {"key": "start", "value": {"cluster": "gpu"}}, OTHERS, JUDGE)
    assert follow(tmp_path) == []


def test_follows_later_observations_and_reads_only_complete_lines(tmp_path: Path) -> None:
    write(tmp_path, "gpu-1", OPEN, rest="no json\n[1]\n" + json.dumps(OTHERS)[:20])
    sent = follow(tmp_path, ("gpu-2", [{**OPEN, "value": {"cluster": "b", "observe": {"seconds": 1}}}, OTHERS]))
    assert [(event["kind"], event["cluster"]) for event in sent] == [("move", "b")]


MALFORMED: list[Any] = [
    {"key": "others 3", "value": {"moves": 7, "power": "x"}},
    {"key": "others 3", "value": {"moves": [1, None, []], "power": [4]}},
    {"key": "others 3", "value": {"moves": [], "power": [{"at": "yesterday"}]}},
    {"key": "others 3", "value": {"moves": [], "power": [{"at": 10**400}, {"at": float("nan")}, {"at": [1]}]}},
    {"key": "judged 3", "value": {"moves": ["x"], "breaches": [3]}},
    {"key": "judged 3", "value": {"moves": [{"gap_s": "long"}], "breaches": 5}},
    {"key": "last verdict", "value": {"verdict": [1]}},
    {"key": "start", "value": {"cluster": ["gpu"], "observe": {"seconds": 60}}},
    {"key": ["x"], "value": None},
]


def test_skips_malformed_lines_and_sends_the_next_finding(tmp_path: Path) -> None:
    write(tmp_path, "gpu-1", OPEN, *MALFORMED, OPEN, rest="[" * 100_000 + "\n\xff\n")

    sent = follow(tmp_path, ("gpu-1", [OTHERS]))

    assert sent[-1]["kind"] == "move" and sent[-1]["cluster"] == "gpu"


@pytest.mark.parametrize("form", ["fifo", "link", "others_write"])
def test_does_not_read_a_journal_writable_by_others(
    tmp_path: Path, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, "gpu-1", OPEN, OTHERS)
    journal, elsewhere = tmp_path / "gpu-1" / "journal.jsonl", tmp_path / "elsewhere"
    if form == "others_write":
        journal.chmod(0o666)
    else:
        journal.rename(elsewhere)
        os.mkfifo(journal) if form == "fifo" else journal.symlink_to(elsewhere)

    sent = follow(tmp_path, ("gpu-2", [OPEN, OTHERS]))

    assert [event["folder"] for event in sent] == [str(tmp_path / "gpu-2")]
    assert len(caplog.records) == 1 and "gpu-1/journal.jsonl" in caplog.text


def test_reads_large_journals_in_constant_memory(tmp_path: Path) -> None:
    write(tmp_path, "gpu-1", OPEN)
    journal = tmp_path / "gpu-1" / "journal.jsonl"
    with journal.open("ab") as file:
        file.write((b"x" * 999 + b"\n") * 20_000)
        file.truncate(200 << 20)
    observed = runpy.run_path(str(SOURCE))["Observed"](journal, 10.0)
    looks = (200 << 20) // (16 << 20) + 1
    tracemalloc.start()

    for _look in range(looks):
        assert list(observed.new_events()) == []
    write(tmp_path, "gpu-1", rest="\n" + json.dumps(OTHERS) + "\n")

    assert [event["observation"]["kind"] for event in observed.new_events()] == ["move"]
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 << 20


def test_rulebook_names_source_kinds_and_read_only_playbook() -> None:
    (rules,) = yaml.safe_load(RULEBOOK.read_text())
    assert list(rules["sources"][0]) == ["dml.vsphere.observation"]
    broken, stalled = rules["rules"]
    assert broken["condition"] == 'event.observation.kind == "broken"'
    assert stalled["condition"] == 'event.observation.kind == "stalled"'
    assert broken["action"]["run_playbook"]["name"] == "dml.vsphere.audit"
