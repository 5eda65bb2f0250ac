"""For any answer of a node, the reply has its declared form or is a failure, and its readers end with a sentence."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.core import replies
from plugins.module_utils.core.replies import Many, Text, admitted
from plugins.module_utils.errors import CollectionError
from plugins.module_utils.guests import gpu_health
from plugins.module_utils.jobs.running_job import required_to_run
from plugins.module_utils.training.ending.job_state import JobState
from plugins.module_utils.training.results import other_runs
from plugins.module_utils.training.results.known_runs import list_runs
from plugins.module_utils.training.running import busy
from plugins.module_utils.training.runs import job_search
from plugins.module_utils.training.runs.any_job import JobOnNodes
from plugins.module_utils.training.transport import connections
from plugins.module_utils.trials.checks import guest_checks
from plugins.module_utils.watch import hangs
from tests.unit.foreign_readers import DCGM, RAS, SEEN, SMI_XML, XID

INFO, ALL = replies.INFO, {"gather": ["job", "jobs", "printed"], "port": 1, "manifest": "/runs/a"}
LIES: list[Any] = [
    *(None, True, 7, -1, 1 << 80, float("nan"), float("inf"), "", "x" * 9999, "\x1b[2J\n\u202e{{ 1 }}", "\ud800"),
    *([], [[]], [None] * 20_000, {}, {"a": {}}, {"\x1b": 1}, {"\x1b": "a"}, dict.fromkeys(map(str, range(20_000)), 1)),
]
SECONDS = 1.0
OPTIONS = {"name": "", "backend": "mpi", "watched": [], "user": "", "started_by": ""}


def sample(form: Any) -> Any:
    """Return a value that has a form."""
    if isinstance(form, dict) and str in form:
        return {"a": sample(form[str])}
    if isinstance(form, dict):
        return {name.rstrip("?"): sample(each) for name, each in form.items()}
    if isinstance(form, (list, Many)):
        return [sample(form.form if isinstance(form, Many) else form[0])] * 2
    if isinstance(form, frozenset):
        return min(form)
    return "a" if isinstance(form, Text) or form is str else form(1)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to each field of a reply, and to the reply itself."""
    yield path
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in below:
        yield from places(each, (*path, key))


def with_lie(value: Any, path: tuple[Any, ...], lie: Any) -> Any:
    """Return a reply with another value in one field."""
    if not path:
        return lie
    copy: Any = value.copy()
    copy[path[0]] = with_lie(copy[path[0]], path[1:], lie)
    return copy


def honest(module: str) -> dict[str, Any]:
    return {**sample(replies.REPLIES[module].form), "changed": False}


def readers(reply: dict[str, Any]) -> list[Callable[[], Any]]:
    """Return what the collection does with the reply of a node that reports its jobs and the state of one."""
    answers = {"w1": reply, "w2": {"jobs": []}}
    nodes = {name: {"reach": ["ssh", name], "user": "train"} for name in answers}
    return [
        lambda: busy.others("/runs/other", "w1", answers, nodes),
        lambda: list_runs(answers, "/none"),
        lambda: job_search.only_job(OPTIONS, answers, nodes),
        lambda: busy.refusal(answers, ["wait"]),
        lambda: busy.unread(answers),
        lambda: required_to_run(JobOnNodes(lambda _module, _options: reply, "w1: the job", "/runs/a")),
    ]


def gpus(found: dict[str, Any]) -> Any:
    return gpu_health.all_findings({"w1": found}, 0.0, idle=True, gdr=""), gpu_health.versions(found)


RANK = {"rank": 0, "pid": 7, "host": "w1", "sockets": ["10.0.0.1"], "rdma_open": ["uverbs0"], "error": ""}
DEVICE = {"name": "mlx5_0", "driver": "vmw_pvrdma", "port": 1, "counters": {"port_xmit_data": 7}, "netdevs": ["ens1"]}
# The reports of the programs that run on nodes during a job, and their readers.
PRINTED: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "transport": (
        {"ranks": [RANK], "devices": [DEVICE], "checksums": {"summary0.json": "ab"}},
        lambda report: [
            connections.judge(report, report),
            connections.uses_rdma(report),
            connections.checksums(report),
        ],
    ),
    "guest": (
        {**SEEN, "sshd": "clientaliveinterval 0", "mca": {"a": 1}, "rdma": ["mlx5_0"]},
        lambda report: guest_checks.findings(report, 60.0, 1.0, lasts=1.0, minutes=30.0),
    ),
    "gpu": (
        {
            "smi": SMI_XML,
            "failure": None,
            "log": XID.splitlines(),
            "diagnostic": DCGM,
            "modules": ["nvidia"],
            "nccl": 21806,
            "pools": [1],
            "gpudirect": [1, None],
            "dma_buf": [0],
        },
        lambda report: gpus(replies.printed(report["w1"], replies.OF_GPUS)),
    ),
    "hang": ({"ras": RAS, "dumps": [{"rank": 0, "entries": [{"pg_name": "0", "state": "a"}]}]}, hangs.of_nodes),
    "stack": ({"ranks": {"0": {"host": "w1", "stack": 'File "a.py", line 1 in b'}}}, hangs.stack_sentences),
    "runs": (
        {"runs": [{"run_dir": "/a", "user": "a", "since": 1.0, "until": None}], "files": [["a.pt", 1.0]]},
        lambda report: [other_runs.sentences(report), other_runs.saved(report)],
    ),
}


