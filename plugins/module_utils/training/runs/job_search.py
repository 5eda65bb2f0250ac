"""Finds the jobs that run on nodes, the only one of them, and the manifest of a named run; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...durable.calls import NodeCalls, Result
from ...errors import Refused
from ..results import manifest
from ..results.manifest import Manifest
from ..running import busy
from .any_job import Launched, RunPlace
from .controller_site import TrainingCalls
from .node_setup import INFO
from .training_options import Options
from .training_run import KUBERNETES, Node, TrainingRun

# Two users may have runs of one name on different nodes.
WHICH = "choose one by its name, or by its user with training_started_by"


def jobs_on(calls: NodeCalls, nodes: Mapping[str, Node]) -> dict[str, Result]:
    """Return the jobs on each node; a node that did not answer has no ``jobs``."""
    return calls.on_each(INFO, {name: {"node": node["kubernetes"]} for name, node in nodes.items()})


def undescribed_jobs(calls: TrainingCalls, names: Iterable[str]) -> dict[str, Result]:
    """Return the jobs on nodes that were not described."""
    return calls.on_each(INFO, {name: {} for name in names})


def only_run(o: Options, found: Mapping[str, Any], nodes: Mapping[str, Node], own: Manifest | None) -> dict[str, Any]:
    """Return the only run and its launcher; without a run, ``why`` says why.

    Only Kubernetes knows the pods of a job there. ``own`` is the manifest of the latest attempt of the named run that
    this controller keeps.
    """
    latest = (own or {}).get("name")
    runs = [run for run in busy.running(found, nodes) if o["name"] in ("", run["name"]) or run["name"] == latest]
    runs = [run for run in runs if not o["started_by"] or busy.is_by(o["started_by"], run["asked_by"] or run["user"])]
    runs = [run for run in runs if run["launcher"] == (own or {}).get("launcher")] or runs
    if len(runs) > 1:
        found_there = ", ".join(f"{run['name']} of {run['asked_by'] or run['user']}" for run in runs)
        raise Refused("the workers", "choose the training run", f"{found_there} run there", WHICH)
    if not runs:
        return {"runs": [], "why": busy.why_no_run(str(o["name"]), found)}
    is_kubernetes = o["backend"] == KUBERNETES
    if not is_kubernetes and not runs[0]["launcher"]:
        remedy = "include all its nodes; for a job on Kubernetes, set training_backend to kubernetes"
        raise Refused("the workers", f"find the launcher of {runs[0]['name']}", "no node has its run file", remedy)
    launcher, known = str(runs[0]["launcher"]), str((own or {}).get("launcher") or "")
    if launcher and known not in ("", launcher):
        cause = f"{launcher} reports that it launched it, and the manifest of this controller names {known}"
        raise Refused(f"the training run {runs[0]['name']}", "find its launcher", cause, f"check {launcher}")
    return {"launcher": launcher, "run_dir": runs[0]["run_dir"], "runs": runs}


def only_job(
    o: Options, found: Mapping[str, Any], nodes: Mapping[str, Node], own: Manifest | None = None
) -> dict[str, Any]:
    """Return where the only job runs, and the connections to its nodes; without one, ``why`` says why."""
    only = only_run(o, found, nodes, own)
    if not only["runs"]:
        return only
    watched = [{"name": name, "reach": nodes[name]["reach"]} for name in o["watched"] or found if name in nodes]
    user = (nodes.get(only["launcher"]) or o)["user"]
    return {**only, "user": user, "nodes": watched, "kubernetes": {}, "found": True}


def listed(
    calls: TrainingCalls,
    o: Options,
    found: Mapping[str, Result],
    nodes: Mapping[str, Node],
    queued: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """Return the runs on nodes, in a queue and on the controller, and show them; or the differences of two of them."""
    launchers = [name for name, each in found.items() if any(job.get("launched_here") for job in each.get("jobs", []))]
    places: busy.Nodes = {name: {"reach": list(nodes[name]["reach"])} for name in launchers}
    results, compare = o["results"], o["compare"]
    runs = calls.runs.listed(nodes=found, results=results, compare=compare, places=places, queued=list(queued))
    for line in runs["lines"]:
        calls.show(str(line))
    return runs


def reported_manifest(calls: TrainingCalls, o: Options, nodes: Mapping[str, Node], own: Manifest | None = None) -> str:
    """Return the text of the manifest of the named run on its launcher, which alone has one; empty without one.

    ``own`` is the manifest that this controller keeps: only the launcher that it names is questioned.
    """
    launcher = str((own or {}).get("launcher") or "")
    reporting = [launcher] if launcher in nodes else list(nodes)
    answers = calls.on_each(INFO, {key: {"manifest": f"{o['runs']}/{o['name']}"} for key in reporting})
    texts: dict[str, list[str]] = {}
    for node, answer in answers.items():
        text = str(answer.get("manifest") or "")
        if text and (not o["started_by"] or busy.is_by(o["started_by"], manifest.requester(text))):
            texts.setdefault(text, []).append(node)
    if len(texts) > 1:
        each = [f"{', '.join(found)} reports that of {manifest.requester(text)}" for text, found in texts.items()]
        remedy = "choose one by its user with training_started_by, or leave out all but its launcher"
        raise Refused(f"the training run {o['name']}", "read its manifest", ", ".join(each), remedy)
    return next(iter(texts), "")


def known_manifest(calls: TrainingCalls, o: Options, own: Manifest, reported: str) -> Manifest:
    """Return the manifest with which to follow the named run, and show in which keys that of its node differs."""
    name = str(o["name"])
    there = manifest.reported(reported, name, own) if reported else {}
    if not own and not there:
        return {}
    if not own:
        calls.show(
            f"This controller has no manifest of the training run {name}. The run is followed with the manifest on its "
            "launcher, which the user of the launcher could change; its program is not repeated without a confirmation."
        )
    differing = manifest.contradicted(own, there) if there else []
    if differing:
        calls.show(
            f"The manifest of the training run {name} on its launcher differs from {o['results']}/{name}/manifest.json "
            f"in {', '.join(differing)}. The run is followed with the manifest of this controller. If another "
            "controller started a new run with this name, move the folder of the earlier run away."
        )
    return manifest.followed(own, there)


def run_of_job(run: TrainingRun, job: Launched) -> RunPlace:
    """Return the location of a job and the connections to its nodes, as playbooks read them."""
    return {
        "launcher": job["launcher"],
        "kubernetes": job["kubernetes"],
        "user": run.o["user"],
        "run_dir": run.dir,
        "nodes": job["watched"],
    }
