# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The training jobs that run on nodes, found by their processes, and the runs to which they belong."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

from ...core.names import printable
from ...errors import Refused

RUN_DIR, RUN_ID, REQUESTED_BY = b"DML_RECORDS", b"DML_RUN_ID", b"DML_RUN_BY"
MOST_OF_A_NAME = 200


class JobProcess(NamedTuple):
    """One process of a job; ``began`` is its start in seconds since 1970, ``ticks`` the start in kernel ticks."""

    pid: int
    ticks: int
    began: float
    user: str
    run_dir: str
    run_id: str
    requested_by: str


def marks(environ: bytes) -> tuple[str, str, str] | None:
    """Return the run directory, the ID and the requester of a job from a process environment; None for others."""
    pairs = dict(pair.partition(b"=")[::2] for pair in environ.split(b"\0"))
    if not pairs.get(RUN_DIR):
        return None
    run_dir, run_id, by = (pairs.get(name, b"").decode("utf-8", "replace") for name in (RUN_DIR, RUN_ID, REQUESTED_BY))
    return run_dir, run_id, by


def jobs(processes: Iterable[JobProcess]) -> list[dict[str, Any]]:
    """Return the jobs of processes, sorted by name; a process of another user does not belong to a job."""
    found: dict[tuple[str, str, str], list[JobProcess]] = {}
    for process in processes:
        # Root's processes in pods and containers belong to the job.
        key = process.run_dir, process.run_id, "" if process.requested_by else process.user
        found.setdefault(key, []).append(process)
    return sorted((_job(each) for each in found.values()), key=lambda job: (job["name"], job["started"]))


def _job(processes: Sequence[JobProcess]) -> dict[str, Any]:
    first = min(processes, key=lambda process: (process.began, process.pid))
    return {
        "name": name_of(first.run_dir),
        "run_dir": first.run_dir,
        "run_id": first.run_id,
        "user": first.user,
        "asked_by": printable(first.requested_by)[:MOST_OF_A_NAME],
        "started": round(first.began, 2),
        "processes": [{"pid": process.pid, "start": process.ticks} for process in sorted(processes)],
    }


def name_of(run_dir: str) -> str:
    """Return the name of a run from its directory, with printable characters only."""
    return printable(posixpath.basename(posixpath.normpath(run_dir)))[:MOST_OF_A_NAME]


def last_step(end_of_file: bytes) -> int | None:
    """Return the step of the last record in the tail of a record file; None if it contains none."""
    for line in reversed(end_of_file.split(b"\n")[:-1]):
        try:
            step = json.loads(line)["step"]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if isinstance(step, int) and not isinstance(step, bool):
            return step
    return None


def title(job: Mapping[str, Any]) -> str:
    """Return the job in words: its name, requester, start and step."""
    step = "" if job.get("step") is None else f" (step {job['step']})"
    return f"{job['name']} of {job['asked_by'] or job['user']} since {moment(job['started'])}{step}"


def moment(seconds: float) -> str:
    """Return a time as text."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def second(seconds: float) -> str:
    """Return a time with its second as text."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def running(
    answers: Mapping[str, Mapping[str, Any]], nodes: Mapping[str, Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Return the runs with their nodes and launchers; a node that did not answer has no ``jobs``.

    A node can report any directory. The name of a run is that of its directory, and only its launcher is believed.
    Nodes that the inventory reaches in the same way are one machine: ``nodes`` has their ``reach``.
    """
    found: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for node, answer in answers.items():
        for job in answer.get("jobs", []):
            _require_own_name(node, job)
            found.setdefault(str(job["run_dir"]), []).append((node, job))
    return [_run(each, nodes or {}) for _run_dir, each in sorted(found.items())]


def others(
    run_dir: str, answers: Mapping[str, Mapping[str, Any]], nodes: Mapping[str, Mapping[str, Any]], ignored: str = ""
) -> list[dict[str, Any]]:
    """Return the runs in directories other than this one, each with its title and the way to its records.

    A run whose name matches ``ignored`` from its beginning is left out. ``nodes`` says how the controller reaches each.
    """
    runs = [run for run in running(answers, nodes) if run["run_dir"] != run_dir]
    return [_other(run, nodes) for run in runs if not ignored or not re.match(ignored, run["name"])]


def _other(run: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    where = {key: run[key] for key in ("nodes", "launcher", "user", "run_dir")}
    watched = [{"name": name, "reach": list(nodes.get(name, {}).get("reach") or [])} for name in run["nodes"]]
    return {"title": title(run), **where, "watched": watched}


def _require_own_name(node: str, job: Mapping[str, Any]) -> None:
    """Refuse a job under the name of another one."""
    if job["name"] != name_of(str(job["run_dir"])):
        cause = f"it reports the run {job['name']} in the directory {job['run_dir']}, which is that of another run"
        raise Refused(node, "read its training jobs", cause, f"check {node}, or leave it out with --limit '!{node}'")


def why_no_run(name: str, nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return why no run was found: the other runs on the nodes, and the nodes that did not answer."""
    named = f" with the name {name}" if name else ""
    dirs = sorted({str(job["run_dir"]) for answer in nodes.values() for job in answer.get("jobs", [])})
    runs = ", ".join(map(name_of, dirs))
    silent = [f"{node} ({short_error(answer)})" for node, answer in nodes.items() if "jobs" not in answer]
    reasons = [f"no worker that could be read runs a training job{named}"]
    reasons += [f"running jobs: {runs}"] if runs else []
    reasons += [f"unreadable workers: {', '.join(silent)}"] if silent else []
    return "; ".join(reasons)


def short_error(answer: Mapping[str, Any]) -> str:
    """Return the first line of the message of a node that did not answer."""
    return printable(str(answer.get("msg") or "no answer").strip().partition("\n")[0])[:MOST_OF_A_NAME]


def _run(parts: Sequence[tuple[str, Mapping[str, Any]]], nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    launchers = list(dict.fromkeys(node for node, job in parts if job.get("launched_here")))
    name = name_of(str(parts[0][1]["run_dir"]))
    if len(launchers) > 1 and len({tuple(nodes.get(node, {}).get("reach") or [node]) for node in launchers}) > 1:
        cause = f"{' and '.join(launchers)} both report that they launched it"
        remedy = "find out which of them lies, and leave that one out with --limit"
        raise Refused(f"the training run {name}", "find its launcher", cause, remedy)
    steps = [job["step"] for _node, job in parts if job.get("step") is not None]
    return {
        "name": name,
        "run_dir": str(parts[0][1]["run_dir"]),
        **_identity(parts, launchers),
        "nodes": list(dict.fromkeys(node for node, _job in parts)),
        "launcher": next(iter(launchers), ""),
        "step": max(steps, default=None),
    }


def _identity(parts: Sequence[tuple[str, Mapping[str, Any]]], launchers: Sequence[str]) -> dict[str, Any]:
    """Return who runs a job since when: what its launcher reports, or without one, what all nodes agree on."""
    firsts: dict[str, Mapping[str, Any]] = {}
    # Processes of other users may have the run directory in their environment; they do not name the requester of a run.
    for node, job in sorted(parts, key=lambda part: (not part[1]["asked_by"], float(part[1]["started"]))):
        if node in launchers or not launchers:
            firsts.setdefault(node, job)
    words = {key: {str(job[key]) for job in firsts.values()} for key in ("run_id", "user", "asked_by")}
    agreed = {key: next(iter(each)) if len(each) == 1 else "" for key, each in words.items()}
    return {**agreed, "started": min(float(job["started"]) for job in firsts.values())}
