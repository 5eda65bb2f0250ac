"""For any text from vCenter, hosts, nodes, programs or files, a reader returns its type or raises an error."""

from __future__ import annotations

import ast
import json
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.guests import node_checks
from plugins.module_utils.hosts import cluster_image
from plugins.module_utils.training.ending import job_end
from plugins.module_utils.vsphere import rest, tags
from plugins.module_utils.vsphere.forms import misfit
from tests.fakes import foreign
from tests.unit.foreign_elsewhere import ELSEWHERE, OURS, USER
from tests.unit.foreign_readers import READERS, Reader
from tests.unit.plugins.module_utils.guests.test_node_checks import CASES
from tests.unit.plugins.module_utils.vsphere.test_tags import ANSWERS

ROOT = Path(__file__).parents[2]
# Few in `make unit`, many where each run is to draw its own.
EXAMPLES = 40 if settings().derandomize else settings().max_examples
drawn = settings(
    max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def sentence(error: CollectionError) -> None:
    """A refusal is one sentence."""
    assert str(error).count(": could not ") == 1, str(error)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.file)
@drawn
@given(data=st.data())
def test_reads_or_refuses_foreign_text(reader: Reader, tmp_path: Path, data: st.DataObject) -> None:
    value = data.draw(reader.given)
    try:
        answer = reader.read(tmp_path, value)
    except CollectionError as error:
        sentence(error)
    except reader.refuses:
        pass
    else:
        assert isinstance(answer, reader.answers)


LIBRARY = 'hello {"library": "Open MPI v4.1.4", "sum": 0, "node": "n1"}'
SUM = 'allreduce {"framework": "2.12", "python": "3.11", "sum": 1.0, "node": "n1"}'
VERSIONS = 'versions {"missing": [], "faults": [], "python": "3.11", "horovod": "0.28"}'
RUN = {"rc": 0, "stdout": LIBRARY, "stderr": ""}
JOBS: list[tuple[str, Any, Any]] = [
    (
        "openmpi",
        {"run": RUN, "version": "mpirun 4.1.4", "timers": ""},
        {"nodes": ["n1"], "version": "4.1.4", "stun_seconds": 9},
    ),
    (
        "horovod",
        {"run": {**RUN, "stdout": SUM}, "packages": "[]", "python": "Python 3.11"},
        {"nodes": ["n1"], "version": "0.28", "framework": "pytorch", "framework_version": "2", "python": "3.11"},
    ),
    (
        "training_image",
        {"versions": {**RUN, "stdout": VERSIONS}, "run": {**RUN, "stdout": SUM}},
        {"nodes": ["n1"], "versions": {"horovod": "0.28", "framework": "pytorch"}},
    ),
]


@pytest.mark.parametrize("case", [*CASES, *JOBS], ids=lambda case: case[0])
@drawn
@given(data=st.data())
def test_checks_or_refuses_any_program_output_of_nodes(case: Any, data: st.DataObject) -> None:
    kind, found, desired = case[:3]
    odd = data.draw(foreign.mangled(found))
    answer, message = node_checks.check(kind, "n1", odd if isinstance(odd, dict) else {}, desired)
    assert isinstance(answer.facts, dict)
    assert all(isinstance(one, str) for one in answer.misfits)
    assert bool(message) == bool(answer.misfits)


def test_reports_missing_program_output_as_a_misfit() -> None:
    _answer, message = node_checks.check("openmpi", "n1", {"run": {"rc": 0, "stdout": "hello {}"}}, {"nodes": ["n1"]})
    assert (
        message
        == "OpenMPI on n1 does not match its settings: The output of its programs cannot be read (it has no 'library')."
    )
    _answer, message = node_checks.check("docker", "n1", {"info": "", "settings": "{"}, {})
    assert "/etc/docker/daemon.json is not valid JSON" in message and "correct the file" in message


def answering(monkeypatch: pytest.MonkeyPatch, answers: dict[tuple[str, str], Any]) -> None:
    """A server that gives these answers to these calls, and null to all others."""

    def exchange(_self: rest.Rest, verb: str, path: str, _body: Any, _headers: Any) -> tuple[int, str]:
        return 200, foreign.dumped(answers.get((verb, path)))

    monkeypatch.setattr(rest.Rest, "_exchange", exchange)


def session(*version: int) -> Any:
    params = {"hostname": "vc", "port": 443, "username": "root", "password": "secret", "timeout": 5}
    return SimpleNamespace(server="vc:443", params=params, api_version=version, exchange=None)


