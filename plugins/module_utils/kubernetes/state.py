# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The state of a job on Kubernetes in the words of the other backend, and what makes its pods one and the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..training.mpi_output import lines_of
from .causes import ended_launchers, silences, why_deleted, why_died, why_impossible, why_waiting
from .parts import conditions, is_true, part, seconds
from .seen import LAUNCHER, WORKER, Pod, Seen

ABSENT, WAITING, RUNNING, FINISHED, DIED, STOPPED = "absent", "waiting", "running", "finished", "died", "stopped"
SHOWN_LINES = 10
# What makes a pod one and the same; each but the first in the words of a sentence.
IDENTITY = {"uid": "", "node": "its node", "restarts": "its restarts", "started": "the start of its container"}


def state_of(seen: Seen) -> dict[str, Any]:
    """The job, as the module for jobs of mpirun tells it: its state, its launcher, why it waits or died."""
    if seen.job is None:
        why = why_impossible(seen)
        return {"state": ABSENT, **({"why": why} if why else {})}
    word = _word(seen)
    told: dict[str, Any] = {
        "state": word,
        "launcher": launcher_of(seen),
        "job": str(part(seen.job, "metadata").get("uid") or "") or None,
        "mpirun_command": seen.command,
        "nodes_of_ranks": seen.ranks,
        "started": _when(seen, "startTime") or seen.made,
        "pods": {pod.name: _told(seen, pod) for pod in (*seen.of(LAUNCHER), *seen.of(WORKER))},
        "silences": silences(seen),
    }
    if word in (WAITING, STOPPED):
        told["why"] = why_waiting(seen)
    if word in (FINISHED, DIED, STOPPED):
        told.update(ended=_when(seen, "completionTime"), exit_code=_exit_code(seen))
    if word == DIED:
        last = [str(line) for line in lines_of(seen.log)[-SHOWN_LINES:]] if seen.log else []
        told.update(why=why_died(seen), last_lines=last)
    return told


def launcher_of(seen: Seen) -> dict[str, Any] | None:
    """The process that launches, by what stays the same while it lives: its pod, that pod's start, its system."""
    running = [pod for pod in seen.of(LAUNCHER) if pod.started is not None]
    if not running:
        return None
    pod = max(running, key=lambda one: one.started or 0.0)
    start = f"{pod.started:.0f}, {pod.restarts} restarts"
    return {"host": pod.name, "pid": pod.uid, "start": start, "boot_id": seen.boot_ids.get(pod.node or "")}


def identity(pod: Pod) -> dict[str, Any]:
    """What makes a pod one and the same, and the place of its ranks."""
    return {
        "uid": pod.uid,
        "node": pod.node,
        "restarts": pod.restarts,
        "started": pod.started,
        "role": pod.role,
        "index": pod.index,
        "is_deleted": pod.is_deleted,
    }


def _told(seen: Seen, pod: Pod) -> dict[str, Any]:
    why = why_deleted(seen, pod.name)
    return {**identity(pod), **({"why": why} if why else {})}


def workers_of(seen: Seen, kubectl: Sequence[str], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The pods of the workers, each by its node's name or the one in ``names``, and how to run something in it."""
    inside = ["-c", WORKER, "--", "sh", "-c"]
    return [
        {"name": names.get(pod.node, pod.node), "reach": [*kubectl, "exec", pod.name, *inside]}
        for pod in seen.of(WORKER)
        if pod.node
    ]


def ranks_of_pods(
    hosts: Mapping[str, Sequence[int]], pods: Mapping[str, Mapping[str, Any]], names: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """By pod its ``worker`` and its ``ranks``; a rank tells the host name that it sees, by ``hosts``.

    That is the name of its pod, or of its node where the pod has the network of the node. A rank that names neither is
    in no pod that Kubernetes tells of. ``names`` are those of the workers by node.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, pod in pods.items():
        node = str(pod.get("node") or "")
        ranks = hosts.get(name) or hosts.get(node.partition(".")[0]) if pod.get("role") == WORKER else None
        if ranks:
            found[name] = {"worker": str(names.get(node, node)), "ranks": list(ranks)}
    return found


def changes(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]], has_finished: bool = False
) -> Iterator[str]:
    """Each pod that is not the same one after as it was before; any such change breaks a job.

    Of a job that has finished the operator deletes the pods.
    """
    for name, old in before.items():
        new = after.get(name)
        why = f"; {new['why']}" if new and new.get("why") else ""
        if new is None:
            if not has_finished:
                yield f"pod {name} is gone"
        elif old["uid"] != new["uid"]:
            yield f"pod {name} was recreated: {_short(old['uid'])} became {_short(new['uid'])}{why}"
        else:
            told = [
                f"{words} {old.get(key)} became {new.get(key)}"
                for key, words in IDENTITY.items()
                if words and None not in (old.get(key), new.get(key)) and old[key] != new[key]
            ]
            if told:
                yield f"pod {name}: {', '.join(told)}"
            elif new.get("is_deleted") and not old.get("is_deleted") and (why or not has_finished):
                yield f"pod {name} is marked for deletion, which is not taken back{why}"
    yield from (f"pod {name} is new" for name in after if name not in before)


def _short(uid: object) -> str:
    return str(uid)[:8]


def _word(seen: Seen) -> str:
    found = conditions(seen.job)
    if is_true(found, "Succeeded"):
        return FINISHED
    if is_true(found, "Failed"):
        return DIED
    if is_true(found, "Suspended"):
        # A job in a queue has not begun; one that somebody suspended lost its pods.
        return WAITING if seen.queue else STOPPED
    # The operator says Running late, and keeps saying so when the launcher is tried again.
    is_launched = any(pod.phase == "Running" and pod.started is not None for pod in seen.of(LAUNCHER))
    return RUNNING if is_launched or is_true(found, "Running") else WAITING


def _when(seen: Seen, key: str) -> float | None:
    return seconds(part(seen.job, "status").get(key))


def _exit_code(seen: Seen) -> int | None:
    launchers = ended_launchers(seen)
    if launchers:
        return launchers[-1].exit_code
    return 0 if is_true(conditions(seen.job), "Succeeded") else None
