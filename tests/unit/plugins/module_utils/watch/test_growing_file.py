"""A file of records is read as it grows: only complete lines, from its beginning or from its last bytes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.module_utils.watch.growing_file import GrowingFile

LINE = '{"step": %d}\n'


def test_reads_lines_once_and_only_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with GrowingFile(path) as growing:
        assert list(growing.new_records()) == []
        path.write_text(LINE % 1 + '{"st')
        assert list(growing.new_records()) == [{"step": 1}]
        with path.open("a") as file:
            file.write('ep": 2}\n')
        assert list(growing.new_records()) == [{"step": 2}]
        assert list(growing.new_records()) == []


@pytest.mark.parametrize(("last", "first"), [(None, 10), (10_000, 10), (39, 98), (38, 98), (26, 99)])
def test_the_last_bytes_begin_with_a_whole_line(last: int | None, first: int, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("".join(LINE % step for step in range(10, 100)))
    with GrowingFile(path, last) as growing:
        assert [one["step"] for one in growing.new_records()] == list(range(first, 100))
        with path.open("a") as file:
            file.write(LINE % 100)
        assert list(growing.new_records()) == [{"step": 100}]
