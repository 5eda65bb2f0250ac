"""The training jobs that run on nodes, found by their processes, and the sentences on those that a change would stop.

An answer is the result of training_info on a worker. It has no ``jobs`` if the worker could not be read.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any, Mapping, Sequence, Tuple, TypedDict

from ...core.names import printable
from ...durable.calls import ReachedNode
from ...errors import Refused

MOST_OF_A_NAME = 200
Answers = Mapping[str, Mapping[str, Any]]
REMEDIES = {
    "wait": ", with -e training_wait=SECONDS or the playbook dml.vsphere.stop",
    "under_training": ", or change the hosts around it with under_training=true",
    "interrupt": ", or run again with interrupt_training=true",
}


class NodeJob(TypedDict):
    """A job whose processes run on a node; without a record, ``step`` is None."""

    run_dir: str
    run_id: str
    user: str
    asked_by: str
    started: float
    step: int | None
    launched_here: bool


class Reached(TypedDict, total=False):
    """How the controller reaches a node."""

    reach: Sequence[str]


class FoundRun(TypedDict):
    """A run on its nodes; its ``launcher`` is empty if no node has launched it."""

    name: str
    run_dir: str
    run_id: str
    user: str
    asked_by: str
    started: float
    nodes: list[str]
    launcher: str
    step: int | None


class OtherRun(TypedDict):
    """A run in words, and the way to its records."""

    title: str
    nodes: list[str]
    launcher: str
    user: str
    run_dir: str
    watched: list[ReachedNode]


Part = Tuple[str, NodeJob]
Nodes = Mapping[str, Reached]


def name_of(run_dir: str) -> str:
    """Return the name of a run from its directory, with printable characters only."""
    return printable(posixpath.basename(posixpath.normpath(run_dir)))[:MOST_OF_A_NAME]


def selected(jobs: Iterable[Mapping[str, Any]], name: str, ignored: str) -> list[dict[str, object]]:
    """Return the jobs with their names: those of a name, without those that a pattern matches from the beginning."""
    try:
        pattern = re.compile(ignored) if ignored else None
    except re.error as error:
        raise Refused("the node", "find its training jobs", f"ignored is not a regular expression: {error}") from error
    found = [{**job, "name": name_of(str(job["run_dir"])), "asked_by": printable(str(job["asked_by"]))} for job in jobs]
    named = [job for job in found if not name or job["name"] == name]
    return [job for job in named if pattern is None or not pattern.match(job["name"])]


def title(job: Mapping[str, Any]) -> str:
    """Return the job in words: its name, requester, start and step."""
    step = "" if job.get("step") is None else f" (step {job['step']})"
    return f"{name_of(str(job['run_dir']))} of {job['asked_by'] or job['user']} since {moment(job['started'])}{step}"


def moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def second(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def running(answers: Answers, nodes: Nodes | None = None) -> list[FoundRun]:
    """Return the runs with their nodes and launchers; a node that did not answer has no ``jobs``.

    Only the launcher of a run is believed. Nodes that the inventory reaches in the same way are one machine: ``nodes``
    has their ``reach``. Users of different nodes may choose the same name, and so the same directory.
    """
    found: dict[str, list[Part]] = {}
    for node, answer in answers.items():
        for job in answer.get("jobs", []):
            found.setdefault(str(job["run_dir"]), []).append((node, job))
    return [_run(parts, nodes or {}) for _run_dir, each in sorted(found.items()) for parts in _launches(each)]


def _launches(parts: Sequence[Part]) -> list[list[Part]]:
    """Return the jobs of one directory by the runs of their launchers; the others belong to one more run."""
    launched = _firsts([part for part in parts if part[1].get("launched_here")])
    ids = list(dict.fromkeys(str(job["run_id"]) for job in launched.values()))
    if len(ids) < 2:
        return [list(parts)]
    found: dict[str, list[Part]] = {run_id: [] for run_id in (*ids, "")}
    for node, job in parts:
        found[job["run_id"] if job["run_id"] in ids else ""].append((node, job))
    return [each for each in found.values() if each]


def _firsts(parts: Iterable[Part]) -> dict[str, NodeJob]:
    """Return the job of each node that is believed.

    Processes of other users may have the run directory in their environment; they do not name the requester of a run.
    """
    firsts: dict[str, NodeJob] = {}
    for node, job in sorted(parts, key=lambda part: (not part[1]["asked_by"], float(part[1]["started"]))):
        firsts.setdefault(node, job)
    return firsts


def is_by(user: str, person: str) -> bool:
    """Return whether a user, such as ``anna`` or ``anna@desk``, is this person."""
    return user in (person, person.partition("@")[0])


def records_of(job: Mapping[str, Any]) -> str:
    """Return the folder to which the ranks of a job write their records, by which its processes are known."""
    return str(job.get("records") or job.get("run_dir") or "")


def others(records: str, launcher: str, answers: Answers, nodes: Nodes, ignored: str = "") -> list[OtherRun]:
    """Return the runs other than the one with these records, each with its title and the way to its records.

    A run whose name matches ``ignored`` from its beginning is left out. ``nodes`` says how the controller reaches each.
    """
    # Another user may have a directory of the same name on other nodes.
    own = ("", launcher) if launcher in answers else ("", *answers)
    found, own_dir = running(answers, nodes), records and posixpath.normpath(records)
    runs = [run for run in found if posixpath.normpath(run["run_dir"]) != own_dir or run["launcher"] not in own]
    return [_other(run, nodes) for run in runs if not ignored or not re.match(ignored, run["name"])]


def _other(run: FoundRun, nodes: Nodes) -> OtherRun:
    return {
        "title": title(run),
        "nodes": run["nodes"],
        "launcher": run["launcher"],
        "user": run["user"],
        "run_dir": run["run_dir"],
        "watched": [{"name": name, "reach": _reach(nodes, name)} for name in run["nodes"]],
    }


def _reach(nodes: Nodes, name: str) -> list[str]:
    """Return how the controller reaches a node; empty if it is unknown."""
    node = nodes.get(name)
    return list(node.get("reach") or []) if node else []


def why_no_run(name: str, nodes: Answers) -> str:
    """Return why no run was found: the other runs on the nodes, and the nodes that did not answer."""
    named = f" with the name {name}" if name else ""
    dirs = sorted({str(job["run_dir"]) for answer in nodes.values() for job in answer.get("jobs", [])})
    runs = ", ".join(map(name_of, dirs))
    silent = [f"{node} ({short_error(answer)})" for node, answer in nodes.items() if "jobs" not in answer]
    reasons = [f"no worker that could be read runs a training job{named}"]
    reasons += [f"running jobs: {runs}"] if runs else []
    reasons += [f"unreadable workers: {', '.join(silent)}"] if silent else []
    return "; ".join(reasons)


def short_error(answer: Mapping[str, object]) -> str:
    """Return the first line of the message of a node that did not answer."""
    return printable(str(answer.get("msg") or "no answer").strip().partition("\n")[0])[:MOST_OF_A_NAME]


def _run(parts: Sequence[Part], nodes: Nodes) -> FoundRun:
    launchers = list(dict.fromkeys(node for node, job in parts if job.get("launched_here")))
    name = name_of(str(parts[0][1]["run_dir"]))
    if len(launchers) > 1 and len({tuple(_reach(nodes, node) or [node]) for node in launchers}) > 1:
        cause = f"{' and '.join(launchers)} both report that they launched it"
        remedy = "find out which of them lies, and leave that one out with --limit"
        raise Refused(f"the training run {name}", "find its launcher", cause, remedy)
    steps = [step for _node, job in parts if (step := job.get("step")) is not None]
    # The launcher is believed. Without one, all nodes must agree.
    firsts = _firsts((node, job) for node, job in parts if node in launchers or not launchers).values()
    return {
        "name": name,
        "run_dir": str(parts[0][1]["run_dir"]),
        "run_id": _agreed(job["run_id"] for job in firsts),
        "user": _agreed(job["user"] for job in firsts),
        "asked_by": _agreed(job["asked_by"] for job in firsts),
        "started": min(float(job["started"]) for job in firsts),
        "nodes": list(dict.fromkeys(node for node, _job in parts)),
        "launcher": next(iter(launchers), ""),
        "step": max(steps, default=None),
    }


def _agreed(words: Iterable[str]) -> str:
    """Return the word on which all agree; empty if they do not."""
    each = set(map(str, words))
    return next(iter(each)) if len(each) == 1 else ""


def busy(answers: Answers) -> dict[str, str]:
    """Return the titles of the jobs on each busy worker."""
    return {worker: titles({worker: answer}) for worker, answer in answers.items() if answer.get("jobs")}


def titles(answers: Answers) -> str:
    """Return the jobs in words; a job on several workers is named once."""
    jobs = [job for answer in answers.values() for job in answer.get("jobs") or []]
    return ", ".join({str(job["run_dir"]): title(job) for job in reversed(jobs)}.values())


def refusal(answers: Answers, remedies: Sequence[str]) -> str:
    """Return the sentence that names the busy workers, their jobs and the remedies; empty if no worker is busy."""
    workers = busy(answers)
    if not workers:
        return ""
    return (
        f"{', '.join(workers)}: the training job {titles(answers)} runs on this worker. Wait until it ends or stop it"
        f"{''.join(REMEDIES[remedy] for remedy in remedies)}."
    )


def unread(answers: Answers) -> list[str]:
    """Return a sentence about each worker that could not be read."""
    silent = [(worker, answer) for worker, answer in answers.items() if "jobs" not in answer]
    return [f"The training jobs of {worker} cannot be read: {short_error(answer)}" for worker, answer in silent]
