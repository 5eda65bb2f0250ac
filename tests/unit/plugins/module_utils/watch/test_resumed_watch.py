"""A watch that continues an earlier one: records in between have no time of arrival, and none is left out."""

from __future__ import annotations

from pathlib import Path

from tests.unit.plugins.module_utils.watch.test_watcher import Bench, record, wait_for


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


def test_unread_records_of_a_long_file_stay_unstamped_beside_a_read_one(tmp_path: Path) -> None:
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


def test_a_continued_tail_lacks_no_records_in_between(tmp_path: Path) -> None:
    _watched_until(tmp_path, 100, tail=200).write(0, "".join(map(record, range(101, 1001))))
    again = Bench(tmp_path, nodes=1, tail=200)
    wait_for(lambda: any(one["step"] == 1000 for one in again.came()))
    again.end()
    stamped = {one["step"]: "seen" in one for one in again.came()}
    assert set(range(101, 1001)) <= set(stamped), "also those before the last bytes of the file"
    assert not any(stamped[step] for step in range(101, 1001))
