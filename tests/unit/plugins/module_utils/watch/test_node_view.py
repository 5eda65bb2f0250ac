"""A watch with a view of its nodes: real processes, and a stand-in for nvidia-smi that prints given texts."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from plugins.module_utils.training.guest import job_output
from plugins.module_utils.watch import beside_records, link, records_program

from .test_watcher import HERE, Bench, record, wait_for

SECRETS = {"TOKEN": "a-secret-token", "LONGER": "a-secret-token-and-more", "SHORT": "lo", "NUMBER": 1234567890}


class ViewBench(Bench):
    """A watch that also reads the view of its nodes."""

    def __init__(self, folder: Path, path: str) -> None:
        self.place = folder
        super().__init__(folder, 1, ["sh", "-c", f'PATH={path}:$PATH; sh -c "$0"'], output=folder / "here.log")

    def view(self) -> dict[str, Any]:
        """Return the latest part of each kind."""
        read = beside_records.read(self.out, beside_records.VIEWS).get("node0", {})
        return {kind: content for kind, (_at, content) in read.items()}


@pytest.fixture
def viewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each link of a watch ask for the view, often."""
    monkeypatch.setattr(link.Link, "has_view", True)
    init = link.Link.__init__
    monkeypatch.setattr(link.Link, "__init__", lambda self, *args, **more: init(self, *args, has_view=True, **more))


def bench_of(folder: Path, smi: str) -> ViewBench:
    (folder / "bin").mkdir()
    program = folder / "bin" / "nvidia-smi"
    if smi:
        program.write_text(f"#!/bin/sh\n{smi}\n")
        program.chmod(0o755)
    return ViewBench(folder, str(folder / "bin"))


@pytest.mark.usefixtures("viewed")
@pytest.mark.parametrize(
    ("smi", "text", "code"),
    [
        ('echo "0, A, 93, 5, 9 $2"', "0, A, 93, 5, 9 --format=csv,noheader,nounits\n", 0),
        ("echo broken >&2; exit 9", "broken\n", 9),
    ],
)
def test_the_use_of_gpus_comes_with_the_records(tmp_path: Path, smi: str, text: str, code: int) -> None:
    bench = bench_of(tmp_path, smi)
    bench.write(0, record(1))
    wait_for(lambda: "gpus" in bench.view())
    assert bench.view()["gpus"] == {"text": text, "code": code}
    wait_for(bench.came)
    bench.end()
    assert beside_records.read(bench.out, beside_records.VIEWS) == {}, "the file is removed at the end"


@pytest.mark.usefixtures("viewed")
def test_a_program_that_hangs_delays_no_record(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, "exec sleep 60")
    began = time.monotonic()
    for step in range(3):
        bench.write(0, record(step))
        wait_for(lambda: len(bench.came()) == step + 1)  # noqa: B023 # the loop waits for it
    assert time.monotonic() - began < records_program.GPU_SECONDS
    assert "gpus" not in bench.view()
    bench.end()


def job_in(folder: Path, output: str, secrets: dict[str, Any] | None = None) -> Path:
    """Write the files of a job on its launcher, and return its output."""
    folder.mkdir(exist_ok=True)
    (folder / "wish.json").write_text(json.dumps({"secret_environment": secrets or {}}))
    path = folder / "output.log"
    path.write_text(output)
    return path


@pytest.mark.usefixtures("viewed")
def test_copies_the_whole_output_live_without_secrets(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, "")
    output = job_in(tmp_path / "node0", "hello a-secret-token-and-more\nlo 1234567890\na-secret-tok", SECRETS)
    here = tmp_path / "here.log"

    wait_for(lambda: here.exists() and here.read_text() == "hello HIDDEN\nlo HIDDEN\n")
    process = bench.links[0]._process
    assert process
    os.killpg(process.pid, signal.SIGKILL)
    with output.open("a") as more:
        more.write("en\n" + "x\n" * 3_000_000)

    wait_for(lambda: here.stat().st_size == len("hello HIDDEN\nlo HIDDEN\nHIDDEN\n") + 6_000_000)
    assert here.stat().st_mode & 0o777 == 0o600
    bench.end()


@pytest.mark.usefixtures("viewed")
def test_reports_the_end_promptly_after_the_output(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, "")
    end = tmp_path / "node0" / "end.json"
    job_in(end.parent, "hello\n")
    end.write_text(" " * 100)
    wait_for((tmp_path / "here.log").exists)
    end.write_text(json.dumps({"swept": False}))
    time.sleep(1.0)
    assert beside_records.read(bench.out, beside_records.ENDS) == {}

    began = time.monotonic()
    end.write_text(json.dumps({"swept": True}))
    wait_for(lambda: beside_records.read(bench.out, beside_records.ENDS))

    assert time.monotonic() - began < 1.0
    bench.end()


