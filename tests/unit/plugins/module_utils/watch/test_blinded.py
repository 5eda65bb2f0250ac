"""The watch reads all records despite shell greetings, malformed files and connections that hang."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from plugins.module_utils.watch import link, node_programs, transport_program, watcher
from tests.unit.plugins.module_utils.watch.test_watcher import Bench, record, wait_for

# Output that a shell may print at login, before it runs the command.
NOISE = {
    "a line": "echo Welcome to worker-1",
    "a list": "echo '[1, 2]'",
    "a record": "echo '{\"step\": 99}'",
    "an empty record": "echo '{}'",
    "a message without a place": 'echo \'{"file": "rank0.jsonl", "lines": ["{}"]}\'',
    "a number": "echo 7",
    "deep nesting": "python3 -c 'print(\"[\" * 100000)'",
    "no line end": "printf 'Last login: today '",
    "no text": "printf '\\377\\376\\n'",
    "a megabyte": "python3 -c 'print(\"x\" * (1 << 20))'",
    "many errors": "python3 -c 'import sys; sys.stderr.write(\"x\" * (1 << 18))'",
}


def test_a_login_banner_does_not_blind_a_watch(tmp_path: Path) -> None:
    reaches = [["sh", "-c", f'{noise}; exec sh -c "$0"'] for noise in NOISE.values()]
    bench = Bench(tmp_path, len(reaches), *reaches)
    for step in (1, 2):
        for node, _reach in enumerate(reaches):
            bench.write(node, json.dumps({"step": step, "node": node}) + "\n")
        desired = step * len(reaches)
        wait_for(lambda desired=desired: len(bench.came()) == desired)
    seen = bench.end()
    for node, (noise, one) in enumerate(zip(NOISE, bench.links)):
        steps = [came["step"] for came in bench.came() if came["node"] == node]
        assert (noise, steps, one.breaks) == (noise, [1, 2], 0)
        assert (noise, one.noise) == (noise, 0 if "errors" in noise else 1)
    assert seen.unreadable == 0


def test_skips_and_reports_output_between_messages(tmp_path: Path) -> None:
    bench = Bench(tmp_path, 1, ["sh", "-c", '(while sleep 0.1; do echo wall; done) & exec sh -c "$0"'])
    for step in range(1, 6):
        bench.write(0, record(step))
        wait_for(lambda desired=step: len(bench.came()) == desired)
    bench.end()
    assert bench.links[0].noise > 0
    assert bench.links[0].last_error == "wall"


def test_an_endless_line_uses_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "LONGEST_MESSAGE", 1 << 18)
    bench = Bench(tmp_path, 1, ["sh", "-c", "exec tr '\\0' x < /dev/zero"])
    wait_for(lambda: bench.links[0].noise > 3)
    assert len(bench.links[0]._rest) <= (1 << 18) + link.CHUNK
    bench.end()


def test_counts_malformed_records_without_losing_others(tmp_path: Path) -> None:
    # The training writes the files of records, and so can any other process with access to the folder.
    odd = ["[1, 2]", "7", "[" * 100_000, '{"step": ' + "9" * 5000 + "}", "", '"\\ud800"', '{"step": 1', "\udcff"]
    bench = Bench(tmp_path, len(odd))
    for node, text in enumerate(odd):
        bench.write(node, text.encode("utf-8", "surrogateescape").decode("latin-1") + "\n" + record(node))
    wait_for(lambda: len(bench.came()) == len(odd))
    seen = bench.end()
    assert sorted(one["step"] for one in bench.came()) == list(range(len(odd)))
    assert seen.unreadable == len(odd)


def test_closes_a_connection_despite_a_leftover_program(tmp_path: Path) -> None:
    # Like ssh that keeps a connection open for the next one: in a separate session, it holds its output open.
    reach = ["sh", "-c", "setsid sleep 20 & echo no route >&2; exit 255"]
    bench = Bench(tmp_path, 1, reach)
    began = time.monotonic()
    time.sleep(0.5)
    bench.end()
    assert time.monotonic() - began < 20
    assert bench.links[0].last_error == "no route"


@pytest.mark.parametrize(
    ("reach", "why"),
    [
        (["sh", "-c", "echo no route >&2; exit 255"], "no route (for "),
        (["sh", "-c", "exec sleep 60"], "no answer (for "),
        (["sh", "-c", "echo Change your password:; exec sleep 60"], "Change your password: (for "),
    ],
)
def test_names_an_unreadable_node_within_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reach: list[str], why: str
) -> None:
    monkeypatch.setattr(link, "QUIET_SECONDS", 0.5)
    bench = Bench(tmp_path, 1, reach)
    wait_for(lambda: watcher.troubles(bench.out))
    assert watcher.troubles(bench.out)["node0"].startswith(why)
    bench.end()


def test_a_readable_node_is_no_longer_in_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "QUIET_SECONDS", 0.5)
    gate = tmp_path / "gate"
    bench = Bench(tmp_path, 1, ["sh", "-c", f'test -e {gate} || exit 1; exec sh -c "$0"'])
    wait_for(lambda: watcher.troubles(bench.out))
    gate.touch()
    wait_for(lambda: not watcher.troubles(bench.out))
    bench.end()
    assert watcher.troubles(tmp_path / "never") == {}


LOOKS = {
    "a line": "echo Welcome",
    "a list": "echo '[1]'",
    "a record": "echo '{\"ranks\": 1}'",
    "no text": "printf '\\377\\n'",
    "deep nesting": "python3 -c 'print(\"[\" * 100000)'",
}


@pytest.mark.parametrize("noise", LOOKS)
def test_a_login_banner_does_not_blind_an_inspection(tmp_path: Path, noise: str) -> None:
    node = {"name": "n1", "reach": ["sh", "-c", f'{LOOKS[noise]}; exec sh -c "$0"']}
    report = node_programs.run_on_nodes([node], transport_program, [str(tmp_path)], 30)
    assert report["n1"]["ranks"] == []
    assert "error" not in report["n1"]


@pytest.mark.parametrize(
    ("reach", "error"),
    [
        (["sh", "-c", "echo Change your password:"], "the answer is not a JSON object: Change your password:"),
        (["sh", "-c", "true"], "the answer is not a JSON object: nothing"),
        # Lines of ssh end as those of a terminal do.
        (["sh", "-c", r"printf 'ssh: No route to host\r\n' >&2; exit 255"], "ssh: No route to host"),
        (["sh", "-c", "setsid sleep 20 & exec sleep 60"], "it did not answer in time"),
    ],
)
def test_a_node_without_an_answer_has_an_error(tmp_path: Path, reach: list[str], error: str) -> None:
    began = time.monotonic()
    report = node_programs.run_on_nodes([{"name": "n1", "reach": reach}], transport_program, [str(tmp_path)], 2)
    assert report == {"n1": {"error": error}}
    assert time.monotonic() - began < 20
