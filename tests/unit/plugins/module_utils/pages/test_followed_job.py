"""The pace of a job is shown until all is done or nothing comes any more, and the page of the run is written."""

from __future__ import annotations

import fcntl
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.core import observer_clock
from plugins.module_utils.pages.followed_job import follow
from plugins.module_utils.training.runs.controller_site import FollowOptions
from tests.fakes.calling import here
from tests.unit.plugins.module_utils.trials.folder.test_job_moves import at_time, keep
from tests.unit.simulation.world import World


def step_of(number: int) -> dict[str, Any]:
    """Return the record of a step."""
    return {"rank": 0, "size": 1, "step": number, "seen": float(number), "host": "n1"}


def followed(
    place: Path, last: int = 2, is_watched: bool = True, shown: list[Any] | None = None, **options: Any
) -> dict[str, Any]:
    """Return the result for a rank of three steps."""
    records = place / "records.jsonl"
    records.write_text("".join(json.dumps(step_of(number)) + "\n" for number in range(1, last + 1)))
    # As a watch writes it that cannot read a node.
    (place / "records.jsonl.troubles").write_text('{"n2": "no route (for 9 s)"}')
    with records.open("a") as watch:
        if is_watched:
            fcntl.flock(watch, fcntl.LOCK_EX)
        page = FollowOptions(steps=3, quiet=0.1, every=0.0, run="one", **options)
        return here(follow, shown, records=str(records), options=page)


@pytest.mark.parametrize(
    ("last", "is_watched", "ended"), [(3, True, "finished"), (2, True, "quiet"), (2, False, "unwatched")]
)
def test_following_ends_with_job_silence_or_watch(tmp_path: Path, last: int, is_watched: bool, ended: str) -> None:
    shown: list[tuple[str, str]] = []
    assert followed(tmp_path, last, is_watched, shown=shown)["ended"] == ended
    result = [what for _about, what in shown]
    assert result[-2].startswith(f"step {last} of 3")
    assert result[-1] == "n2 cannot be read: no route (for 9 s)"
    assert not (tmp_path / "live.html").exists()


@pytest.mark.parametrize(("ends_apart", "ended"), [(True, "apart"), (False, "quiet")])
def test_following_ends_if_ranks_have_no_group(tmp_path: Path, ends_apart: bool, ended: str) -> None:
    records = [{**step_of(10), "rank": rank, "size": 2, "group": 1} for rank in (0, 1)]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    shown: list[tuple[str, str]] = []

    found = here(
        follow,
        shown,
        records=str(tmp_path / "records.jsonl"),
        options=FollowOptions(quiet=0.1, every=9.0, ends_apart=ends_apart),
    )

    assert found["ended"] in (ended, "unwatched") and "formed no process group" in shown[-1][1]


@pytest.mark.parametrize(("size", "count"), [(1, 1), (2, 0)])
def test_shows_the_first_step_of_all_ranks_immediately(tmp_path: Path, size: int, count: int) -> None:
    records, shown = tmp_path / "records.jsonl", list[Any]()
    records.write_text("".join(json.dumps(step_of(step) | {"size": size}) + "\n" for step in (1, 2)))
    here(follow, shown, records=str(records), options=FollowOptions(quiet=0.1, every=60.0))
    assert len(shown) == count


def test_the_page_reloads_until_the_job_ends(tmp_path: Path) -> None:
    folder, metrics = tmp_path / "one", tmp_path / "metrics"
    metrics.mkdir(mode=0o750)
    followed(tmp_path, folder=str(folder), metrics=str(metrics))
    page = (folder / "live.html").read_text()
    assert '<meta http-equiv="refresh" content="5">' in page
    assert "n2 cannot be read: no route (for 9 s)" in page
    assert 'dml_training_step{run="one",rank="0",node="n1"} 2\n' in (folder / "metrics.prom").read_text()
    assert (folder / "live.html").stat().st_mode & 0o777 == 0o600
    public = metrics / "dml_one.prom"
    assert (metrics.stat().st_mode & 0o777, public.stat().st_mode & 0o777) == (0o750, 0o644)
    assert "silence_limit" not in public.read_text()
    followed(tmp_path, folder=str(folder), metrics=str(metrics), silence=30.5)
    assert 'dml_training_silence_limit_seconds{run="one"} 30.5\n' in public.read_text()
    followed(tmp_path, folder=str(folder), metrics=str(metrics), state="died", why="rank 0 <ended>")
    page = (folder / "live.html").read_text()
    assert "refresh" not in page
    assert "rank 0 &lt;ended&gt;" in page
    assert 'dml_training_running{run="one"} 0\n' in public.read_text()


