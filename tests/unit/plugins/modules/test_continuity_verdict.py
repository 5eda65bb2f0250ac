"""The functions that wait for a job and judge it, and that judge a test again from its folder."""

from __future__ import annotations

import fcntl
import io
import json
import resource
import threading
import time
import xml.etree.ElementTree as ET
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from plugins.module_utils.durable.program_journal import NAME
from plugins.module_utils.trials.folder import trial_folder
from plugins.module_utils.watch import awaited_steps
from plugins.module_utils.watch.awaited_steps import wait_for_steps
from plugins.module_utils.watch.live_pace import AwaitedSteps
from plugins.modules import continuity_verdict
from tests.fakes.calling import here
from tests.unit.plugins.module_utils.trials.folder.test_unfinished import keep
from tests.unit.simulation.world import World


def record(rank: int, step: int, at: float) -> dict[str, Any]:
    who = {"rank": rank, "size": 2, "host": f"w{rank}", "pid": 7, "start": 9, "boot_id": "b", "job": "1"}
    pace = {"stride": 1, "generation": 0, "phase": "train", "loss": 1.0, "images_per_sec": 10.0}
    return {"t": at, "seen": at, "step": step, **who, **pace}


def write(path: Path, steps: range, began: float) -> None:
    lines = [json.dumps(record(rank, step, began + step * 0.1)) for step in steps for rank in (0, 1)]
    with path.open("a") as records:
        records.write("".join(f"{line}\n" for line in lines))


def call(module: Any, **arguments: Any) -> dict[str, Any]:
    answer = io.StringIO()
    with patch_module_args(arguments), redirect_stdout(answer), pytest.raises(SystemExit):
        module.main()
    result: dict[str, Any] = json.loads(answer.getvalue())
    # From 2.22 on, a module sends values that Ansible masks, and Ansible takes them from the answer.
    result.pop("_ansible_new_secrets", None)
    return result


def a_move(began: float) -> dict[str, Any]:
    return {
        "worker": "w1",
        "ranks": [1],
        "source": "a",
        "target": "b",
        "started": began + 4,
        "completed": began + 6,
        "ok": True,
    }


def test_uninterrupted_job_is_continuous_in_result_and_files(tmp_path: Path) -> None:
    write(tmp_path / "records.jsonl", range(1, 101), 1000.0)
    given = {
        "records": str(tmp_path / "records.jsonl"),
        "moves": [a_move(1000.0)],
        "require": [],
        "folder": str(tmp_path),
        "at": {"w0": "a", "w1": "a"},
    }
    result = call(continuity_verdict, **given)
    assert (result["verdict"], result["moved"], result["breaches"]) == ("continuous", "all", [])
    assert json.loads((tmp_path / "verdict.json").read_text())["verdict"] == "continuous"
    assert ET.fromstring((tmp_path / "junit.xml").read_text()).get("failures") == "0"
    assert json.loads((tmp_path / "timeline.json").read_text())["hosts"][1]["stays"][-1]["host"] == "b"
    assert "w1 on b" in (tmp_path / "timeline.html").read_text()


def test_a_gap_in_a_move_breaks_the_job(tmp_path: Path) -> None:
    write(tmp_path / "records.jsonl", range(1, 51), 1000.0)
    write(tmp_path / "records.jsonl", range(51, 101), 1010.0)
    given = {"records": str(tmp_path / "records.jsonl"), "moves": [a_move(1000.0)], "require": []}
    result = call(continuity_verdict, **given, limits={"max_gap_s": 5})
    assert (result["verdict"], {one["kind"] for one in result["breaches"]}) == ("broken", {"gap"})


