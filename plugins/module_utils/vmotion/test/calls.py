# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The module that does each step of a vMotion test, and its options; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...kubernetes.job_spec import V2BETA1
from ...kubernetes.manifests import owned
from .observed import Observed

HERE, LAUNCHER, BACKGROUND = "here", "launcher", "background"
RULE = "vmotion-test"
WATCH_SECONDS = 604800
RESUME_SECONDS = 120.0
# A move that was begun shows in the server's events a little later than it was asked for here.
BEGUN_BEFORE_SECONDS = 5.0


@dataclass(frozen=True)
class Call:
    """A module with its options, and where it runs; ``may_fail`` where a failure is something to be observed."""

    module: str
    options: dict[str, Any]
    where: str = HERE
    may_fail: bool = False


def call(step: str, seen: Observed, folder: str) -> Call | None:
    """The call of a step; None for a step that needs no module."""
    make = _CALLS.get(step)
    return make(seen, folder) if make else None


def _hold(seen: Observed, _folder: str) -> Call:
    return Call("cluster_lock", {"cluster": seen.cluster})


def _free(seen: Observed, _folder: str) -> Call:
    return Call("cluster_lock", {"cluster": seen.cluster, "state": "free"})


def _job(seen: Observed, _folder: str) -> Call:
    return _look_at_job(seen, may_fail=False)


def _await(seen: Observed, _folder: str) -> Call:
    return _look_at_job(seen, may_fail=True)


def _look_at_job(seen: Observed, may_fail: bool) -> Call:
    """Both modules tell the job in the same words; a test that began without Kubernetes has no such setting."""
    there = seen.settings.get("kubernetes") or {}
    if there:
        return Call("mpijob_info", dict(there), HERE, may_fail)
    return Call("training_job_info", {"run_dir": seen.settings["run_dir"]}, LAUNCHER, may_fail)


def _stop(seen: Observed, _folder: str) -> Call:
    there = seen.settings.get("kubernetes") or {}
    if there:
        # Who reads a job takes this namespace where none is named; who deletes one takes none, and is refused.
        where = {
            "namespace": "default",
            **{key: there[key] for key in ("namespace", "kubeconfig", "context") if key in there},
        }
        made = owned(str(there["name"]), str(there.get("api", V2BETA1)))
        what = {"resource_definition": made, "state": "absent", "delete_options": {"propagationPolicy": "Foreground"}}
        return Call("kubernetes.core.k8s", {**what, **where, "wait": True})
    return Call("training_job", {"run_dir": seen.settings["run_dir"], "state": "stopped"}, LAUNCHER)


def _finish(seen: Observed, _folder: str) -> Call:
    options = {"path": f"{seen.settings['records']}/finish", "state": "touch", "mode": "0644"}
    return Call("ansible.builtin.file", options, LAUNCHER)


def _cluster(seen: Observed, _folder: str) -> Call:
    return Call("cluster_info", {"cluster": seen.cluster})


def _plan(seen: Observed, _folder: str) -> Call:
    return plan(seen.settings)


def plan(wanted: dict[str, Any]) -> Call:
    """The plan of all moves, for a test that has no journal yet too."""
    given = {key: wanted[key] for key in ("cluster", "return_home", "one_per_host")}
    return Call("vmotion_plan", {**given, **({"workers": wanted["workers"]} if wanted["workers"] else {})})


def _canary_plan(seen: Observed, _folder: str) -> Call:
    workers = [(seen.canary or {})["worker"]]
    given = {"cluster": seen.cluster, "one_per_host": seen.settings["one_per_host"]}
    return Call("vmotion_plan", {**given, "workers": workers})


def _watch(seen: Observed, folder: str) -> Call:
    files = {"records": f"{folder}/records.jsonl", "stop": f"{folder}/stop"}
    return Call("training_watch", {**_nodes(seen), **files, "timeout": WATCH_SECONDS}, BACKGROUND)


def _override(seen: Observed, _folder: str) -> Call:
    rule = {"cluster": seen.cluster, "name": RULE, "workers": sorted(seen.at), "one_per_host": False}
    return Call("worker_rules", {**rule, "drs_override": seen.settings["drs_override"]})


def _restore(seen: Observed, _folder: str) -> Call:
    return Call("worker_rules", {"cluster": seen.cluster, "name": RULE, "state": "absent"})


def _warm(seen: Observed, folder: str) -> Call:
    return _wait(folder, max(seen.settings["warmup_steps"], 1), 0.0, seen.settings["warm_timeout"])


def _measure(seen: Observed, folder: str) -> Call:
    return _wait(folder, seen.settings["steps"], seen.last_at, seen.settings["warm_timeout"])