@pytest.mark.parametrize(("name", "place"), [(name, at) for name in PRINTED for at in places(PRINTED[name][0])])
def test_readers_process_false_fields_in_time(name: str, place: tuple[Any, ...]) -> None:
    honest_one, read_it = PRINTED[name]
    for lie in LIES:
        began = time.process_time()
        report = with_lie(honest_one, place, lie)
        # A program that prints no object has printed nothing.
        read_it({"w1": report if isinstance(report, dict) else {"error": "nothing"}})
        assert time.process_time() - began < SECONDS


def require_form(value: Any, form: Any) -> None:
    """Fail unless a value has its form, is printable, and can be written as JSON."""
    assert replies.read(value, form) == value
    assert json.loads(json.dumps(value, allow_nan=False)) == value


@pytest.mark.parametrize("module", replies.REPLIES)
def test_accepts_an_honest_reply_unchanged(module: str) -> None:
    assert admitted("w1", module, ALL, partial(honest, module)) == honest(module)


@pytest.mark.parametrize(
    ("module", "place"), [(module, place) for module in replies.REPLIES for place in places(honest(module))]
)
def test_false_field_gives_a_declared_reply_or_failure(module: str, place: tuple[Any, ...]) -> None:
    for lie in LIES:
        began = time.process_time()
        report = with_lie(honest(module), place, lie)
        reply = admitted("w1", module, ALL, lambda report=report: report)
        assert all(each.replace("\n", "").replace("\t", "").isprintable() for each in texts(reply))
        if reply.get("failed"):
            assert set(reply) <= {"failed", "msg", "unreachable", "missing"} and isinstance(reply["msg"], str)
        else:
            require_form(reply, {**replies.OF_EACH, **replies.REPLIES[module].form})
        if module == INFO:
            read_all(reply)
        assert time.process_time() - began < SECONDS


def texts(value: Any) -> Iterator[str]:
    """Yield all texts and names in a reply."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for each in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from texts(each)


def read_all(reply: dict[str, Any]) -> None:
    for read in readers(reply):
        with contextlib.suppress(CollectionError):
            read()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(LIES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@settings(deadline=None)
@given(data=st.data())
def test_reads_replies_with_several_false_fields(data: st.DataObject) -> None:
    report: Any = honest(INFO)
    for place in data.draw(st.lists(st.sampled_from(list(places(report))[1:]), min_size=1, max_size=4)):
        lie = data.draw(VALUES)
        try:
            report = with_lie(report, place, lie)
        except (AttributeError, KeyError, IndexError, TypeError):  # an earlier lie took the field away
            continue
    reply = admitted("w1", INFO, ALL, lambda: report)
    read_all(reply)


def test_no_reply_contains_connection_data() -> None:
    """The way to a node, its address and its user come from the inventory; a reply has no such field."""
    reached = {"reach", "become_user", "become", "host", "address", "url", "ansible_facts", "invocation"}
    for module, reply in replies.REPLIES.items():
        found = {str(step) for place in places(sample(reply.form)) for step in place if len(place) <= 3}
        # The launcher of a job is shown and compared, never connected to.
        # These paths are of files on the node, and only that node gets them back.
        paths = {step for step in found if step.endswith(("dir", "path", "python", "file", "folder"))}
        assert paths <= {"run_dir", "path", "python"}, module
        assert found & reached <= ({"host"} if "job" in found else set()), module


def test_undeclared_module_raises_an_error() -> None:
    with pytest.raises(KeyError):
        admitted("w1", "ansible.builtin.unknown", {}, dict)


@pytest.mark.parametrize(
    ("error", "cause"), [(MemoryError(), "it needs more than"), (RecursionError(), "it is nested too deeply")]
)
def test_fails_if_a_reply_exceeds_the_limits(error: BaseException, cause: str) -> None:
    def raising() -> Any:
        raise error

    assert cause in admitted("w1", INFO, ALL, raising)["msg"]


def test_programs_run_every_module_with_a_declared_reply() -> None:
    root = Path(__file__).parents[5] / "plugins" / "module_utils"
    sources = "".join(path.read_text() for path in root.rglob("*.py") if path.parent.name in ("runs", "programs"))
    for module in replies.REPLIES:
        short = module.rpartition(".")[2]
        assert module in sources or short in sources, module


def test_a_reply_has_every_key_of_a_job() -> None:
    """Any other key of a node is lost. The keys of pods and of Slurm do not come from nodes."""
    of_others = {"pods", "silences", "blocked", "ending"}
    assert JobState.__annotations__.keys() - of_others <= {name.rstrip("?") for name in replies.JOB}