def test_refuses_a_limit_that_is_not_a_number(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").touch()
    result = call(continuity_verdict, records=str(tmp_path / "records.jsonl"), limits={"max_gap_s": "long"})
    assert result["failed"]
    assert "could not judge its records" in result["msg"]


def test_wait_ends_when_the_slowest_rank_has_advanced(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    later = threading.Timer(0.5, write, (path, range(1, 31), time.time()))
    later.start()
    result = here(wait_for_steps, records=str(path), awaited=AwaitedSteps(steps=20, timeout=20))
    later.join()
    assert (result["ranks"], result["fewest"], result["hosts"]) == (2, 30, {"w0": [0], "w1": [1]})


def test_wait_for_steps_ends_soon_without_a_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaited_steps, "UNWATCHED_SECONDS", 0.3)
    write(tmp_path / "records.jsonl", range(1, 5), 1000.0)
    began = time.monotonic()
    result = here(wait_for_steps, records=str(tmp_path / "records.jsonl"), awaited=AwaitedSteps(steps=20, timeout=60))
    assert time.monotonic() - began < 20
    assert result["msg"] == (
        "the job: could not make 20 steps on every rank: no watch collects the records of its nodes any more; "
        "start the watch of its nodes again"
    )


def test_stalled_job_error_names_the_unreadable_node(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    write(path, range(1, 5), 1000.0)
    (tmp_path / "records.jsonl.troubles").write_text('{"w1": "Permission denied (publickey). (for 9 s)"}')
    with path.open("a") as watch:
        fcntl.flock(watch, fcntl.LOCK_EX)
        result = here(wait_for_steps, records=str(path), awaited=AwaitedSteps(steps=20, timeout=0.5))
    assert "did not: 0, 1; w1 cannot be read: Permission denied (publickey). (for 9 s); check" in result["msg"]


def test_wait_survives_malformed_lines(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('[1]\nWelcome\n{"rank": 0}\n{"rank": "x", "step": 1, "seen": 2}\n{"size": 100000000}\n')
    write(path, range(1, 31), time.time())
    assert here(wait_for_steps, records=str(path), awaited=AwaitedSteps(steps=20, timeout=20))["fewest"] == 30


def test_stalled_job_error_names_the_stalled_ranks(tmp_path: Path) -> None:
    write(tmp_path / "records.jsonl", range(1, 5), 1000.0)
    result = here(wait_for_steps, records=str(tmp_path / "records.jsonl"), awaited=AwaitedSteps(steps=20, timeout=0.5))
    assert result["failed"]
    assert "within 0 s these ranks did not: 0, 1" in result["msg"]


def test_skips_and_reports_malformed_records(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    write(path, range(1, 61), 1000.0)
    with path.open("ab") as file:
        file.write(b'[1]\n\xff\xfe\n{"rank": 0, "st\n')
    write(path, range(61, 101), 1000.0)
    result = call(continuity_verdict, records=str(path), moves=[a_move(1000.0)], require=[])
    assert result["verdict"] == "continuous"
    assert "records: 3 lines are not JSON objects and were left out" in result["unproven"]


def test_refuses_a_directory_as_records_file(tmp_path: Path) -> None:
    result = call(continuity_verdict, records=str(tmp_path))
    assert result["msg"].startswith(f"{tmp_path}: could not read its records: Is a directory")


def test_reports_a_full_disk_and_keeps_earlier_files(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    write(records, range(1, 30), 1000.0)
    options = {"records": str(records), "moves": [], "ended": "finished", "require": [], "folder": str(tmp_path)}
    call(continuity_verdict, **options)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        answer = call(continuity_verdict, **options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert "could not write it: File too large; free some space, and judge the test again" in answer["msg"]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A test of one move, in which the job stood still for two seconds."""
    world = World(workers=["w1"])
    facts = world.carry_out()
    facts.began, facts.observed_until = facts.moves[0]["started"] - 8.0, facts.moves[0]["started"] + 20.0
    world.write_facts(facts)
    made = keep(world, tmp_path / "demo" / "vmotion" / "gpu-1", is_ended=True)
    began = float(world.facts.moves[0]["started"]) - 9.0
    write(made / "records.jsonl", range(1, 101), began)
    write(made / "records.jsonl", range(101, 301), began + 2.0)
    (made / "verdict.json").write_text('{"verdict": "as it was"}\n')
    return made


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def judged(folder: Path, **limits: Any) -> dict[str, Any]:
    return call(continuity_verdict, test=str(folder), limits=limits)


def test_judges_a_finished_test_by_its_facts(folder: Path) -> None:
    result = judged(folder)
    assert (result["verdict"], result["moved"], result["unproven"]) == ("continuous", "all", [])
    assert result["longest_gap_s"] == pytest.approx(2.1)
    assert result["lines"][-1] == "w1: esx1 -> esx3: 11.5 s, the job stood still for 2.1 s"
    timeline = json.loads((folder / "timeline-2.json").read_text())
    assert [stay["host"] for stay in timeline["hosts"][0]["stays"]] == ["esx1", "esx3"]


def test_stricter_limits_change_the_verdict_without_overwriting_files(folder: Path) -> None:
    before = files(folder)
    journal = (folder / NAME).read_text()
    first, second = judged(folder), judged(folder, max_gap_s=1)
    assert (first["verdict"], second["verdict"]) == ("continuous", "broken")
    assert [one["kind"] for one in second["breaches"]] == ["gap"]
    assert (first["changed"], second["changed"]) == (True, True)
    new = [f"{name}-{number}.{end}" for number in (2, 3) for name, end in NAMES]
    assert files(folder) == sorted([*before, *new])
    assert sorted(Path(path).name for path in second["files"]) == sorted(f"{name}-3.{end}" for name, end in NAMES)
    assert json.loads((folder / "verdict-2.json").read_text())["verdict"] == "continuous"
    assert (folder / "verdict.json").read_text() == '{"verdict": "as it was"}\n'
    assert (folder / NAME).read_text() == journal


NAMES = (("verdict", "json"), ("junit", "xml"), ("timeline", "json"), ("timeline", "html"))


def test_check_mode_judges_and_writes_nothing(folder: Path) -> None:
    before = files(folder)
    result = call(continuity_verdict, test=str(folder), limits={"max_gap_s": 1}, _ansible_check_mode=True)
    assert (result["verdict"], result["changed"]) == ("broken", True)
    assert files(folder) == before


def test_judges_the_demo_and_refuses_a_missing_test(folder: Path, tmp_path: Path) -> None:
    assert judged(tmp_path / "demo")["verdict"] == "continuous"
    result = judged(tmp_path / "nothing")
    assert "no journal.jsonl is in it or below it; name the folder of one test" in result["msg"]


@pytest.mark.parametrize("is_there", [True, False])
def test_refuses_a_test_that_ended_before_warm_up(folder: Path, is_there: bool) -> None:
    facts = trial_folder.read_facts(folder)
    facts.warm = None
    trial_folder.write_facts(folder, facts)
    if not is_there:
        (folder / trial_folder.FACTS).unlink()
    assert "it ended before the job was warm" in judged(folder)["msg"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"settings": []}', '{"settings": {"cluster": 1}, "other": 2}'])
def test_refuses_damaged_facts(folder: Path, text: str) -> None:
    (folder / trial_folder.FACTS).write_text(text)
    assert "the file was changed or damaged; restore the file from a copy" in judged(folder)["msg"]


@pytest.mark.parametrize("name", ["moves", "settings"])
def test_refuses_facts_with_missing_keys(folder: Path, name: str) -> None:
    content = json.loads((folder / trial_folder.FACTS).read_text())
    content[name] = [{}] if name != "settings" else {"cluster": "gpu", "limits": {}}
    (folder / trial_folder.FACTS).write_text(json.dumps(content))
    assert "the file was changed or damaged; restore the file from a copy" in judged(folder)["msg"]


@pytest.mark.parametrize("again", [True, False])
def test_writes_the_verdict_before_it_renders_the_page(
    folder: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    def fails(*_arguments: Any) -> dict[str, str]:
        raise OverflowError("cannot convert float infinity to integer")

    monkeypatch.setattr(continuity_verdict.verdict_files, "timeline_texts", fails)
    into = {} if again else {"folder": str(folder)}
    with pytest.raises(OverflowError):
        call(continuity_verdict, test=str(folder), **into)
    verdict = folder / ("verdict-2.json" if again else "verdict.json")
    assert json.loads(verdict.read_text())["verdict"] == "continuous"
    assert "<testsuite" in (folder / ("junit-2.xml" if again else "junit.xml")).read_text()


def test_judges_the_earlier_records_of_the_watch_too(folder: Path) -> None:
    whole = judged(folder)
    lines = (folder / "records.jsonl").read_text().splitlines(keepends=True)
    (folder / "records.jsonl.before").write_text("".join(lines[:300]))
    (folder / "records.jsonl").write_text("".join(lines[300:]))
    halves = judged(folder)
    keys = ("verdict", "moved", "longest_gap_s", "moves", "unproven", "cost")
    assert [halves[key] for key in keys] == [whole[key] for key in keys] and "earlier" not in halves
    assert (folder / "timeline-3.json").read_text() == (folder / "timeline-2.json").read_text()
