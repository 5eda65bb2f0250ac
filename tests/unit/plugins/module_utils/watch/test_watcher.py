"""The watch of real processes that write records: no record is lost or comes twice, and each end has its reason."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils import runner
from plugins.module_utils.watch import link, records_program, watcher
from plugins.module_utils.watch.watcher import is_watched, watch_records, why_ended
from plugins.plugin_utils.world import start_watch
from tests.lab.places import until

HERE = ("sh", "-c")
HOLDER = """
import fcntl, sys, time
with open(sys.argv[1]) as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(60)
"""


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Bench:
    """A watch in a thread, over folders of this machine that stand for nodes."""

    def __init__(self, folder: Path, nodes: int = 2, *reaches: Sequence[str], tail: int = 0, **limits: Any) -> None:
        self.out, self.stop = folder / "records.jsonl", folder / "stop"
        self.folders = [folder / f"node{number}" for number in range(nodes)]
        each = zip(self.folders, reaches or [HERE] * nodes)
        self.links = [link.Link(one.name, reach, str(one), tail=tail) for one, reach in each]
        desired = watcher.WatchOptions(self.out, self.stop, **{"silence": 60, "timeout": 60, **limits})
        self.seen: list[watcher.WatchState] = []
        self.thread = threading.Thread(target=lambda: self.seen.append(watcher.watch(self.links, desired)))
        self.thread.start()

    def write(self, node: int, text: str, rank: int = 0) -> None:
        self.folders[node].mkdir(exist_ok=True)
        with (self.folders[node] / f"rank{rank}.jsonl").open("a") as records:
            records.write(text)

    def came(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.read_text().split("\n")[:-1]] if self.out.exists() else []

    def end(self) -> watcher.WatchState:
        self.stop.touch()
        self.thread.join(30)
        (seen,) = self.seen
        return seen


def record(step: int) -> str:
    return json.dumps({"step": step}) + "\n"


def test_records_arrive_as_written_with_our_timestamps(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    before = time.time()
    bench.write(0, record(1))
    bench.write(1, record(2))
    wait_for(lambda: len(bench.came()) == 2)
    bench.write(0, record(3)[:5])
    bench.write(1, record(4), rank=7)
    wait_for(lambda: len(bench.came()) == 3)
    bench.write(0, record(3)[5:])
    wait_for(lambda: len(bench.came()) == 4)
    assert [one["step"] for one in bench.came()][2:] == [4, 3], "a line that is being written waits for its end"
    assert all(before <= one["seen"] <= time.time() for one in bench.came())
    seen = bench.end()
    assert (seen.ended, seen.lines, seen.unreadable) == ("stopped", {"node0": 2, "node1": 2}, 0)
    assert bench.out.stat().st_mode & 0o777 == 0o600


def test_a_broken_connection_reopens_without_losing_records(tmp_path: Path) -> None:
    bench = Bench(tmp_path, nodes=1)
    for step in range(300):
        bench.write(0, record(step))
        if step == 100:
            wait_for(bench.came)
            process = bench.links[0]._process
            assert process
            os.killpg(process.pid, signal.SIGKILL)
    wait_for(lambda: len(bench.came()) >= 300)
    assert [one["step"] for one in bench.came()] == list(range(300))
    bench.end()
    assert bench.links[0].breaks == 1


def test_ends_for_a_silent_job_or_a_timeout(tmp_path: Path) -> None:
    quiet = Bench(tmp_path, silence=0.5)
    quiet.thread.join(30)
    assert quiet.seen[0].ended == "silent"
    (tmp_path / "other").mkdir()
    late = Bench(tmp_path / "other", timeout=0.3)
    late.thread.join(30)
    assert late.seen[0].ended == "out of time"


def test_counts_malformed_records(tmp_path: Path) -> None:
    bench = Bench(tmp_path, nodes=1)
    bench.write(0, "no json\n[1]\n{} \n" + record(1))
    wait_for(lambda: len(bench.came()) == 2)
    seen = bench.end()
    assert ([one.get("step") for one in bench.came()], seen.unreadable) == ([None, 1], 2)
    assert all(one["seen"] > 0 for one in bench.came())


def test_no_process_remains_on_the_node(tmp_path: Path) -> None:
    bench = Bench(tmp_path, nodes=1)
    bench.write(0, record(1))
    wait_for(bench.came)
    bench.end()
    left = subprocess.run(["pgrep", "-f", str(tmp_path / "node0")], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_retries_and_reports_an_unreachable_node(tmp_path: Path) -> None:
    bench = Bench(tmp_path, 1, ["sh", "-c", "echo no route >&2; exit 255"])
    wait_for(lambda: bench.links[0].breaks >= 2)
    seen = bench.end()
    assert (seen.ended, bench.links[0].last_error) == ("stopped", "no route")


@pytest.mark.parametrize("name", ["notes.txt", "rank0.json"])
def test_files_without_the_name_of_records_are_ignored(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x\n")
    assert records_program.RecordFolder(str(tmp_path), {}).read() == []


def test_the_watch_ends_when_no_one_needs_it(tmp_path: Path) -> None:
    gone = threading.Event()
    bench = Bench(tmp_path, is_needed=lambda: not gone.is_set())
    bench.write(0, record(1))
    wait_for(bench.came)
    assert bench.thread.is_alive()
    gone.set()
    bench.thread.join(30)
    assert [one.ended for one in bench.seen] == [watcher.ABANDONED]


def test_a_second_watch_leaves_files_to_the_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    wait_for(lambda: watcher.is_watched(bench.out))
    desired = watcher.WatchOptions(bench.out, tmp_path / "another", 60, 60)
    assert watcher.watch([link.Link("node0", HERE, str(bench.folders[0]))], desired).ended == "watched already"
    bench.write(0, record(1))
    wait_for(lambda: len(bench.came()) == 1)
    bench.end()
    assert not watcher.is_watched(bench.out)
    assert not watcher.is_watched(tmp_path / "never")


def test_records_written_between_watches_have_no_arrival_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write(0, record(1))
    wait_for(lambda: len(bench.came()) == 1)
    bench.end()
    bench.stop.unlink()
    with bench.out.open("a") as half:
        half.write(record(1)[:5])  # as a killed watch leaves it
    bench.write(0, record(2))
    bench.write(1, record(3))
    again = Bench(tmp_path)
    wait_for(lambda: again.out.read_bytes().count(b"\n") == 4)
    again.write(0, record(4))
    again.write(1, record(5))
    wait_for(lambda: len(again.came()) == 6)
    again.end()
    assert sorted(one["step"] for one in again.came()[:4]) == [1, 1, 2, 3], "it is read again from its beginning"
    assert ["seen" in one for one in again.came()] == [True, False, False, False, True, True]


class Disk:
    """Stands for os.write: a full disk takes a part of what is written, then nothing."""

    def __init__(self) -> None:
        self.is_full, self.refused, self._write = False, 0, os.write

    def __call__(self, handle: int, data: bytes) -> int:
        if not self.is_full or not stat.S_ISREG(os.fstat(handle).st_mode):
            return self._write(handle, data)
        self.refused += 1
        if self.refused % 2:
            return self._write(handle, data[:7])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_watch_survives_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    monkeypatch.setattr(watcher.os, "write", disk)
    monkeypatch.setattr(watcher, "WAIT_SECONDS", 0.05)
    bench = Bench(tmp_path, silence=3)
    bench.write(0, record(1))
    bench.write(1, record(1))
    wait_for(lambda: len(bench.came()) == 2)
    disk.is_full = True
    bench.write(0, record(2))
    wait_for(lambda: disk.refused > 6)
    bench.write(0, record(3))
    bench.write(1, record(2))
    time.sleep(1)
    assert bench.thread.is_alive()
    disk.is_full = False
    wait_for(lambda: len(bench.came()) >= 5)
    bench.write(0, record(4))
    wait_for(lambda: any(one["step"] == 4 for one in bench.came()))
    assert bench.end().ended == "stopped"
    first = [(one["step"], "seen" in one) for one in bench.came()]
    assert sorted(first) == [(1, True), (1, True), (2, False), (2, True), (3, False), (4, True)], "each of them once"


def test_a_watch_can_be_stopped_despite_full_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    disk.is_full = True
    monkeypatch.setattr(watcher.os, "write", disk)
    monkeypatch.setattr(watcher, "WAIT_SECONDS", 0.05)
    bench = Bench(tmp_path)
    bench.write(0, record(1))
    wait_for(lambda: disk.refused > 4)
    assert bench.end().ended == "stopped"
    assert bench.out.read_bytes() == b"", "no part of a record is left"


class Reopened:
    """A link whose descriptor a test sets."""

    def __init__(self, stream: int) -> None:
        self.stream, self.breaks = stream, 0

    def open(self) -> None:
        """Keep the descriptor."""


def test_links_that_reopen_may_swap_their_descriptors() -> None:
    (first, first_end), (second, second_end) = os.pipe(), os.pipe()
    links: list[Any] = [Reopened(first), Reopened(second)]
    arrivals = watcher._Arrivals(links)
    os.write(first_end, b"x")
    assert arrivals.wait() == [links[0]]
    for one, stream in zip(links, (second, first), strict=True):
        one.stream, one.breaks = stream, 1
    assert arrivals.wait() == [links[1]]
    arrivals.close()
    for descriptor in (first, first_end, second, second_end):
        os.close(descriptor)


def test_starts_a_new_record_file_without_losing_records(tmp_path: Path) -> None:
    request, kept = tmp_path / "roll", tmp_path / "records.jsonl.before"
    bench = Bench(tmp_path, nodes=1, roll=request)
    for number in range(3):
        for step in range(10 * number, 10 * number + 10):
            bench.write(0, record(step))
        wait_for(lambda: len(bench.came()) == 10)
        request.touch()
        wait_for(lambda: not request.exists())
        assert [json.loads(line)["step"] for line in kept.read_text().splitlines()] == [
            *range(10 * number, 10 * number + 10)
        ]
        assert bench.came() == [] and watcher.is_watched(bench.out), "another watch may not begin meanwhile"
    assert bench.end().lines == {"node0": 30}
    assert not (tmp_path / "records.jsonl.new").exists()


def test_a_watch_may_start_with_the_last_lines(tmp_path: Path) -> None:
    (tmp_path / "node0").mkdir()
    (tmp_path / "node0" / "rank0.jsonl").write_text("".join(map(record, range(10_000))))
    bench = Bench(tmp_path, nodes=1, tail=200)
    wait_for(bench.came)
    bench.write(0, record(10_000))
    bench.write(0, "".join(map(record, range(50))), rank=1)
    wait_for(lambda: len(bench.came()) >= 60)
    bench.end()
    steps = [one["step"] for one in bench.came()]
    assert steps[0] > 9_900 and set(range(steps[0], 10_001)) <= set(steps), "from a whole line on"
    assert set(range(50)) <= set(steps), "a file that appears later is read from its beginning"


def test_another_watch_recognizes_a_later_record_file(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl.before").write_text(record(1))
    bench = Bench(tmp_path, nodes=1)
    bench.write(0, record(1))
    wait_for(bench.came)
    bench.end()
    assert bench.links[0].is_resumed


def options(place: Path, **more: Any) -> dict[str, Any]:
    files = {"folder": str(place), "records": str(place / "out.jsonl"), "stop": str(place / "stop")}
    return {**files, "nodes": [], **more}


def watched(place: Path, **more: Any) -> dict[str, Any]:
    return runner.outcome(lambda: watch_records(**options(place, **more)))


def test_the_result_names_the_ending_and_each_source(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    (folder / "rank0.jsonl").write_text('{"step": 1}\n{"step": 2}\nno record\n')
    nodes = [{"name": "n1", "reach": ["sh", "-c", 'echo Welcome; eval "$0"']}]

    result = watched(tmp_path, nodes=nodes, folder=str(folder), silence=2.0)

    assert (result["ended"], result["nodes"]["n1"]["lines"]) == ("silent", 3)
    assert result["unreadable"] == 2, "a line of the file, and the greeting of the shell"
    assert [json.loads(line)["step"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [1, 2]


def test_the_watch_ends_after_a_while_without_attention(tmp_path: Path) -> None:
    """After a real kill -9: the kernel releases the lock of the killed process."""
    journal = tmp_path / "journal.jsonl"
    journal.touch()
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(journal)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout and holder.stdout.readline() == b"held\n"
        held = 4.0
        threading.Timer(held, holder.kill).start()
        began = time.monotonic()
        result = watched(tmp_path, attended=str(journal), alone=1.0)
        took = time.monotonic() - began
        assert holder.wait() == -signal.SIGKILL
    assert result["ended"] == "abandoned"
    assert took > held - 1.0, "the watch continues while a process holds the lock"


def test_the_watch_ends_with_its_starting_process(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as asking:
        threading.Timer(1.0, asking.kill).start()
        result = watched(tmp_path, started_by=asking.pid)
        assert asking.wait() < 0
    assert result["ended"] == "abandoned"


def test_reports_a_record_file_that_cannot_be_written(tmp_path: Path) -> None:
    failed = watched(tmp_path, records=str(tmp_path / "no" / "out"))

    message = f"{tmp_path}/no/out: could not collect the records of the job: No such file or directory"
    assert (failed["failed"], failed["msg"]) == (True, message)


def test_the_background_watch_reports_why_it_ended(tmp_path: Path) -> None:
    records = tmp_path / "out.jsonl"

    assert start_watch(options(tmp_path, silence=60.0)) == {}

    until(lambda: is_watched(records), "the watch runs", 30)
    (tmp_path / "stop").touch()
    until(lambda: why_ended(str(records)) == "stopped", "the watch ended", 30)
    assert (tmp_path / "out.jsonl.watch").stat().st_mode & 0o777 == 0o600


def test_reports_a_watch_that_cannot_start(tmp_path: Path) -> None:
    failed = start_watch(options(tmp_path, records=str(tmp_path / "no" / "out")))

    assert failed["msg"] == f"{tmp_path}/no/out.watch: could not start the watch: No such file or directory"


def test_the_last_line_reports_a_watch_error(tmp_path: Path) -> None:
    records = tmp_path / "out.jsonl"
    assert why_ended(str(records)) == ""

    with (tmp_path / "out.jsonl.watch").open("w") as output:
        output.write("Traceback:\nModuleNotFoundError: No module named 'fcntl'\n")

    assert why_ended(str(records)).startswith("ModuleNotFoundError")
