"""Edge cases of training logs: the quick path for usual records, the limits of lines and pieces, and each sentence."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from plugins.module_utils.training.output import log as room
from plugins.module_utils.training.output.log import LONGEST_LINE, LONGEST_RECORD, Log, LogReader, parse

from .logs import step_line


def problems(log: Log) -> list[str]:
    return [str(problem) for problem in log.problems]


def searched_lines(monkeypatch: pytest.MonkeyPatch, *lines: str) -> tuple[list[str], LogReader, list[Any]]:
    """Return the lines that the reader searched for training output, the reader, and its records."""
    searched = []
    usual = room.recognise

    def recognise(text: str, *arguments: Any, **named: Any) -> Any:
        searched.append(text)
        return usual(text, *arguments, **named)

    monkeypatch.setattr(room, "recognise", recognise)
    reader = LogReader()
    return searched, reader, reader.feed("".join(line + "\n" for line in lines))


@pytest.mark.parametrize(
    "more",
    [{}, {"loss": None}, {"images_per_sec": None}, {"loss": -2.5, "images_per_sec": -1.0}, {"step": 1 << 53}],
    ids=["whole", "no loss", "no rate", "below zero", "the last number there is"],
)
def test_does_not_search_later_records_for_other_formats(monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> None:
    lines = [step_line(0, 1).strip(), step_line(0, **{"step": 2, **more}).strip()]
    searched, reader, records = searched_lines(monkeypatch, *lines)
    assert searched == lines[:1]
    assert records == [json.loads(line) for line in lines]
    assert reader.problems == []


@pytest.mark.parametrize("key", ["job", "pid", "start"])
def test_a_record_of_another_process_is_reported(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    lines = [step_line(0, 5).strip(), step_line(0, 6, **{key: 8}).strip()]
    searched, reader, records = searched_lines(monkeypatch, *lines)
    assert searched == lines
    assert [record["step"] for record in records] == [5, 6]
    assert ["two jobs, or a restart?" in problem.detail for problem in reader.problems] == [True]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (step_line(0, 1).strip(), "reports step 1 after step 1"),
        (step_line(0, 2, loss=math.inf).strip(), "rank 0 has loss inf at step 2"),
        (step_line(0, 2, loss=math.nan).strip(), "rank 0 has loss nan at step 2"),
        (step_line(0, 2, images_per_sec=-math.inf).strip(), "rank 0 has images_per_sec -inf at step 2"),
        (step_line(0, 2, images_per_sec=math.nan).strip(), "rank 0 has images_per_sec nan at step 2"),
        (step_line(0, (1 << 53) + 1).strip(), "not a whole number of 0 or more"),
        (step_line(0, 2, loss="low").strip(), "has loss='low', not a number"),
        (step_line(0, 2, images_per_sec="fast").strip(), "has images_per_sec='fast', not a number"),
        (step_line(0, 2, pid=[70]).strip(), "has pid=[70], not one plain value"),
        (step_line(True, 2, pid=70, host="worker-0").strip(), "has rank=True, not a whole number"),
        (step_line(0, 1.5).strip(), "has step=1.5, not a whole number"),  # type: ignore[arg-type]  # no rank of ours counts so
    ],
)
def test_an_unusual_record_is_searched(monkeypatch: pytest.MonkeyPatch, second: str, message: str) -> None:
    searched, reader, _records = searched_lines(monkeypatch, step_line(0, 1).strip(), second, step_line(0, 9).strip())
    assert second in searched
    assert [message in problem.detail for problem in reader.problems] == [True]


def test_records_lack_loss_and_rate_if_never_reported() -> None:
    log = parse('{"rank": 3, "step": 7}\n{"rank": 3, "step": 8}\n{"rank": 3, "step": 9, "loss": 1.5}\n')
    assert [(one.step, one.loss, one.images_per_sec) for one in log.steps] == [
        (7, None, None), (8, None, None), (9, 1.5, None),
    ]  # fmt: skip


def test_the_record_after_a_mark_repeats_no_step() -> None:
    log = parse(step_line(0, 1) + step_line(0, 2, phase="checkpoint", mark="begin") + step_line(0, 2))
    assert problems(log) == []
    assert [step.step for step in log.steps] == [1, 2]


def test_accepts_rate_or_loss_as_text_or_integer() -> None:
    log = parse(step_line(0, 1) + step_line(0, 2, loss=3, images_per_sec="inf") + step_line(0, 3, images_per_sec="inf"))
    assert [(step.loss, step.images_per_sec) for step in log.steps[1:]] == [(3, math.inf), (2.25, math.inf)]
    assert problems(log) == ["line 2: rank 0 has images_per_sec inf at step 2"]


def padded(length: int) -> str:
    """Return a step record with a number of characters."""
    bare = step_line(0, 1, note="").strip()
    return step_line(0, 1, note="x" * (length - len(bare))).strip()


@pytest.mark.parametrize("end", ["\n", ""])
def test_reads_lines_up_to_the_length_limit(end: str) -> None:
    longest = padded(LONGEST_LINE)
    for pieces in ([longest + end], [longest, end]):
        reader = LogReader()
        assert len([record for piece in pieces for record in reader.feed(piece)] + reader.close()) == 1
        assert reader.problems == []
    log = parse(padded(LONGEST_LINE + 1) + end)
    assert log.steps == []
    assert problems(log) == [f"line 1: longer than {LONGEST_LINE} characters, left out"]


def test_keeps_a_partial_record_up_to_the_limit() -> None:
    for length, steps in ((LONGEST_RECORD, [1]), (LONGEST_RECORD + 1, [])):
        record = padded(length + 2)
        log = parse(f"[1,0]<stdout>:{record[:length]}[1,1]<stdout>:x\n[1,0]<stdout>:{record[length:]}\n")
        assert [step.step for step in log.steps] == steps
        assert [problem.detail[-27:] for problem in log.problems] == ([] if steps else ["contains a torn JSON record"])


def test_joins_an_untagged_piece_with_its_rest() -> None:
    log = parse('{"rank": 0, "st[1,1]<stdout>:x\nep": 41}\n')
    assert problems(log) == []
    assert [step.step for step in log.steps] == [41]


def test_a_closed_reader_holds_nothing_back() -> None:
    reader = LogReader()
    reader.feed('[1,0]<stdout>:{"rank": 0, "st[1,1]<stdout>:Iter #1')
    assert reader.close() == []
    details = [problem.detail for problem in reader.problems]
    assert details == ['\'{"rank": 0, "st\' contains a torn JSON record', "'Iter #1' is cut off"]
    assert reader.close() == []
    assert [problem.detail for problem in reader.problems] == details
    reader.feed("Images/sec: odd\n")
    assert str(reader.problems[-1]) == "line 2: 'Images/sec: odd' looks like a training step but cannot be parsed"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[1,4]<stdout>:{"step": "x"}\n', "line 1: '{\"step\": \"x\"}' has step='x', not a whole number of 0 or more"),
        ("total images/sec: nan\n", "line 1: rank 0 reports nan as its total"),
        (
            "Iter #1: inf img/sec per GPU\nIter #2: inf img/sec per GPU\n",
            "line 1: rank 0 has images_per_sec inf at step 1",
        ),
    ],
)
def test_the_sentence_lists_values_steps_and_ranks(text: str, message: str) -> None:
    assert problems(parse(text)) == [message]


def test_a_long_line_is_shown_by_its_beginning() -> None:
    whole, cut = (f"Images/sec: {'x' * (length - 12)}" for length in (80, 81))
    assert problems(parse(f"{whole}\n{cut}\n")) == [
        f"line 1: '{whole}' looks like a training step but cannot be parsed",
        f"line 2: '{cut[:77]}...' looks like a training step but cannot be parsed",
    ]
