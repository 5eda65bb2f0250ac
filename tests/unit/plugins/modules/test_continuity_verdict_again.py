"""A vMotion test is judged again from its folder alone, by other limits, and its first verdict stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.durable.program_journal import NAME
from plugins.module_utils.trials.folder import facts_file
from plugins.modules import continuity_verdict
from tests.unit.plugins.module_utils.trials.folder.test_unfinished import keep
from tests.unit.plugins.modules.test_continuity_verdict import call, write
from tests.unit.simulation.world import World


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
    facts = facts_file.read(folder)
    facts.warm = None
    facts_file.write(folder, facts)
    if not is_there:
        (folder / facts_file.NAME).unlink()
    assert "it ended before the job was warm" in judged(folder)["msg"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"settings": []}', '{"settings": {"cluster": 1}, "other": 2}'])
def test_refuses_damaged_facts(folder: Path, text: str) -> None:
    (folder / facts_file.NAME).write_text(text)
    assert "the file was changed or damaged; restore the file from a copy" in judged(folder)["msg"]


@pytest.mark.parametrize("name", ["moves", "settings"])
def test_refuses_facts_with_missing_keys(folder: Path, name: str) -> None:
    content = json.loads((folder / facts_file.NAME).read_text())
    content[name] = [{}] if name != "settings" else {"cluster": "gpu", "limits": {}}
    (folder / facts_file.NAME).write_text(json.dumps(content))
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
