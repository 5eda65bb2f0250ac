"""Any content of a record file and any output of a node is read, counted as noise, or refused with an error."""

from __future__ import annotations

import json
import os
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.continuity import verdict
from plugins.module_utils.errors import CollectionError
from plugins.module_utils.pages import verdict_files
from plugins.module_utils.watch import (
    growing_file,
    guest_program,
    link,
    node_programs,
    records_program,
    transport_program,
    watcher,
)
from plugins.module_utils.watch.curve import Curve
from plugins.module_utils.watch.live_pace import LivePace, StepsSince
from plugins.module_utils.watch.records_file import RecordsFile

KEYS = [
    "t", "seen", "step", "stride", "rank", "size", "host", "pid", "start", "boot_id", "job", "generation", "phase",
    "loss", "images_per_sec", "mark",
]  # fmt: skip
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -(10**400), 1e308, -1e308, 10**8, 2**63, 10**15])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | NUMBERS
    | st.text(max_size=5)
    | st.sampled_from(["nan", "-inf", "begin", "end", "train"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
WELL = {"t": 1.0, "seen": 1.0, "step": 1, "rank": 0, "size": 2, "host": "w0", "pid": 7, "loss": 1.0, "phase": "train"}
ODD = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5).map(lambda odd: {**WELL, **odd})
LINES = st.one_of(
    st.builds(lambda rank, step: json.dumps({**WELL, "rank": rank, "step": step, "seen": 1.0 + step}).encode(),
              st.integers(0, 1), st.integers(0, 50)),
    ODD.map(lambda one: json.dumps(one).encode()),
    JSON.map(lambda one: json.dumps(one).encode()),
    st.binary(max_size=40),
    st.sampled_from([
        b"\xff\xfe{}", b'{"rank": 0, "st', b'{"a":' * 3000, b"", b"[1]", b"Welcome to n1",
        b'{"step": ' + b"7" * 5000 + b"}", '{"host": "a\u2028b"}'.encode(),
    ]),
)  # fmt: skip
FILES = st.lists(LINES, max_size=12).map(b"\n".join)


@settings(max_examples=150)
@given(FILES, st.booleans())
def test_a_file_of_records_is_read_or_refused(content: bytes, ended: bool) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content + (b"\n" if ended else b""))
        file.flush()
        with growing_file.GrowingFile(Path(file.name)) as growing:
            records = list(growing.new_records())
    assert all(isinstance(one, dict) for one in records)
    whole = (content + (b"\n" if ended else b"")).split(b"\n")[:-1]
    assert len(records) + growing.noise == sum(1 for line in whole if line.strip())
    move = {"worker": "w0", "ranks": [0], "source": "a", "target": "b", "started": 10.0, "completed": 12.0, "ok": True}
    for moves in ([], [move]):
        case = verdict.read_case(records, moves, {}, ended="running", facts={"observed_until": 60.0})
        judged = verdict.judged(case, ("launcher", "transport", "vsphere"))
        assert judged["verdict"] in ("continuous", "broken", "inconclusive")
        verdict_files.verdict_texts("test", moves, judged)
        verdict_files.timeline_texts({"name": "test"}, case.tracks, moves, judged, {"w0": "a"})
    pace, advance = LivePace(10, Curve()), StepsSince(0.0)
    pace.feed(records)
    advance.feed(records)
    for reported in (pace.line(), pace.summary(), advance.fewest(), advance.behind(1)):
        assert reported is not None


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.write_bytes(b"\xff" * 5000)])
def test_reads_no_records_and_refuses_a_folder(make: Any, tmp_path: Path) -> None:
    make(tmp_path / "records.jsonl")
    with growing_file.GrowingFile(tmp_path / "records.jsonl") as growing:
        if (tmp_path / "records.jsonl").is_dir():
            with pytest.raises(CollectionError, match=r"records.jsonl: could not read its records: Is a directory"):
                list(growing.new_records())
        else:
            assert list(growing.new_records()) == []


