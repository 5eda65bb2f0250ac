# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The entries that the journal of a vMotion test gets of what a step returned; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Dict, List, Tuple

from ...core import findings
from ...core.vgpu_manager import is_manager
from ...kubernetes import state
from ...training.transport import connections as transport_seen
from ..checks import guests, move_events, move_lines
from . import sentences
from .calls import BEGUN_BEFORE_SECONDS
from .observed import Observed

Result = Mapping[str, Any]
Entries = List[Tuple[str, Dict[str, Any]]]
# So often a move is looked up, and asked for anew, whose call ended without an answer.
MOST_LOST = 3
VERDICT = ("verdict", "moved", "breaches", "unproven", "notes", "longest_gap_s")
# What is kept of a job that was read before.
LATER = ("state", "launcher", "why", "pods", "silences")


def entries(step: str, result: Result, seen: Observed, *, may_fail: bool = False, **known: Any) -> Entries:
    """The entries of one step; ``known`` are ``now`` and ``table``, the drivers that each vGPU manager runs."""
    if result.get("failed") and not may_fail:
        return _failed(step, str(result.get("msg") or "it failed without a word"))
    if step == "guests":
        return _guests(result, seen, **known)
    take = _TAKE.get(step)
    return take(result, seen) if take else [(step, {})]


def _failed(step: str, said: str) -> Entries:
    return [("failed", {"step": step, "said": said})]


def _hold(result: Result, _seen: Observed) -> Entries:
    return [("hold", {"run": result["state"]["run"]})]


def _job(result: Result, seen: Observed) -> Entries:
    """The job at first whole, later what can change; a job that does not run is not tested."""
    job = result["job"]
    if seen.job is None and job["state"] != "running":
        return _failed("job", sentences.not_running(seen.settings, job))
    told = job if seen.job is None else {key: job.get(key) for key in LATER}
    return [("job", {"job": told})]


def _cluster(result: Result, _seen: Observed) -> Entries:
    return [("cluster", {"cluster": result["cluster"]})]


def _plan(result: Result, seen: Observed) -> Entries:
    against = sentences.not_applicable(seen.cluster, result)
    if against:
        return _failed("plan", against)
    told = {key: result[key] for key in ("moves", "rdma", "profile", "slots")}
    return [("plan", {**told, "places": result["at"]})]


def _warm(result: Result, seen: Observed) -> Entries:
    """The ranks by worker; on Kubernetes a rank tells the name of its pod, and the worker is that of the pod's node."""
    told = {key: result[key] for key in ("ranks", "hosts", "step")}
    there = (seen.job or {}).get("pods")
    if there is None:
        return [("warm", told)]
    pods = state.ranks_of_pods(result["hosts"], there, seen.settings["kubernetes"].get("names") or {})
    hosts: dict[str, list[int]] = {}
    for pod in pods.values():
        hosts[pod["worker"]] = sorted([*hosts.get(pod["worker"], []), *pod["ranks"]])
    return [("warm", {**told, "hosts": hosts, "pods": pods})]


def _look(result: Result, _seen: Observed) -> Entries:
    return [("look", {"nodes": result["nodes"], "uses_rdma": transport_seen.uses_rdma(result["nodes"])})]


def _counters(result: Result, _seen: Observed) -> Entries:
    return [("counters", {"hosts": result["hosts"]})]


def _canary(result: Result, seen: Observed) -> Entries:
    """Name the worker that goes first: one on which no rank runs, if nothing has ever moved in this cluster.

    If some rank names a host that is no worker's name, it may run on any of them, and none counts as idle.
    """
    ever, wanted = sum(bool(one["ok"]) for one in result["moves"]), seen.settings["canary"]
    free = sorted(set(seen.at) - set(seen.ranks)) if set(seen.ranks) <= set(seen.at) else []
    idle = [wanted] if wanted != "auto" else free
    return [("canary", {"ever": ever, "worker": idle[0] if idle and not ever else ""})]


def _canary_plan(result: Result, seen: Observed) -> Entries:
    against = sentences.not_applicable(seen.cluster, result)
    return _failed("canary_plan", against) if against else [("canary_plan", {"move": result["moves"][0]})]


def _managers(result: Result, _seen: Observed) -> Entries:
    """Of each host the vGPU manager alone, by which drivers are judged."""
    hosts = []
    for host in result["hosts"]:
        running = (host.get("vibs") or {}).get("running") or []
        ours = [vib for vib in running if is_manager(vib["name"])]
        hosts.append({"host": host["host"], "vibs": {"running": ours}})
    return [("managers", {"hosts": hosts})]


def _guests(result: Result, seen: Observed, now: float, table: Mapping[str, Any]) -> Entries:
    """What was found in the nodes; where that stops the move, the move is not begun."""
    wanted = seen.settings
    minutes, lasts = float(wanted["checkpoint_minutes"]) if wanted["checkpoints"] else 0.0, float(wanted["duration"])
    fitting = (seen.managers or [], table)
    every = guests.findings(result["nodes"], wanted["stun_budget"], now, fitting, lasts=lasts, minutes=minutes)
    told: Entries = [("guests", {"findings": every, "accepted": list(wanted["accept"])})]
    stops = findings.stops(every, wanted["accept"])
    if stops:
        refused = move_lines.observed({"msg": sentences.not_borne(seen.cluster, stops)}, seen.left[0], seen.ranks)
        told.append(("move", {"move": refused}))
    return told


def _preflight(result: Result, seen: Observed) -> Entries:
    """What was found in Kubernetes; where that would end the job, the move is not begun."""
    accepted = list(seen.settings["accept"])
    told: Entries = [("preflight", {"findings": result["findings"], "accepted": accepted})]
    if result["stops"]:
        refused = move_lines.observed(
            {"msg": sentences.not_borne(seen.cluster, result["stops"])}, seen.left[0], seen.ranks
        )
        told.append(("move", {"move": refused}))
    return told