@drawn
@given(data=st.data())
def test_reads_or_refuses_tags_of_any_form(monkeypatch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    requested = data.draw(st.sampled_from(sorted(ANSWERS)))
    answering(monkeypatch, {**ANSWERS, requested: data.draw(foreign.mangled(ANSWERS[requested]))})
    try:
        with rest.opened(session(8, 0, 3)) as api:
            found = tags.vm_tags(api, "team", ["vm-1"])
    except CollectionError as error:
        sentence(error)
    else:
        assert all(isinstance(name, str) for some in found.values() for name in some)


CLUSTER = "/api/esx/settings/clusters/c1"
IMAGE: dict[tuple[str, str], Any] = {
    ("POST", "/api/session"): "token",
    ("GET", f"{CLUSTER}/enablement/software"): {"enabled": True},
    ("GET", f"{CLUSTER}/software"): {"base_image": {"version": "8"}, "components": {"A": {"version": "1"}}},
    ("GET", f"{CLUSTER}/software/compliance"): {"status": "COMPLIANT"},
    ("POST", f"{CLUSTER}/software/drafts"): "7",
    ("POST", f"{CLUSTER}/software/drafts/7?action=validate&vmw-task=true"): "task-1",
    ("POST", f"{CLUSTER}/software/drafts/7?action=commit&vmw-task=true"): "task-1",
    ("GET", "/api/cis/tasks/task-1"): {
        "status": "SUCCEEDED",
        "result": {"notifications": {"errors": [{"message": {"id": "a", "localized": "b"}}]}},
    },
}


@drawn
@given(data=st.data())
def test_reads_or_refuses_an_image_of_any_form(monkeypatch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    monkeypatch.setattr(rest, "_POLL_SECONDS", 0.001)
    requested = data.draw(st.sampled_from(sorted(IMAGE)))
    answering(monkeypatch, {**IMAGE, requested: data.draw(foreign.mangled(IMAGE[requested]))})
    desired = cluster_image.ImageSpec({"A": "2"}, task_timeout=0)
    try:
        with rest.opened(session(8, 0, 3)) as api:
            subject = cluster_image.ClusterImage(api, "c1", "gpu", desired)
            state = subject.read()
            subject.apply(cluster_image.plan_image(state, desired))
    except CollectionError as error:
        sentence(error)
    else:
        assert all(isinstance(one, str) for one in state["components"].values())


@pytest.mark.parametrize(
    ("value", "form", "wrong"),
    [
        ({"a": 1}, {"a": int}, ""),
        ({"a": True}, {"a": int}, "it.a is not a whole number"),
        ({"a": "1"}, {"a": int}, "it.a is not a whole number"),
        ({}, {"a": int}, "it.a is not a whole number"),
        ({}, {"a?": int}, ""),
        ({"a": None}, {"a?": int}, ""),
        ({"a": "x"}, {"a?": int}, "it.a is not a whole number"),
        ([{"a": 1}, []], [{"a": int}], "it[1] is not an object"),
        ({"a": {}}, [dict], "it is not a list"),
        ({"x": {"v": "1"}, "y": {}}, {str: {"v": str}}, "it.y.v is not text"),
        (None, {"a": int}, "it is not an object"),
        (None, object, ""),
    ],
)
def test_names_the_defect_of_an_answer(value: Any, form: Any, wrong: str) -> None:
    assert misfit(value, form) == wrong


@pytest.mark.parametrize("piece", ["[", "9", "a.", "x ", "ssh: "])
def test_finds_the_cause_in_any_output_in_time(piece: str) -> None:
    """A rank may fill the log with one line; its last 64 KiB are searched."""
    began = time.process_time()
    job_end.cause_of(piece * (65536 // len(piece)), 1, ["n1"])
    assert time.process_time() - began < 5


PARSING = {
    *("loads", "load", "fromstring", "Deserialize", "strptime", "fromisoformat", "splitlines"),
    *("findall", "finditer", "search", "match", "fullmatch"),
}


def parses(path: Path) -> bool:
    """Return whether a file calls what takes texts apart."""
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return any(isinstance(one, ast.Attribute) and one.attr in PARSING for one in calls)


@cache
def parsing_files() -> set[str]:
    """The files of plugins that take texts apart, as the table names them."""
    plugins = ROOT / "plugins"
    found = [path for path in plugins.rglob("*.py") if parses(path)]
    return {path.relative_to(plugins).as_posix().removeprefix("module_utils/") for path in found}


def test_every_file_that_parses_text_is_tested() -> None:
    there, tried = parsing_files(), {one.file for one in READERS}
    untried = sorted(there - tried - set(ELSEWHERE))
    assert [f"add {file} to READERS or ELSEWHERE beside this file" for file in untried] == []
    assert sorted(set(ELSEWHERE) - there) == []
    assert sorted(set(ELSEWHERE) & tried) == []


def test_each_reference_names_a_test_that_covers_it() -> None:
    named = set(ELSEWHERE.values()) - {USER, OURS}
    assert [where for where in named if not (ROOT / where).exists()] == []


def test_mangles_an_answer_in_every_listed_way() -> None:
    good = {"a": [1, {"b": "c"}]}
    assert list(foreign.parts(good)) == [(), ("a",), ("a", 0), ("a", 1), ("a", 1, "b")]
    assert foreign.put(good, ("a", 1, "b"), None) == {"a": [1, {"b": None}]}
    assert foreign.put(good, ("a", 0), None, away=True) == {"a": [{"b": "c"}]}
    assert json.loads(foreign.dumped(good)) == good == {"a": [1, {"b": "c"}]}
