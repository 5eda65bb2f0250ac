"""The Slurm of the simulated site: it has the job, and windows reserve the nodes of the job in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .job import Job
from .site import Site, Violation

if TYPE_CHECKING:
    from .trial_calls import TrialCalls

STATES = {"running": "RUNNING", "finished": "COMPLETED", "died": "FAILED", "stopped": "CANCELLED"}
SHOWN = "   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0"


def place_of(job: Job) -> dict[str, Any]:
    """Return the place of a job in Slurm, in which each node has the name of its worker."""
    nodes = sorted(set(job.ranks.values()))
    return {"job": "7", "login": nodes[0], "names": {one: one for one in nodes}, "nodes": nodes, "restarts": 0}


def answer(calls: TrialCalls, words: Sequence[str]) -> dict[str, Any]:
    """Return what a command of Slurm answers on a node."""
    site, job = calls.site, calls.job
    nodes = sorted(set(job.ranks.values())) if job else []
    if words[0] == "squeue":
        state = STATES[job.state] if job else "PENDING"
        return {"stdout": f"7|{state}|None|anna|{nodes[0] if nodes else ''}|{','.join(nodes)}\n"}
    if words[0] == "sinfo":
        return {"stdout": "".join(f"{node}|{node}|{node}|allocated|none\n" for node in nodes)}
    if words[1] == "create":
        return dict(calls.effect("reserve", lambda: _create(site, words[3].partition("=")[2])))
    if words[1] == "delete":
        return dict(calls.effect("end the reservation", lambda: _delete(calls, words[2].partition("=")[2])))
    if words[2] == "job":
        return {"stdout": SHOWN}
    is_there = words[-1] in site.reserved
    return {"stdout": f"ReservationName={words[-1]} "} if is_there else _failed(f"Reservation {words[-1]} not found")


def _create(site: Site, name: str) -> dict[str, Any]:
    if name in site.reserved:
        raise Violation(f"the reservation {name} is created again")
    site.reserved.add(name)
    return {}


def _delete(calls: TrialCalls, name: str) -> dict[str, Any]:
    if calls.lost_releases:
        calls.lost_releases -= 1
        return _failed("Unable to contact slurm controller (connect failure)")
    calls.site.reserved.discard(name)
    return {}


def _failed(message: str) -> dict[str, Any]:
    return {"failed": True, "msg": message}