def _advance(seen: Observed, folder: str) -> Call:
    return _gone_on(seen, folder, seen.moves[-1].get("completed") or 0.0)


def _outlast(seen: Observed, folder: str) -> Call:
    return _gone_on(seen, folder, max(one["completed"] for one in seen.others if one.get("completed")))


def _look(seen: Observed, _folder: str) -> Call:
    return Call("training_transport_info", {**_nodes(seen), "timeout": seen.settings["look_timeout"]})


def _counters(seen: Observed, _folder: str) -> Call:
    return _hosts_info(seen, ["rdma", "network", "pvrdma"])


def _hosts(seen: Observed, _folder: str) -> Call:
    return _hosts_info(seen, ["vib"])


def _guests(seen: Observed, _folder: str) -> Call:
    return Call("training_guest_info", {**_nodes(seen), "checkpoints": seen.settings["checkpoints"]})


def _preflight(seen: Observed, _folder: str) -> Call:
    """What Kubernetes makes of the next move: of its node, and of the pods of the job."""
    there, names = seen.settings["kubernetes"], seen.settings["kubernetes"].get("names") or {}
    worker = seen.left[0]["worker"]
    moved = [node for node, name in names.items() if name == worker] or [worker]
    which = {key: there[key] for key in ("name", "namespace", "kubeconfig", "context") if key in there}
    how = {"stun_seconds": seen.settings["stun_budget"], "accept": seen.settings["accept"]}
    return Call("mpijob_preflight_info", {**which, **how, "moved": moved})


def _canary(seen: Observed, _folder: str) -> Call:
    return Call("vmotion_info", {"cluster": seen.cluster, "since": 0.0})


def _others(seen: Observed, _folder: str) -> Call:
    return Call("vmotion_info", {"cluster": seen.cluster, "since": seen.began})


def _begin(seen: Observed, _folder: str) -> Call:
    return Call("vmotion_info", {"cluster": seen.cluster, "workers": [seen.left[0]["worker"]], "since": seen.last_at})


def _look_up(seen: Observed, _folder: str) -> Call:
    begun = seen.pending or {}
    since = begun["at"] - BEGUN_BEFORE_SECONDS
    return Call("vmotion_info", {"cluster": seen.cluster, "workers": [begun["move"]["worker"]], "since": since})


def _move(seen: Observed, folder: str) -> Call:
    wanted, begun = seen.settings, (seen.pending or {})["move"]
    given = {"cluster": seen.cluster, "worker": begun["worker"], "target": begun["target"]}
    limits = {"move_timeout": wanted["move_timeout"], "stun_budget": wanted["stun_budget"], "accept": wanted["accept"]}
    return Call("vmotion", {**given, **limits, "records": f"{folder}/records.jsonl"}, may_fail=True)


def _judge(seen: Observed, folder: str) -> Call:
    return Call("continuity_verdict", {"test": folder, "folder": folder, "name": f"vmotion_test {seen.cluster}"})


def _nodes(seen: Observed) -> dict[str, Any]:
    return {"nodes": seen.settings["nodes"], "folder": seen.settings["records"]}


def _hosts_info(seen: Observed, gather: list[str]) -> Call:
    return Call("esxi_info", {"cluster": seen.cluster, "gather": gather, "fail_unreachable": False})


def _gone_on(seen: Observed, folder: str, since: float) -> Call:
    given = seen.settings["limits"].get("resume_deadline_s")
    waited = _wait(folder, seen.settings["steps"], since, RESUME_SECONDS if given is None else given)
    return Call(waited.module, waited.options, may_fail=True)


def _wait(folder: str, steps: int, since: float, seconds: float) -> Call:
    options = {"records": f"{folder}/records.jsonl", "steps": steps, "since": since, "timeout": seconds}
    return Call("training_wait", options)


_CALLS: dict[str, Callable[[Observed, str], Call]] = {
    "hold": _hold,
    "job": _job,
    "cluster": _cluster,
    "plan": _plan,
    "watch": _watch,
    "override": _override,
    "warm": _warm,
    "look": _look,
    "counters": _counters,
    "measure": _measure,
    "canary": _canary,
    "canary_plan": _canary_plan,
    "managers": _hosts,
    "guests": _guests,
    "preflight": _preflight,
    "begin": _begin,
    "look_up": _look_up,
    "move": _move,
    "advance": _advance,
    "others": _others,
    "judge": _judge,
    "restore": _restore,
    "outlast": _outlast,
    "finish": _finish,
    "await": _await,
    "checksums": _look,
    "free": _free,
    "stop": _stop,
    "hosts": _hosts,
}
