"""Training logs: a real one, each known format, malformed ones with their problems, and pieces that end anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.training.output.log import LONGEST_LINE, MOST_PROBLEMS, Log, LogReader, parse

from ..logs import BAD_LOGS, REAL_LOG, TF_STEP, step_line


def problems(log: Log) -> list[str]:
    return [str(problem) for problem in log.problems]


def facts(log: Log) -> list[tuple[int, int, float | None, float | None]]:
    return [(record.rank, record.step, record.images_per_sec, record.loss) for record in log.steps]


def in_pieces(text: str, cuts: list[int]) -> Iterator[str]:
    edges = [0, *sorted(cuts), len(text)]
    yield from (text[begin:end] for begin, end in pairwise(edges))


def test_parses_the_real_log_of_four_ranks() -> None:
    log = parse(REAL_LOG.read_text())
    assert problems(log) == []
    assert log.totals == {0: 13.98, 1: 13.98, 2: 13.96, 3: 13.97}
    by_rank = {rank: [record for record in log.steps if record.rank == rank] for rank in range(4)}
    assert [[record.step for record in records] for records in by_rank.values()] == [[1, 10, 20, 30, 40, 50, 60]] * 4
    assert [record.images_per_sec for record in by_rank[2]] == [2.7, 3.2, 3.0, 2.8, 3.1, 3.3, 3.5]
    assert [record.loss for record in by_rank[2]] == [81.127, 81.126, 81.125, 81.122, 81.121, 81.121, 81.119]
    assert [record.loss for record in by_rank[3]] == [81.127, 81.125, 81.124, 81.123, 81.122, 81.12, 81.119]


def test_step_records_are_read_with_every_key() -> None:
    log = parse(step_line(0, 1) + step_line(1, 1) + step_line(0, 2, seen=1763715009.0))
    assert problems(log) == []
    assert facts(log) == [(0, 1, 340.5, 2.25), (1, 1, 340.5, 2.25), (0, 2, 340.5, 2.25)]
    assert log.steps[2] == json.loads(step_line(0, 2, seen=1763715009.0))


def test_phase_marks_are_kept_apart_from_the_steps() -> None:
    text = step_line(0, 1) + step_line(0, 1, phase="checkpoint", mark="begin") + step_line(0, 2)
    log = parse(text + step_line(0, 2, phase="checkpoint", mark="end"))
    assert problems(log) == []
    assert [record.step for record in log.steps] == [1, 2]
    assert [(mark.step, mark["phase"], mark["mark"]) for mark in log.marks] == [
        (1, "checkpoint", "begin"), (2, "checkpoint", "end"),
    ]  # fmt: skip


def test_a_record_without_rank_takes_its_tags_rank() -> None:
    assert facts(parse('[1,2]<stdout>:{"step": 7}\n')) == [(2, 7, None, None)]


def test_horovods_synthetic_benchmark_is_understood() -> None:
    log = parse(
        "Model: ResNet50\nBatch size: 32\nNumber of GPUs: 4\nRunning warmup...\nRunning benchmark...\n"
        "Iter #0: 251.3 img/sec per GPU\n[1,0]<stdout>:Iter #1: 252.0 img/sec per /gpu:0\n"
        "Img/sec per GPU: 251.6 +-0.7\nTotal img/sec on 4 GPU(s): 1006.6 +-2.8\n"
    )
    assert facts(log) == [(0, 0, 251.3, None), (0, 1, 252.0, None)]
    assert log.totals == {0: 1006.6}
    assert [problem.line for problem in log.problems] == [7]
    assert "two jobs" in problems(log)[0]


def test_parses_tf_cnn_benchmarks_without_tags() -> None:
    log = parse(
        "Step\tImg/sec\ttotal_loss\ttop_1_accuracy\ttop_5_accuracy\n"
        "1\timages/sec: 340.1 +/- 0.0 (jitter = 0.0)\t7.921\t0.001\t0.005\n"
        "2\timages/sec: 341.0 +/- 0.1 (jitter = 0.2)\t7.9\n"
        "----------------------------------------------------------------\n"
        "total images/sec: 341.25\n"
    )
    assert problems(log) == []
    assert facts(log) == [(0, 1, 340.1, 7.921), (0, 2, 341.0, 7.9)]
    assert log.totals == {0: 341.25}


@pytest.mark.parametrize(
    "tag", ["[1,{}]<stdout>:", "[job@1,{}]<stdout>: ", "[1,{}][n1:417]<stdout>: ", "[{}]<stdout>:", "[1,{}]<stderr>:"]
)
def test_the_tags_of_other_launchers_are_known(tag: str) -> None:
    log = parse(tag.format(3) + "Iter #2: 251.3 img/sec per GPU\n")
    assert problems(log) == []
    assert facts(log) == [(3, 2, 251.3, None)]


def test_separates_merged_lines_of_two_ranks() -> None:
    zero, one = (TF_STEP.format(step=40, rate=3.1, loss=loss) for loss in (81.121, 81.122))
    after = TF_STEP.format(step=50, rate=3.2, loss=81.12)
    log = parse(f"[1,0]<stdout>:{zero}[1,1]<stdout>:{one}\n[1,0]<stdout>:{after}\n")
    assert problems(log) == []
    assert facts(log) == [(0, 40, 3.1, 81.121), (1, 40, 3.1, 81.122), (0, 50, 3.2, 81.12)]


def test_joins_a_line_interrupted_by_another_rank() -> None:
    log = parse(
        "[1,0]<stdout>:40\timages/sec: 3.1 +/- 0[1,1]<stdout>:starting\n[1,0]<stdout>:.1 (jitter = 1.0)\t81.121\n"
        '[1,0]<stdout>:{"rank": 0, "st[1,1]<stderr>:warning\n[1,0]<stdout>:ep": 41}\n'
    )
    assert problems(log) == []
    assert facts(log) == [(0, 40, 3.1, 81.121), (0, 41, None, None)]


def test_reads_two_records_on_one_untagged_line() -> None:
    log = parse(step_line(0, 1).rstrip("\n") + step_line(1, 1))
    assert problems(log) == []
    assert [(record.rank, record.step) for record in log.steps] == [(0, 1), (1, 1)]


def test_a_whole_last_line_needs_no_line_end() -> None:
    assert [record.step for record in parse(step_line(0, 1) + step_line(0, 2).rstrip("\n")).steps] == [1, 2]
    assert parse("total images/sec: 13.98").totals == {0: 13.98}


def test_an_empty_log_has_no_steps_or_problems() -> None:
    for text in ("", "\n\n", "  \n"):
        assert parse(text) == Log([], {}, [], [])


@pytest.mark.parametrize(("text", "steps", "expected"), BAD_LOGS.values(), ids=BAD_LOGS.keys())
def test_reports_problems_and_keeps_readable_records(
    text: str, steps: list[tuple[Any, ...]], expected: list[str]
) -> None:
    log = parse(text)
    assert problems(log) == expected
    assert [tuple("nan" if str(fact) == "nan" else fact for fact in step) for step in facts(log)] == steps


ALL_TEXTS = [REAL_LOG.read_text(), *(text for text, _steps, _problems in BAD_LOGS.values() if len(text) < LONGEST_LINE)]


@given(st.sampled_from(ALL_TEXTS), st.data())
def test_parses_a_log_in_pieces_like_the_whole(text: str, data: st.DataObject) -> None:
    reader = LogReader()
    records = []
    for piece in in_pieces(text, data.draw(st.lists(st.integers(0, len(text)), max_size=20))):
        records += reader.feed(piece)
    records += reader.close()
    whole = parse(text)
    assert repr(records) == repr(whole.steps)
    assert (reader.totals, reader.problems) == (whole.totals, whole.problems)


@pytest.mark.parametrize("piece", [1, 1000, LONGEST_LINE, 3 * LONGEST_LINE])
def test_skips_an_endless_line_in_any_pieces(piece: int) -> None:
    text = "".join(BAD_LOGS["endless line"][0])
    reader = LogReader()
    records = [
        record for begin in range(0, len(text), piece) for record in reader.feed(text[begin : begin + piece])
    ] + reader.close()
    assert [record.step for record in records] == [1]
    assert [str(problem) for problem in reader.problems] == BAD_LOGS["endless line"][2]


@given(st.text(alphabet='{}[]"\\:,<>std0123 \n\timages/sec:Iter#nafr', max_size=200))
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    log = parse(text)
    assert all(1 <= problem.line <= text.count("\n") + 1 for problem in log.problems)


def test_reports_deeply_nested_json_as_a_problem() -> None:
    log = parse('{"step":' * 5000 + "\n")
    assert len(log.problems) == 1


def test_problems_beyond_the_limit_are_only_counted() -> None:
    log = parse('{"rank": 0, "step": "x"}\n' * (MOST_PROBLEMS + 5))
    assert len(log.problems) == MOST_PROBLEMS
    assert log.unlisted_problems == 5