def _begin(result: Result, seen: Observed) -> Entries:
    planned = seen.left[0]
    return [("begin", {"move": planned, "place": result["places"][planned["worker"]]})]


def _move(result: Result, seen: Observed) -> Entries:
    """A move that ended or was refused; of one whose call failed in between nobody knows yet what became."""
    begun = seen.pending or {}
    # Where a worker is at its target although an earlier call had no answer, that one has moved it.
    may_have_moved = bool(begun.get("lost")) if not result.get("failed") else result.get("begun") is not False
    is_unknown = result.get("move") is None and may_have_moved
    move = move_lines.observed(result, begun["move"], seen.ranks)
    if not is_unknown:
        return [("move", {"move": move})]
    if len(begun.get("lost") or []) < MOST_LOST:
        return [("lost", {"said": move["said"]})]
    return [("move", {"move": {**move, "asked": {"at": begun["at"], "place": begun["place"]}}})]


def _look_up(result: Result, seen: Observed) -> Entries:
    """What became of a move whose end nobody saw: done, still under way, or never begun on the server."""
    begun = seen.pending or {}
    found = _of_ours(result, begun["move"], begun, seen)
    if not found:
        return [("look_up", {"found": "nothing"})]
    if found[-1]["completed"] is None:
        return [("look_up", {"found": "under way"})]
    return [("look_up", {"found": "its end"}), ("move", {"move": _seen_later(result, found[-1], begun, seen)})]


def _of_ours(result: Result, planned: Mapping[str, Any], asked: Mapping[str, Any], seen: Observed) -> list[Any]:
    """The moves among those of the server that can be the one that this test asked for."""
    known, since = {move.get("chain") for move in seen.moves}, asked["at"] - BEGUN_BEFORE_SECONDS
    return [
        one
        for one in result["moves"]
        if (one["worker"], one["target"]) == (planned["worker"], planned["target"])
        and one["chain"] not in known
        and one["started"] >= since
    ]


def _seen_later(result: Result, move: Mapping[str, Any], asked: Mapping[str, Any], seen: Observed) -> dict[str, Any]:
    worker = move["worker"]
    was_switched = any(one["worker"] == worker for one in result["power"])
    whole = _of_events(move, asked["place"], result["places"][worker], was_switched)
    return {**whole, "attached": True, "ranks": list(seen.ranks.get(worker, []))}


def _of_events(
    move: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any], was_switched: bool
) -> dict[str, Any]:
    """A move as events tell of it, with what was seen of its worker before it began and after its end."""
    vsphere = {
        **move["vsphere"],
        "power_cycled": was_switched or move_events.has_booted(before, after),
        "host": {"before": before["host"], "after": after["host"]},
        "gpus": {"before": before["gpus"], "after": after["gpus"]},
        "encryption": before["encryption"],
    }
    return {**move, "ok": bool(move["ok"]) and after["host"] == move["target"], "vsphere": vsphere}


def _advance(result: Result, _seen: Observed) -> Entries:
    return [("advance", {"ok": not result.get("failed"), "said": str(result.get("msg") or "")})]


def _outlast(result: Result, _seen: Observed) -> Entries:
    return [("outlast", {"ok": not result.get("failed"), "said": str(result.get("msg") or "")})]


def _others(result: Result, seen: Observed) -> Entries:
    """The moves of others; one of the test's own whose end nobody saw is none of them, and is told where it is."""
    told: Entries = []
    own = list[Any]()
    for place, planned, asked in _unseen(seen):
        ours = _of_ours(result, planned, asked, seen)
        own += ours
        if ours and ours[-1]["completed"] is not None:
            move = _seen_later(result, ours[-1], asked, seen)
            told.append(("move", {"move": move}) if place is None else ("found", {"place": place, "move": move}))
    moves = move_events.not_ours(result["moves"], [*seen.moves, *own], seen.ranks)
    return [*told, ("others", {"moves": moves, "power": result["power"]})]


def _unseen(seen: Observed) -> Iterator[tuple[int | None, Mapping[str, Any], Mapping[str, Any]]]:
    """The moves whose end nobody saw: the place among the moves, what was asked for, and when."""
    for place, move in enumerate(seen.moves):
        if move.get("asked"):
            yield place, move, move["asked"]
    if seen.pending:
        yield None, seen.pending["move"], seen.pending


def _judge(result: Result, _seen: Observed) -> Entries:
    return [("judge", {"verdict": {key: result[key] for key in VERDICT}})]


def _await(result: Result, _seen: Observed) -> Entries:
    return [("await", {"state": (result.get("job") or {}).get("state", "unknown")})]


def _checksums(result: Result, _seen: Observed) -> Entries:
    return [("checksums", {"checksums": transport_seen.checksums(result["nodes"])})]


def _hosts(result: Result, _seen: Observed) -> Entries:
    return [("hosts", {"hosts": result["hosts"]})]


_TAKE: dict[str, Callable[[Result, Observed], Entries]] = {
    "hold": _hold,
    "job": _job,
    "cluster": _cluster,
    "plan": _plan,
    "warm": _warm,
    "look": _look,
    "counters": _counters,
    "canary": _canary,
    "canary_plan": _canary_plan,
    "managers": _managers,
    "preflight": _preflight,
    "begin": _begin,
    "move": _move,
    "look_up": _look_up,
    "advance": _advance,
    "others": _others,
    "judge": _judge,
    "outlast": _outlast,
    "await": _await,
    "checksums": _checksums,
    "hosts": _hosts,
}
