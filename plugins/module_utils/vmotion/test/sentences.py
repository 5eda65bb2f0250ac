# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What a person is told of a vMotion test: its steps, why it cannot be done, and how it ended; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.findings import WARN
from ..checks import move_lines
from .observed import Observed

STEPS = {
    "hold": "takes or renews the cluster's lock",
    "job": "looks at the job on its launcher",
    "cluster": "reads the cluster",
    "plan": "plans the moves",
    "watch": "watches the records of the job",
    "override": "keeps DRS from moving the workers",
    "warm": "waits until the job is warm",
    "look": "reads the connections of the ranks",
    "counters": "reads the RDMA counters of the hosts",
    "measure": "measures the job before the first move",
    "canary": "asks vCenter whether a worker has ever moved",
    "canary_plan": "plans the move of a worker without a rank, which goes first",
    "managers": "reads the vGPU managers of the hosts",
    "guests": "checks the timers, licences, checkpoints and drivers of the nodes",
    "preflight": "asks Kubernetes what would end the job during the move",
    "advance": "waits until every rank has made further steps",
    "others": "asks vCenter for moves and power events that others caused",
    "judge": "judges the job",
    "over": "ends the test",
    "restore": "gives DRS its settings of the workers back",
    "outlast": "waits until every rank has made further steps after the moves of others",
    "finish": "asks the job to end with its epoch",
    "await": "waits for the end of the job",
    "checksums": "reads the checksums of the parameters",
    "unwatch": "ends the watch of the records",
    "free": "frees the cluster's lock",
    "stop": "stops the job that was started for the test",
    "hosts": "reads what is installed on the hosts",
    "keep": "writes the evidence",
}

LOOKED_UP = {
    "its end": "the server has ended the move",
    "under way": "the move is under way: it is followed",
    "nothing": "the server knows of no such move: it begins now",
}


def doing(step: str, seen: Observed) -> str:
    """The step in words."""
    if step == "begin":
        return ", with ".join(
            [f"prepares the move {move_lines.line(seen.left[0])}", *_inside(seen, seen.left[0]["worker"])]
        )
    if step in ("move", "look_up"):
        move = move_lines.line((seen.pending or {})["move"])
        return f"moves {move}" if step == "move" else f"looks up what became of the move {move}"
    return STEPS.get(step, "")


def told(entry: str, what: Mapping[str, Any], seen: Observed) -> list[str]:
    """What is worth reading of an entry that was just written."""
    if entry == "canary" and not what["ever"] and not what["worker"]:
        return [
            f"no worker of cluster {seen.cluster} has ever moved, and a rank runs on each: one of these moves first"
        ]
    tell = _TOLD.get(entry)
    return tell(what) if tell else []


def _moved(what: Mapping[str, Any]) -> list[str]:
    move = what["move"]
    return [] if move["ok"] else [str(move.get("said") or "the worker did not move")]


def _warm(what: Mapping[str, Any]) -> list[str]:
    return [f"{_ranks(pod['ranks'])} in pod {name} on {pod['worker']}" for name, pod in _pods(what)]


def _preflight(what: Mapping[str, Any]) -> list[str]:
    """What is more than a note; what stops is said by the move that is not made."""
    return [str(one["text"]) for one in what["findings"] if one["severity"] == WARN]


_TOLD: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "plan": lambda what: [move_lines.line(move) for move in what["moves"]],
    "warm": _warm,
    "preflight": _preflight,
    "look_up": lambda what: [LOOKED_UP[what["found"]]],
    "failed": lambda what: [str(what["said"])],
    "lost": lambda what: [str(what["said"])],
    "move": _moved,
}


def _inside(seen: Observed, worker: str) -> list[str]:
    """The pods of the job on a worker, with their ranks."""
    pods = _pods(seen.warm or {})
    return [f"{_ranks(pod['ranks'])} in pod {name}" for name, pod in pods if pod["worker"] == worker]


def _pods(warm: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The pods of a job on Kubernetes in the order of their ranks; none of another job."""
    return sorted((warm.get("pods") or {}).items(), key=lambda pod: list(pod[1]["ranks"]))


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'' if len(ranks) == 1 else 's'} {', '.join(map(str, ranks))}"


def not_applicable(cluster: str, planned: Mapping[str, Any]) -> str:
    """Why a plan leaves nothing to test; empty where it does not."""
    tied = planned["not_applicable"]
    if planned["moves"] and not tied:
        return ""
    why = f"these workers are tied to their hosts by devices: {', '.join(tied)}" if tied else "no worker runs"
    return (
        f"Cluster {cluster}: a vMotion test is not applicable: {why}; name those that can move by vmotion_test_workers."
    )


def not_running(wanted: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    """A job that cannot be tested."""
    why = f": {job['why']}" if job.get("why") else ""
    there = wanted.get("kubernetes") or {}
    where = f"MPIJob {there['name']}: it" if there else f"{wanted['launcher']}: the job in {wanted['run_dir']}"
    return f"{where} does not run, it is {job['state']}{why}; start it, then test."


def not_borne(cluster: str, stops: Sequence[Mapping[str, Any]]) -> str:
    """What in the nodes stops a move."""
    return f"Cluster {cluster}: {' '.join(one['text'] for one in stops)} Mend it, or accept it by vmotion_test_accept."


def outcome(seen: Observed, folder: str) -> str:
    """Why the test failed, in one text; empty where it passed."""
    told = [str(one["said"]) for one in seen.failures]
    if seen.judged:
        told += [one for one in (_availability(seen), _failing(seen, folder)) if one]
    left = seen.is_over and seen.tried & {"restore", "unwatch", "free"}
    if left or not seen.is_over:
        told.append(f"Run the playbook again with vmotion_test_folder={folder}: the test goes on where it stopped.")
    return " ".join(told)


def passed(folder: str) -> str:
    """The sentence on a test that passed."""
    return f"Continuous, and all moved; what was observed lies in {folder}."


def _availability(seen: Observed) -> str:
    before, after = (((one or {}).get("ha") or {}).get("enabled") for one in (seen.cluster_before, seen.cluster_after))
    return "" if before == after else f"Cluster {seen.cluster}: HA was switched during the test; set it back."


def _failing(seen: Observed, folder: str) -> str:
    judged = seen.judged or {}
    if judged["verdict"] == "continuous" and judged["moved"] == "all" and not seen.stopped:
        return ""
    places = move_lines.at_last(seen.at, seen.every_move)
    stays = ", ".join(f"{worker} on {host}" for worker, host in places.items())
    return (
        f"Cluster {seen.cluster}: the job is {judged['verdict']} and {judged['moved']} of the moves took place"
        f"{': ' + seen.stopped if seen.stopped else ''}; the workers stay where they are: {stays}; what was observed "
        f"lies in {folder}."
    )
