"""Program: stop a named run on all its nodes as its user, and bring its outputs back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...durable.calls import required
from ...durable.program import Program
from ..results.manifest import Manifest
from ..runs import any_job, job_search, run_files
from ..runs.restartable import WINDOW
from ..runs.training_run import TrainingFailed, TrainingRun
from .follow import TrainingSite


def stop(p: Program, site: TrainingSite, run: TrainingRun) -> dict[str, Any]:
    """Stop a run. The user of the run can change the program in the run directory that stops the job."""
    by = f"stopped by {run.requested_by}"
    if _waits_for_window(site, run):
        return _keep_stopped(p, site, run, by)
    job = site.job_of(run)
    if job.is_scheduled:
        _require_known(site, run)
        deleted = p.ensure(job.stop)
        state = str((deleted.get("job") or {}).get("state") or "stopped")
        if state != "stopped":
            p.say(f"the training run {run.name} has ended already: {state}")
        elif run.known and not _has_end(run.known):
            _keep_end(p, site, run, str(run.known["rank_0_on"]), {"ended": p.now(), "step": None, "by": by})
        return {"changed": bool(deleted.get("changed"))}
    found = p.ensure(lambda: find(site, run))
    if found["runs"]:
        return _stop_found(p, site, run, found, by)
    left = p.ensure(lambda: _stopped_before(site, run))
    if not left and "state" in run.known.get("end", {}):
        p.say(f"the training run {run.name} has ended already: {run.known['end']['state']}")
        return {"changed": False}
    if not left:
        raise TrainingFailed(
            f"No worker runs a training job with the name {run.name}: {found['why']}. The playbook dml.vsphere.runs "
            "lists the runs."
        )
    _keep_end(p, site, run, str(run.known["launcher"]), {"ended": left.get("ended"), "step": None, "by": by})
    return {"changed": True}


def stop_sweep(p: Program, site: TrainingSite, runs: Sequence[TrainingRun]) -> dict[str, Any]:
    """Stop the runs of a sweep that have not ended, all at once."""
    left = [run for run in runs if not _has_end(run.known)]
    if not left:
        p.say(f"all {len(runs)} runs of the sweep have ended already")
    elif site.cancel_runs:
        p.ensure(partial(site.cancel_runs, left))
    for run in left:
        stop(p, site, run)
    return {"changed": bool(left)}


def is_left(site: TrainingSite, run: TrainingRun) -> bool:
    """Return whether there is a run to stop."""
    if _waits_for_window(site, run):
        return True
    if site.job_of(run).is_scheduled:
        _require_known(site, run)
        return not _has_end(run.known)
    return bool(find(site, run)["runs"] or _stopped_before(site, run))


def _waits_for_window(site: TrainingSite, run: TrainingRun) -> bool:
    """Return whether a maintenance window has stopped a run, and may start its next attempt."""
    is_stopped = WINDOW in str(run.known.get("end", {}).get("cause"))
    return is_stopped and not site.calls.runs.followers(run.o["results"], run.name)


def _keep_stopped(p: Program, site: TrainingSite, run: TrainingRun, by: str) -> dict[str, Any]:
    """Name the user who stops a run that a window has stopped: the window then does not start its next attempt."""
    end = run.known["end"]
    p.ensure(lambda: run_files.write_stop(site.calls, run, end["ended"], by, end.get("steps")))
    p.say(f"the training run {run.name} stays stopped: the window that has stopped it does not start it again")
    return {"changed": True}


def find(site: TrainingSite, run: TrainingRun) -> dict[str, Any]:
    """Return the run; only if its launcher does not have it, the other nodes are asked."""
    launcher = str(run.known.get("launcher") or "")
    jobs: dict[str, Any] = {}
    if launcher in run.nodes:
        jobs = job_search.undescribed_jobs(site.calls, [launcher])
        found = job_search.only_run(run.o, jobs, run.nodes, run.known)
        if found["runs"]:
            return found
    jobs.update(job_search.undescribed_jobs(site.calls, [name for name in run.nodes if name not in jobs]))
    return job_search.only_run(run.o, jobs, run.nodes, run.known)


def _stopped_before(site: TrainingSite, run: TrainingRun) -> dict[str, Any]:
    """Return the job of a run that an earlier controller stopped before it kept the end; empty if there is none."""
    known = run.known
    if not known or _has_end(known) or known["launcher"] not in run.nodes:
        return {}
    looked = site.calls.on(known["launcher"], any_job.INFO, {"gather": ["job"], "run_dir": known["run_dir"]})
    state = looked.get("job") or {}
    return dict(state) if state.get("state") == "stopped" else {}


def _has_end(known: Manifest) -> bool:
    """Return whether this controller has kept all of the end of a run."""
    end = known.get("end", {})
    return "state" in end and (end["state"] != "stopped" or not known.get("folder") or "outputs" in end)


def _keep_end(p: Program, site: TrainingSite, run: TrainingRun, launcher: str, end: Mapping[str, Any]) -> None:
    """Write the end of a stopped run to its manifest, and bring its outputs back."""
    p.ensure(lambda: run_files.write_stop(site.calls, run, end["ended"], end["by"], end["step"]))
    if run.known.get("folder"):
        outputs = f"{run.known['run_dir']}/work/{run.known['outputs']}"
        p.ensure(lambda: run_files.copy_outputs(site.calls, run, launcher, outputs))


def _require_known(site: TrainingSite, run: TrainingRun) -> None:
    """Refuse a name that neither this controller nor a worker knows as that of a run."""
    known = run.known or job_search.reported_manifest(site.calls, run.o, run.nodes)
    if not known:
        raise TrainingFailed(
            f"No worker has the manifest of a training run with the name {run.name} for training_backend "
            f"{run.o['backend']}. The playbook dml.vsphere.runs lists the runs; for a run with another backend, set it."
        )


def _stop_found(p: Program, site: TrainingSite, run: TrainingRun, found: Mapping[str, Any], by: str) -> dict[str, Any]:
    """Stop the job as its user; bring back what it leaves, if this controller has the manifest of the run."""
    job, options = found["runs"][0], {"run_dir": found["run_dir"], "state": "stopped", "by": run.requested_by}
    user = site.calls.as_user(str(job["user"]))
    stopped = p.ensure(lambda: required(user.on(found["launcher"], "dml.vsphere.training_job", options)))
    state = stopped.get("job") or {}
    if state.get("state") == "stopped" and run.known:
        _keep_end(p, site, run, found["launcher"], {"ended": state.get("ended"), "step": job.get("step"), "by": by})
    return {"changed": bool(stopped.get("changed"))}