def test_an_endless_line_hides_no_later_line(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"x" * (5 * growing_file.LONGEST_LINE + 3))
    with growing_file.GrowingFile(path) as growing:
        tracemalloc.start()
        try:
            assert list(growing.new_records()) == []
            with path.open("ab") as file:
                file.write(b'}\n{"step": 1}\n')
            assert list(growing.new_records()) == [{"step": 1}]
            assert tracemalloc.get_traced_memory()[1] < 4 * growing_file.LONGEST_LINE
        finally:
            tracemalloc.stop()
    assert growing.noise == 1


@pytest.mark.parametrize("size", [10**8, 10**15, 1e300])
def test_an_impossible_job_size_uses_no_memory(size: float) -> None:
    odd = [{**WELL, "size": size}]
    tracemalloc.start()
    try:
        pace, advance = LivePace(10), StepsSince(0.0)
        pace.feed(odd)
        advance.feed(odd)
        assert (pace.line(), advance.fewest(), advance.behind(1), pace.is_done) == (
            "step 1 of 10, loss 1",
            0,
            [],
            False,
        )
        judged = verdict.verdict(odd, [], {}, ended="running")
        assert judged["verdict"] == "inconclusive"
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_names_the_first_of_many_silent_ranks() -> None:
    pace = LivePace(10)
    pace.feed([{**WELL, "size": 100}])
    assert pace.line().endswith("19, 20 and 79 more")


MESSAGES = st.one_of(
    st.just(b"{}"),
    st.builds(
        lambda offset, lines: json.dumps({"file": "rank0.jsonl", "offset": offset, "lines": lines}).encode(),
        JSON | st.integers(0, 99),
        JSON | st.lists(st.text(), max_size=3),
    ),
    st.dictionaries(st.sampled_from(["file", "error", "old", "lines"]), JSON).map(lambda one: json.dumps(one).encode()),
    LINES,
)  # fmt: skip


def a_link() -> link.Link:
    return link.Link("n1", ("sh", "-c"), "/nowhere")


@settings(max_examples=150)
@given(st.lists(MESSAGES, max_size=8))
def test_no_output_of_a_node_ends_the_reader(messages: list[bytes]) -> None:
    reader = a_link()
    seen = watcher.WatchState()
    with tempfile.TemporaryDirectory() as folder, RecordsFile(Path(folder) / "records.jsonl") as out:
        for one in messages:
            lines = reader._lines_in(one)
            watcher._stamp(reader, lines, seen, 1.0)
            assert watcher._write_pending(out, seen)
        for line in (Path(folder) / "records.jsonl").read_text().splitlines():
            assert json.loads(line)["seen"] == 1.0
    assert all(isinstance(offset, int) for offset in reader.offsets.values())


def message(line: str, offset: int = 9) -> bytes:
    return json.dumps({"file": "rank0.jsonl", "offset": offset, "lines": [line], "old": False}).encode()


@pytest.mark.parametrize(
    "noise", [b"Last login: Sun", b"[1]", b'{"file": "rank0.jsonl"}', b"7", b'{"offset": 3, "lines": []}']
)
def test_counts_noise_and_reads_the_next_message(noise: bytes) -> None:
    reader = a_link()
    assert [*reader._lines_in(noise), *reader._lines_in(message('{"step": 1}'))] == ['{"step": 1}']
    assert (reader.noise, reader.last_error, reader.offsets) == (1, noise.decode(), {"rank0.jsonl": 9})


def test_link_reconnects_after_any_number_of_files() -> None:
    reader = a_link()
    for number in range(6000):
        one = {"file": f"rank{number}.jsonl", "offset": 1 << 40, "lines": [], "old": False}
        reader._lines_in(json.dumps(one).encode())

    reader.reach = ["true"]
    reader._connect()

    assert reader._process and reader._process.wait() == 0
    assert 1000 < len(reader.offsets) < 6000 and reader.noise == 6000 - len(reader.offsets)
    reader.close()