def test_the_page_has_gpus_output_and_moves(tmp_path: Path) -> None:
    now = time.time()
    views = {"n1": {"gpus": [now, {"text": "0, A100, 93, 1024, 2048", "code": 0}]}}
    (tmp_path / "records.jsonl.views").write_text(json.dumps(views))
    world = World()
    world.carry_out()
    keep(world, tmp_path / "tests" / "gpu-1")
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "output.log").write_text("hello\n")
    tests = {"vmotion_tests": str(tmp_path / "tests"), "run_dir": "/run/one"}
    followed(tmp_path, folder=str(folder), **tests)
    page = (folder / "live.html").read_text()
    assert "1.0 GiB of 2.0 GiB" in page and "hello" in page and "Moves of workers" in page
    gpu = 'dml_training_gpu_utilization_ratio{run="one",node="n1",gpu="0"} 0.93\n'
    assert gpu in (folder / "metrics.prom").read_text()
    (folder / "output.log").write_text("[1,0]<stdout>:" + "x" * 70_000 + "\n[1,0]<stderr>:the end\n")
    followed(tmp_path, folder=str(folder), state="finished", **tests)
    page = (folder / "live.html").read_text()
    assert "rank 0: the end" in page and "Moves of workers" in page and "GiB" not in page


def test_an_unwritable_page_does_not_end_the_watch(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    shown: list[tuple[str, str]] = []
    assert followed(tmp_path, folder=str(tmp_path / "one"), shown=shown)["ended"] == "quiet"
    assert any(about == "page" and "another kind of file has this path" in what for about, what in shown)


@pytest.mark.parametrize("phase", ["train", "eval"])
def test_a_phase_may_be_silent_longer_than_training(tmp_path: Path, phase: str) -> None:
    """A launcher is asked whether the job runs each time that following ends."""
    now = time.time()
    mark = {"mark": "begin", "phase": "eval"} if phase == "eval" else {}
    records = [{**step_of(1), "seen": now - 5.0}, {**step_of(1), **mark, "seen": now - 4.9}]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    began = time.monotonic()
    here(follow, records=str(tmp_path / "records.jsonl"), options=FollowOptions(quiet=0.4, every=60.0, silence=1.0))
    assert (time.monotonic() - began > 0.3) is (phase == "eval")


def test_suspended_controller_takes_no_job_for_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time since the boot, with which the watch stamps records, stands still meanwhile."""
    later = time.time() + 3600.0
    with observer_clock.awake():
        monkeypatch.setattr(time, "time", lambda: later)
        record = {**step_of(1), "seen": observer_clock.now()}
        (tmp_path / "records.jsonl").write_text(json.dumps(record) + "\n")
        began = time.monotonic()
        options = FollowOptions(quiet=0.4, every=60.0, silence=600.5)
        here(follow, records=str(tmp_path / "records.jsonl"), options=options)
    assert time.monotonic() - began > 0.3, "the job is not silent"


def test_writing_the_last_page_prints_nothing(tmp_path: Path) -> None:
    shown: list[tuple[str, str]] = []
    followed(tmp_path, folder=str(tmp_path / "one"), state="finished", shows="page", shown=shown)
    assert shown == [] and (tmp_path / "one" / "live.html").exists()


@pytest.mark.parametrize(
    ("shift", "expected"), [(0.0, "the ranks fell silent together, while w1 moved from esx1 to esx3"), (60.0, "")]
)
def test_a_silence_names_the_move_at_its_time(tmp_path: Path, shift: float, expected: str) -> None:
    world = World(workers=["w1"])
    world.carry_out()
    keep(at_time(world, 1.5 + shift), tmp_path / "tests" / "gpu-1")
    result = followed(tmp_path, vmotion_tests=str(tmp_path / "tests"), run_dir="/run/one")
    assert result["pace"]["first_silent"] == expected


def of_steps(*steps: int) -> str:
    """Return the records of a rank that arrive now."""
    now = time.time()
    records = ({"rank": 0, "size": 1, "step": step, "seen": now, "host": "n1"} for step in steps)
    return "".join(json.dumps(record) + "\n" for record in records)


def test_follows_a_job_beyond_its_estimated_steps(tmp_path: Path) -> None:
    records, shown = tmp_path / "records.jsonl", list[tuple[str, str]]()
    records.write_text(of_steps(1, 2, 3))
    has_ended = threading.Event()

    def train_on() -> None:
        """Make more steps as soon as the estimate of three steps is shown."""
        while not has_ended.is_set() and not any("step 3 of 3" in what for _about, what in shown):
            time.sleep(0.01)
        with records.open("a") as file:
            file.write(of_steps(4, 5, 6))

    writer = threading.Thread(target=train_on)
    with records.open("a") as watch:
        fcntl.flock(watch, fcntl.LOCK_EX)
        writer.start()
        followed_job = here(follow, shown, records=str(records), options=FollowOptions(steps=3, quiet=1.0, every=0.0))
        has_ended.set()
        writer.join()

    assert (followed_job["ended"], followed_job["pace"]["step"]) == ("quiet", 6)
    assert shown[-1][1].partition(",")[0] == "step 6"


def test_waits_briefly_for_steps_after_the_last_one(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text(of_steps(1, 2, 3))
    begin = time.monotonic()

    ended = here(follow, records=str(records), options=FollowOptions(steps=3, quiet=60.0))["ended"]

    assert (ended, time.monotonic() - begin > 1.5) == ("finished", True)


def test_notices_a_reported_end_and_reads_last_records(tmp_path: Path) -> None:
    records, began = tmp_path / "records.jsonl", time.monotonic()
    records.write_text(of_steps(1, 2, 3))
    (tmp_path / "records.jsonl.ends").write_text('{"n1": 1.0}')

    job = here(follow, records=str(records), options=FollowOptions(steps=3, quiet=60.0, awaits_end=True))

    assert (job["ended"], job["pace"]["step"], job["has_records"]) == ("ended", 3, True)
    assert time.monotonic() - began < 2.0


def test_an_estimate_does_not_end_a_reporting_job(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text(of_steps(1, 2, 3))
    with records.open("a") as watch:
        fcntl.flock(watch, fcntl.LOCK_EX)
        assert (
            here(follow, records=str(records), options=FollowOptions(steps=3, quiet=3.0, awaits_end=True))["ended"]
            == "quiet"
        )


def test_shows_lines_of_the_ranks_as_they_arrive(tmp_path: Path) -> None:
    output, shown = tmp_path / "output.log", list[tuple[str, str]]()
    output.write_text("[1,0]<stdout>:epoch 1\n[1,1]<stderr>:warn")
    (tmp_path / "records.jsonl.ends").write_text('{"n1": 1.0}')

    def print_more() -> None:
        while not shown:
            time.sleep(0.01)
        with output.open("a") as file:
            file.write("ing\n" + "x\n" * 150)

    writer = threading.Thread(target=print_more)
    writer.start()
    here(follow, shown, records=str(tmp_path / "records.jsonl"), options=FollowOptions(shows="log", output=str(output)))
    writer.join()

    assert shown[:2] == [("", "rank 0: epoch 1"), ("", "rank 1: warning")]
    assert shown[-1] == ("", f"and 51 more lines, which are in {output}")
