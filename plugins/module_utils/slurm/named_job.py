"""A job in Slurm, whoever submitted it: its nodes among the workers, and its state with that of its nodes; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..core.findings import STOP, Finding, as_dicts
from ..core.names import is_user, short_name
from ..durable.calls import ModuleFailed, Result, required
from ..errors import NotFound, Refused
from ..guests.slurm_timers import RULE
from ..training.runs.any_job import INFO, Ask, Findings, JobOnNodes
from . import job_states
from .commands import run

# Columns without free text: users choose the names and comments of jobs.
COLUMNS, OF_NODES = "%i|%T|%r|%u|%B|%N", "%N|%n|%o|%T|%E"
# A name or comment with a line break could only be in lines before these.
_STARTS = re.compile(r"^   Requeue=[01] Restarts=([0-9]{1,9}) .*ExitCode=([0-9]{1,9}):[0-9]+$", re.MULTILINE)
_FLAGS = "*~#!%$@^-"
DOWN, SILENT = "down", "*"
ENDED, FAILED = "COMPLETED", "FAILED"


class SlurmNode(NamedTuple):
    """A node of a job, with its state and the reason of that in Slurm."""

    name: str
    host: str
    address: str
    state: str
    reason: str

    @property
    def is_down(self) -> bool:
        """Return whether Slurm ends the jobs of the node."""
        return self.state.rstrip(_FLAGS) == DOWN


@dataclass(frozen=True)
class ReadJob:
    """A job as Slurm reports it; ``restarts`` counts the starts after the first one."""

    number: str
    state: str
    reason: str
    user: str
    launcher: str
    nodes: tuple[SlurmNode, ...] = ()
    restarts: int = 0
    exit: str = ""

    @property
    def down(self) -> str:
        """Return the nodes that Slurm marked DOWN, with the reasons, in words; empty without one."""
        return ", ".join(f"{node.name} DOWN ({node.reason})" for node in self.nodes if node.is_down)


def read_job(ask: Ask, number: str) -> ReadJob | None:
    """Return a job with its nodes; None if Slurm does not have it, or no longer."""
    if not job_states.NUMBER.fullmatch(number):
        raise Refused(f"the job {number!r} in Slurm", "find it", "this is not a number", "use one that squeue shows")
    listed = run(ask, "squeue", "--array", "--noheader", "--states=all", f"--jobs={number}", f"--format={COLUMNS}")
    if "Invalid job id" in str(listed.get("msg") or ""):
        return None
    rows = [row for row in _rows(required(listed)["stdout"], COLUMNS) if number in (row[0], row[0].partition("_")[0])]
    if not rows:
        return None
    own, state, reason, user, launcher, names = _task(number, rows)
    job = ReadJob(own, state, reason, user, launcher)
    starts = _STARTS.findall(str(run(ask, "scontrol", "show", "job", own).get("stdout") or ""))
    job = replace(job, restarts=int(starts[-1][0]), exit=starts[-1][1]) if starts else job
    return replace(job, nodes=tuple(read_nodes(ask, names)))


def _task(number: str, rows: Sequence[list[str]]) -> list[str]:
    """Return the row of a job; that of the only running task if the number is that of a job array."""
    running = [row for row in rows if row[1] == "RUNNING"]
    if len(running) > 1:
        cause = f"it is a job array whose tasks {', '.join(row[0] for row in running)} run"
        raise Refused(f"the job {number} in Slurm", "find it", cause, "name one of them")
    return (running or rows)[0]


def read_nodes(ask: Ask, names: str) -> list[SlurmNode]:
    """Return the nodes of a list such as ``n[1-4]``, each once."""
    if not names.strip("()"):
        return []
    listed = required(run(ask, "sinfo", "--noheader", "--Node", f"--nodes={names}", f"--format={OF_NODES}"))["stdout"]
    return list(dict.fromkeys(SlurmNode(*row) for row in _rows(listed, OF_NODES)))


def _rows(output: str, columns: str) -> Iterable[list[str]]:
    most = columns.count("|")
    rows = (line.strip().split("|", most) for line in output.splitlines())
    return (row for row in rows if len(row) == most + 1)


def located(job: ReadJob | None, number: str, hosts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the place of a running job on workers; ``hosts`` has the names and addresses of each by its own name."""
    name = f"job {number} in Slurm"
    if job is None:
        raise NotFound(name, "find it", "Slurm does not have it", "name a job that squeue shows as RUNNING")
    if job.state != "RUNNING" or not job.nodes:
        cause = f"it is {job.state} ({job.reason})"
        raise Refused(name, "find its workers", cause, "wait until squeue shows it as RUNNING")
    if not is_user(job.user):
        raise Refused(name, "read it as its user", f"Slurm names the user {job.user!r}", "check this account")
    workers = {node: _worker_of(node, hosts) for node in job.nodes}
    unknown = [f"{node.name} ({node.address})" for node, worker in workers.items() if not worker]
    if unknown:
        cause = f"no host of the inventory has the name or the address of {', '.join(unknown)}"
        remedy = "add them to the group workers, with their names in Slurm as training_slurm.node if these differ"
        raise Refused(name, "find its workers", cause, remedy)
    names = {key: worker for node, worker in workers.items() for key in (node.name, short_name(node.host))}
    return {
        "launcher": names.get(job.launcher) or next(iter(workers.values())),
        "user": job.user,
        "nodes": list(dict.fromkeys(workers.values())),
        "slurm": {
            "job": job.number,
            "names": names,
            "restarts": job.restarts,
            "nodes": [node.name for node in job.nodes],
        },
    }


