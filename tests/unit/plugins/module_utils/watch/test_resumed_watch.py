"""A watch that continues an earlier one: records in between have no time of arrival, and none is left out."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from plugins.module_utils.core import observer_clock
from plugins.module_utils.watch import beside_records, link, watcher
from plugins.module_utils.watch.records_program import LOOK_SECONDS
from tests.unit.plugins.module_utils.watch.test_watcher import Bench, Disk, record, wait_for


def _watched_until(folder: Path, step: int, tail: int = 0) -> Bench:
    """Return a watch that has ended after a step, without the file that ended it."""
    bench = Bench(folder, nodes=1, tail=tail)
    bench.write(0, "".join(map(record, range(step + 1))))
    wait_for(lambda: any(one["step"] == step for one in bench.came()))
    bench.end()
    bench.stop.unlink()
    return bench


def test_unread_records_stay_unstamped_after_failed_connections(tmp_path: Path) -> None:
    _watched_until(tmp_path, 1).write(0, record(2))
    once = f'test -e {tmp_path}/tried || {{ touch {tmp_path}/tried; exit 255; }}; eval "$0"'
    again = Bench(tmp_path, 1, ["sh", "-c", once])
    wait_for(lambda: any(one["step"] == 2 for one in again.came()))
    again.write(0, record(3))
    wait_for(lambda: any(one["step"] == 3 for one in again.came()))
    again.end()
    assert again.links[0].breaks == 1
    assert {one["step"]: "seen" in one for one in again.came()[2:]} == {0: False, 1: False, 2: False, 3: True}


def test_unread_file_stays_unstamped_beside_a_read_one(tmp_path: Path) -> None:
    before = _watched_until(tmp_path, 1)
    lines = [f'{{"step": {step}, "rank": 1, "name": "{"x" * 1000}"}}\n' for step in range(6000)]
    before.write(0, "".join(lines), rank=1)
    # The first connection breaks in the third MiB of six, after a new record of rank 0.
    once = f'test -e {tmp_path}/tried && eval "$0" || {{ touch {tmp_path}/tried; eval "$0" | head -c 2500000; }}'
    again = Bench(tmp_path, 1, ["sh", "-c", once])
    wait_for(lambda: any("rank" in one for one in again.came()))
    again.write(0, record(2))
    wait_for(lambda: any(one.get("rank") and one["step"] == 5999 for one in again.came()))
    again.end()
    assert again.links[0].breaks == 1
    assert [one["step"] for one in again.came() if "seen" in one and "rank" not in one][-1] == 2
    assert not any("seen" in one for one in again.came() if "rank" in one)


def test_a_continued_tail_lacks_no_records_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The first watch ends before it would write its offsets again.
    monkeypatch.setattr(watcher, "TROUBLE_SECONDS", 3600.0)
    _watched_until(tmp_path, 100, tail=200).write(0, "".join(map(record, range(101, 1001))))
    again = Bench(tmp_path, nodes=1, tail=200)
    wait_for(lambda: any(one["step"] == 1000 for one in again.came()))
    again.end()
    stamped = {one["step"]: "seen" in one for one in again.came()}
    assert set(range(101, 1001)) <= set(stamped), "also those before the last bytes of the file"
    assert not any(stamped[step] for step in range(101, 1001))


class Laptop:
    """The controller of a watch, which sleeps between two looks for new records."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slept, self.is_asleep, self.is_awake = 0.0, threading.Event(), threading.Event()
        self.is_awake.set()
        look, read_clock = watcher._Arrivals.wait, observer_clock.time.clock_gettime

        def wait(arrivals: watcher._Arrivals) -> list[link.Link]:
            if self.is_awake.is_set():
                return look(arrivals)
            self.is_asleep.set()
            assert self.is_awake.wait(30)
            return look(arrivals)

        monkeypatch.setattr(watcher._Arrivals, "wait", wait)
        boot = observer_clock.time.CLOCK_BOOTTIME
        monkeypatch.setattr(
            observer_clock.time, "clock_gettime", lambda kind: read_clock(kind) + self.slept * (kind == boot)
        )

    def sleep(self, seconds: float, bench: Bench, step: int) -> None:
        """Sleep while each node writes a record and its connection takes it."""
        self.is_awake.clear()
        assert self.is_asleep.wait(30)
        for node in range(len(bench.folders)):
            bench.write(node, record(step), rank=node)
        time.sleep(2 * LOOK_SECONDS)
        self.slept += seconds
        self.is_awake.set()


def test_records_of_a_sleep_stay_unstamped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laptop, bench = Laptop(monkeypatch), Bench(tmp_path, nodes=2)

    _train(bench, 1)
    laptop.sleep(300, bench, 2)
    wait_for(lambda: all(one.breaks and one._has_caught_up for one in bench.links))
    _train(bench, 3)

    assert bench.end().ended == "stopped"
    steps = sorted((one["step"], "seen" in one) for one in bench.came())
    assert steps == [(1, True)] * 2 + [(2, False)] * 2 + [(3, True)] * 2
    first, *_others, last = (one["seen"] for one in bench.came() if "seen" in one)
    assert last - first > 300


def _train(bench: Bench, step: int) -> None:
    """Write a record on each node, and wait until the watch has both."""
    for node in range(len(bench.folders)):
        bench.write(node, record(step), rank=node)
    wait_for(lambda: sum(one["step"] == step for one in bench.came()) == len(bench.folders))


def test_a_continued_tail_reads_records_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, disk = Bench(tmp_path, nodes=1, tail=200), Disk()
    monkeypatch.setattr(watcher.os, "write", disk)
    monkeypatch.setattr(watcher, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(watcher, "TROUBLE_SECONDS", 0.0)
    before.write(0, record(1))
    wait_for(lambda: beside_records.read(before.out, beside_records.OFFSETS).get("node0"))
    disk.is_full = True
    before.write(0, "".join(map(record, range(2, 101))))
    wait_for(lambda: disk.refused > 4)
    before.end()
    before.stop.unlink()
    disk.is_full = False

    again = Bench(tmp_path, nodes=1, tail=200)
    wait_for(lambda: any(one["step"] == 100 for one in again.came()))
    again.end()

    assert [one["step"] for one in again.came()] == list(range(1, 101))
