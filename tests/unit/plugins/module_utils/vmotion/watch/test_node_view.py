# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A watch with a view of its nodes: real processes, and a stand-in for nvidia-smi that prints given texts."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training.guest import job_secrets
from plugins.module_utils.vmotion.watch import beside_records, link, records_program

from .test_watcher import HERE, Bench, record, wait_for

SECRETS = {"TOKEN": "a-secret-token", "LONGER": "a-secret-token-and-more", "SHORT": "lo", "NUMBER": 1234567890}


class ViewBench(Bench):
    """A watch that also reads the view of its nodes."""

    def __init__(self, folder: Path, path: str) -> None:
        self.place = folder
        super().__init__(folder, 1, ["sh", "-c", f'PATH={path}:$PATH; sh -c "$0"'])

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


@pytest.mark.usefixtures("viewed")
def test_the_output_comes_without_secrets(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, "")
    folder = tmp_path / "node0"
    bench.write(0, record(1))
    (folder / "wish.json").write_text(json.dumps({"secret_environment": SECRETS}))
    (folder / "output.log").write_text("hello a-secret-token-and-more\nlo 1234567890\na-secret-tok")
    wait_for(lambda: "output" in bench.view())
    assert bench.view()["output"] == "hello HIDDEN\nlo HIDDEN\n", "the incomplete line may begin with a secret value"
    bench.end()


def end_of(folder: Path, output: str, secrets: dict[str, Any]) -> str:
    path = folder / "output.log"
    path.write_text(output)
    (folder / "wish.json").write_text(json.dumps({"secret_environment": secrets}))
    handle = os.open(path, os.O_RDONLY)
    try:
        return records_program.output_end(handle, path.stat().st_size, records_program.secret_values(str(folder)))
    finally:
        os.close(handle)


def test_the_values_to_hide_are_those_of_the_job(tmp_path: Path) -> None:
    output = "x a-secret-token-and-more 1234567890 lo a-secret-token\n"
    assert end_of(tmp_path, output, SECRETS) == job_secrets.without(output, job_secrets.values(SECRETS))
    assert end_of(tmp_path, "no line end", {}) == "no line end"


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_secret_value_that_the_limit_cuts_is_not_shown(tmp_path: Path, cut: int) -> None:
    secret = "first line\nsecond one\nthird line"
    begin = "y" * 10 + secret
    rest = "z" * (records_program.READ_BYTES - len(begin) + cut - 1) + "\n"
    shown = end_of(tmp_path, begin + rest, {"KEY": secret})
    assert "line" not in shown and "second" not in shown
    many = "".join(f"{number}\n" for number in range(100_000))
    assert len(end_of(tmp_path, many, {"KEY": secret})) <= records_program.SENT_CHARACTERS


def test_shows_no_output_without_the_secret_values(tmp_path: Path) -> None:
    (tmp_path / "output.log").write_text("hello\n")
    view = records_program.NodeView(str(tmp_path))
    assert [message for message in view.read() if "output" in message] == []
    (tmp_path / "wish.json").write_text("[]")
    assert view._new_output() is None
    (tmp_path / "wish.json").write_text("{}")
    assert view._new_output() == "hello\n"
    assert view._new_output() is None, "it has not changed"
    (tmp_path / "output.log").unlink()
    (tmp_path / "output.log").mkdir()
    assert view._new_output() is None


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