def _worker_of(node: SlurmNode, hosts: Mapping[str, Sequence[str]]) -> str:
    """Return the worker that has the name of a node, or else its address; empty if none or several have it."""
    for requested in ({short_name(node.name), short_name(node.host)}, {short_name(node.address)}):
        found = [name for name, known in hosts.items() if requested & {short_name(each) for each in known if each}]
        if found:
            return found[0] if len(found) == 1 else ""
    return ""


class JobInSlurm(JobOnNodes):
    """A job that Slurm runs, whose ranks write step records; ``place`` is that of ``located``."""

    def __init__(self, on_launcher: Ask, on_login: Ask, place: Mapping[str, Any], run_dir: str, records: str) -> None:
        self._number = str(place.get("job") or "")
        super().__init__(on_launcher, f"Slurm job {self._number}: it", run_dir, records)
        self._on_login, self._restarts = on_login, int(place.get("restarts") or 0)
        self.workers = place.get("names") or {}

    def look(self) -> Result:
        """Return the state of the job from its launcher and from Slurm, each of which may be unreachable."""
        looked = super().look()
        try:
            job = read_job(self._on_login, self._number)
        except ModuleFailed:
            return looked
        if "job" not in looked and (job is None or job.state in job_states.ALIVE):
            return looked
        return {**looked, "failed": False, "job": state_of(looked.get("job") or {}, job, self._number, self._restarts)}

    def checked(self, moved: Sequence[str], _stun_seconds: float, _accept: Sequence[str], /) -> Findings:
        """Return the nodes for which Slurm still waits, and a job that does not run.

        Slurm counts the silence of a node from its last answer to a ping, so that two stuns between two pings add up.
        """
        job = read_job(self._on_login, self._number)
        if job is None:
            return []
        found = [
            Finding(STOP, RULE, node.name, f"Slurm has it as {node.state} ({node.reason}): wait until it answers")
            for node in job.nodes
            if node.is_down or (SILENT in node.state and self.workers.get(node.name) in moved)
        ]
        if job.state != "RUNNING":
            text = f"it is {job.state} ({job.reason}): wait until squeue shows it as RUNNING"
            found.append(Finding(STOP, RULE, f"Slurm job {job.number}", text))
        return as_dicts(found)

    def stop(self) -> Result:
        """Cancel the job."""
        return required(run(self._on_login, "scancel", self._number))

    def _place(self) -> dict[str, str]:
        return {**super()._place(), "slurm_job": self._number}


def state_of(there: Mapping[str, object], job: ReadJob | None, number: str, restarts: int) -> dict[str, object]:
    """Return the state of a job from its launcher, and from Slurm, whose own way of ending it counts."""
    if job is None:
        forgot = f"Slurm no longer has job {number}"
        return {**there, "why": "; ".join(filter(None, (forgot, str(there.get("why") or ""))))}
    of_nodes = f"Slurm marked {job.down}, and job {number} is {job.state}" if job.down else ""
    if job.restarts > restarts or (of_nodes and job.state != ENDED):
        again = f"Slurm started job {number} again (Restarts={job.restarts})" if job.restarts > restarts else ""
        return {**there, "state": "died", "why": "; ".join(filter(None, (of_nodes, again))), "machine": True}
    if job.state in (ENDED, FAILED):
        code = int(job.exit or 0)
        ends = {"state": "finished"} if job.state == ENDED else {"state": "died", "why": _failed(there, job)}
        return {**there, **ends, "exit_code": code}
    queued = job_states.SlurmJob(number, "", job.state, job.reason, "", "", "")
    return job_states.combined(there, queued, "the output of the job", f"it is {job.state} ({job.reason}) in Slurm")


def _failed(there: Mapping[str, object], job: ReadJob) -> str:
    cause = str(there.get("why") or "") if there.get("state") == "died" else ""
    return cause or f"Slurm job {job.number} failed with exit code {job.exit or 'unknown'}"


def place_on(ask: Ask, number: str, records: str) -> str:
    """Return the folder of the records: the given one, or that in the environment of the job's processes."""
    given = {"records": records} if records else {}
    looked = required(ask(INFO, {"gather": ["job"], "run_dir": "/", "slurm_job": number, **given}))["job"]
    folder = records or str(looked.get("records") or "")
    if not folder:
        cause = f"no process of it has DML_RECORDS in its environment ({looked.get('why') or looked['state']})"
        raise Refused(f"job {number} in Slurm", "find its step records", cause, "name their folder as records")
    return folder