def test_reads_a_message_after_an_unterminated_word() -> None:
    reader = a_link()
    assert reader._lines_in(b"Welcome! " + message('{"step": 1}')) == ['{"step": 1}']
    assert reader.noise == 0


def folder(path: Path) -> records_program.RecordFolder:
    return records_program.RecordFolder(str(path), {})


def test_reports_an_entry_that_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").mkdir()
    os.mkfifo(tmp_path / "b.jsonl")
    (tmp_path / "c.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "d.jsonl").write_text('{"step": 1}\n')
    seen = folder(tmp_path)
    first = {one["file"]: one.get("error", one.get("lines")) for one in seen.read()}
    assert first == {
        "a.jsonl": "it is not a regular file",
        "b.jsonl": "it is not a regular file",
        "c.jsonl": "No such file or directory",
        "d.jsonl": ['{"step": 1}'],
    }
    assert seen.read() == []
    reader = a_link()
    assert reader._lines_in(json.dumps({"file": "a.jsonl", "error": "it is not a regular file"}).encode()) == []
    assert reader.last_error == "a.jsonl: it is not a regular file"


def test_keeps_unusual_separators_within_a_line(tmp_path: Path) -> None:
    text = '{"host": "a\u2028b\x85c\x0bd"}'
    (tmp_path / "rank0.jsonl").write_text(f"{text}\n", encoding="utf-8")
    assert [one["lines"] for one in folder(tmp_path).read()] == [[text]]


def test_reads_a_rewritten_file_from_the_beginning(tmp_path: Path) -> None:
    path, seen = tmp_path / "rank0.jsonl", folder(tmp_path)
    path.write_text('{"step": 1}\n{"step": 2}\n')
    seen.read()
    path.write_text('{"step": 3}\n')
    assert [one["lines"] for one in seen.read()] == [['{"step": 3}']]


def test_an_overlong_line_hides_no_later_line(tmp_path: Path) -> None:
    path, seen = tmp_path / "rank0.jsonl", folder(tmp_path)
    path.write_bytes(b"x" * (records_program.MOST_BYTES + 10) + b'\n{"step": 1}\n')
    lines = [line for _look in range(3) for one in seen.read() for line in one["lines"]]  # type: ignore[attr-defined]
    assert lines[-1] == '{"step": 1}'
    assert [watcher._stamped(line, 1.0) for line in lines[:-1]] == [""] * (len(lines) - 1)


@given(FILES)
def test_an_inspected_node_reports_ranks_despite_malformed_files(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "rank0.jsonl"
        path.write_bytes(content)
        (Path(place) / "summary0.json").write_bytes(content)
        result = transport_program.rank_on(str(path))
        assert set(result) >= {"rank", "pid", "step"}
        assert isinstance(transport_program.checksums(place), dict)
        environment = guest_program.rank_environment(place)
        assert environment is None or isinstance(environment, dict)


@pytest.mark.parametrize(
    ("reported", "answer"),
    [
        ("echo Welcome; echo '{\"ranks\": []}'", {"ranks": []}),
        ("echo '[1]'", {"error": "the answer is not a JSON object: [1]"}),
        ("true", {"error": "the answer is not a JSON object: nothing"}),
        ("printf '\\377\\n{}'", {"error": "the answer is not a JSON object: \ufffd\n{}"}),
    ],
)
def test_finds_an_answer_after_a_login_banner(reported: str, answer: dict[str, Any]) -> None:
    process = node_programs._start(["sh", "-c", reported])
    assert node_programs._answer(process, 20.0) == answer


def test_does_not_read_an_oversized_summary(tmp_path: Path) -> None:
    text = json.dumps({"parameters_sha256": "6b86"})
    (tmp_path / "summary0.json").write_text(text)
    (tmp_path / "summary1.json").write_text(" " * transport_program.SUMMARY_BYTES + text)
    assert transport_program.checksums(str(tmp_path)) == {"summary0.json": "6b86"}