def read_all(folder: Path, chunk: int) -> str:
    """Return all parts of the output, read in chunks."""
    output = records_program.Output(str(folder), 0)
    parts = []
    with mock.patch.object(records_program, "MOST_BYTES", chunk):
        while messages := output.read():
            parts += [str(message["output"]) for message in messages]
    return "".join(parts)


def test_hides_the_secret_values_of_the_job(tmp_path: Path) -> None:
    output = "x a-secret-token-and-more 1234567890 lo a-secret-token\n"
    job_in(tmp_path, output, SECRETS)
    assert read_all(tmp_path, 1 << 20) == job_output.without(output, job_output.values(SECRETS))


@pytest.mark.parametrize("chunk", range(33, 60))
def test_hides_a_secret_value_split_across_chunks(tmp_path: Path, chunk: int) -> None:
    secret = "first line\nsecond one\nthird line"
    job_in(tmp_path, f"{'y' * 10}{secret}{'z' * 30}\nthe end\n", {"KEY": secret})

    assert read_all(tmp_path, chunk) == f"{'y' * 10}HIDDEN{'z' * 30}\nthe end\n"


def test_hides_a_multiline_secret_despite_mpirun_tags(tmp_path: Path) -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w\nshort\n-----END KEY-----\n"
    printed = "".join(f"[1,0]<stdout>:{line}\n" for line in key.splitlines())
    job_in(tmp_path, printed, {"KEY": key})

    shown = read_all(tmp_path, 1 << 20)

    assert shown == job_output.without(printed, job_output.values({"KEY": key}))
    assert shown.splitlines() == [f"[1,0]<stdout>:{text}" for text in ("HIDDEN", "HIDDEN", "short", "HIDDEN")]


def test_fast_output_loses_its_middle_and_leaks_nothing(tmp_path: Path) -> None:
    secret = "first line\nsecond one\nthird line"
    job_in(tmp_path, f"{'y' * 100}{secret}\n{'z' * 30}\nthe end\n", {"KEY": secret})
    with mock.patch.object(records_program, "MOST_BEHIND", len(f"line\nsecond one\nthird line\n{'z' * 30}\nthe end\n")):
        (message,) = records_program.Output(str(tmp_path), 0).read()

    assert "line" not in str(message["output"]) and str(message["output"]).endswith("the end\n")
    assert message["skipped"]


def test_shows_a_progress_bar_before_its_line_ends(tmp_path: Path) -> None:
    job_in(tmp_path, "[1,0]<stderr>: 10%\r 20%\r 3")
    assert read_all(tmp_path, 1 << 20) == "[1,0]<stderr>: 10%\r 20%\r"


def test_shows_no_output_without_the_secret_values(tmp_path: Path) -> None:
    (tmp_path / "output.log").write_text("hello\n")
    output = records_program.Output(str(tmp_path), 0)
    assert output.read() == []
    (tmp_path / "wish.json").write_text("[]")
    assert output.read() == []
    (tmp_path / "wish.json").write_text("{}")
    assert output.read() == [{"output": "hello\n", "offset": 6, "skipped": 0}]
    assert output.read() == [], "it has not changed"
    (tmp_path / "other").mkdir()
    job_in(tmp_path / "other", "").unlink()
    (tmp_path / "other" / "output.log").mkdir()
    assert records_program.Output(str(tmp_path / "other"), 0).read() == []


@pytest.mark.parametrize(
    "odd", [{"output": 5, "offset": 1, "skipped": 0}, {"output": "x"}, {"output": "x", "offset": True, "skipped": 0}]
)
def test_an_odd_message_about_the_output_is_noise(odd: dict[str, Any]) -> None:
    node = link.Link("n1", ["true"], "/run")
    assert node._lines_in(json.dumps(odd).encode()) == []
    assert (node.printed, node.noise) == ([], 1)


def test_requests_a_view(tmp_path: Path) -> None:
    bench = Bench(tmp_path, 1, HERE)
    bench.write(0, record(1))
    (tmp_path / "node0" / "wish.json").write_text("{}")
    (tmp_path / "node0" / "output.log").write_text("hello\n")
    wait_for(bench.came)
    time.sleep(1.5)
    assert beside_records.read(bench.out, beside_records.VIEWS) == {}
    bench.end()


@pytest.mark.parametrize("content", ["", "[1]", "{", "[" * 5000])
def test_an_odd_file_of_views_is_empty(tmp_path: Path, content: str) -> None:
    (tmp_path / "records.jsonl.views").write_text(content)
    assert beside_records.read(tmp_path / "records.jsonl", beside_records.VIEWS) == {}
