"""A journal keeps the entries of one process at a time; an incomplete last line is ignored, damage is an error."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plugins.module_utils.durable.program_journal import FileJournal, ends, read
from plugins.module_utils.errors import Failed, Refused

ROOT = Path(__file__).parents[5]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with FileJournal(tmp_path / "journal.jsonl") as journal:
        journal.write("start", {"settings": {"cluster": "gpu"}})
        journal.write("hold", "one")
    return tmp_path / "journal.jsonl"


def keys(path: Path) -> list[str]:
    return [entry["key"] for entry in read(path)]


def test_keeps_timed_entries_readable_only_by_the_owner(path: Path) -> None:
    first, second = read(path)
    assert (first["value"], second["value"]) == ({"settings": {"cluster": "gpu"}}, "one")
    assert first["at"] <= second["at"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert ends(path) == (first["value"], False)
    with FileJournal(path) as journal:
        journal.write("end", {"passed": True})
    assert ends(path).is_ended


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_skips_and_overwrites_a_truncated_last_line(path: Path, cut: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert keys(path) == ["start"]
    with FileJournal(path) as journal:
        assert list(journal.values) == ["start"]
        journal.write("job", {})
    assert keys(path) == ["start", "job"]


@pytest.mark.parametrize(
    "line", [b"{}\n", b"[1]\n", b"not json\n", b'{"at": "noon", "key": "hold", "value": 1}\n', b"\n"]
)
def test_reports_any_other_damage_with_its_line(path: Path, line: bytes) -> None:
    whole = path.read_bytes()
    path.write_bytes(line + whole)
    with pytest.raises(Failed, match=r"line 1 is not a valid entry .*; restore the file from a copy"):
        read(path)
    with pytest.raises(Failed, match="line 1 is not a valid entry"):
        FileJournal(path)
    assert path.read_bytes() == line + whole, "what is damaged is left as it is"


def test_a_second_process_cannot_write_it(path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from plugins.module_utils.durable.program_journal import FileJournal\n"
        "FileJournal(Path(sys.argv[1])).write('job', {})"
    )
    command = [sys.executable, "-c", program, str(path)]
    with FileJournal(path):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "another process writes it" in done.stderr
    assert keys(path) == ["start", "hold"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    assert keys(path) == ["start", "hold", "job"]


def test_killed_process_releases_the_lock(path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from plugins.module_utils.durable.program_journal import FileJournal\n"
        "journal = FileJournal(Path(sys.argv[1])); print('open', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "open\n"
        with pytest.raises(Refused, match="because its run is in progress"):
            FileJournal(path)
        process.kill()
        process.wait()
    with FileJournal(path) as journal:
        journal.write("job", {})


def test_syncs_each_entry_before_the_next_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with FileJournal(path) as journal:
        journal.write("job", {})
        assert len(synced) == 1


def test_syncs_the_folder_of_a_new_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.path.isdir(f"/proc/self/fd/{handle}")))
    with FileJournal(tmp_path / "journal.jsonl") as journal:
        journal.write("start", {})
    assert synced == [False, True]


@pytest.mark.parametrize("at", ["NaN", "1e999", "-Infinity"])
def test_reports_a_non_finite_time_as_damage(path: Path, at: str) -> None:
    path.write_text(f'{{"at": {at}, "key": "start", "value": 1}}\n')
    with pytest.raises(Failed, match="line 1 is not a valid entry"):
        read(path)


def test_refuses_a_fifo_as_journal_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "journal.jsonl")
    for reader in (read, ends, FileJournal):
        with pytest.raises(Refused, match="it is not a regular file; remove it, or name another folder"):
            reader(tmp_path / "journal.jsonl")


def test_reports_a_full_disk_and_continues_the_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, line: bytes) -> int:
        write(handle, line[:7])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write = os.write
    with FileJournal(path) as journal:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(Failed, match="No space left on device; free some space and run the playbook again"):
            journal.write("job", {})
        monkeypatch.undo()
        journal.write("released the lock", True)
    with FileJournal(path) as journal:
        journal.write("job", {})
    assert keys(path) == ["start", "hold", "released the lock", "job"]


def test_a_link_is_not_followed(path: Path) -> None:
    link = path.parent / "link"
    link.symlink_to(path)
    with pytest.raises(OSError, match="link"):
        FileJournal(link)


def test_a_journal_of_an_earlier_version_is_refused(path: Path) -> None:
    path.write_text('{"at": 1.0, "entry": "open", "settings": {}}\n')
    with pytest.raises(Refused, match="earlier version of the collection; move its folder elsewhere"):
        FileJournal(path)
