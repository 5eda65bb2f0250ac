"""Program: stop a named run on all its nodes as its user, and bring its outputs back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...durable.calls import NodeCalls, ReachedNode, required
from ...durable.program import Program
from ...errors import Refused
from ..ending.job_state import ENDED
from ..results.manifest import Manifest
from ..running import busy
from ..runs import any_job, job_search, run_files
from ..runs.restartable import WINDOW
from ..runs.training_run import LAUNCHER, TrainingFailed, TrainingRun
from .follow import TrainingSite

# Killed ranks are gone within this time.
KILL_SECONDS = 30.0


def stop(p: Program, site: TrainingSite, run: TrainingRun) -> dict[str, object]:
    """Stop a run. The user of the run can change the program in the run directory that stops the job."""
    by = f"stopped by {run.requested_by}"
    if _waits_for_window(site, run):
        return _keep_stopped(p, site, run, by)
    if site.job_of(run).is_scheduled:
        return _stop_scheduled(p, site, run, by)
    found = p.ensure(lambda: find(site, run))
    if found["runs"]:
        return _stop_found(p, site, run, found, by)
    if found.get("is_lost"):
        return _stop_without_launcher(p, site, run, by)
    ended = p.ensure(lambda: _ended_before(site, run))
    if ended:
        _keep_end(p, site, run, ended, by)
        return {"changed": True}
    if "state" in run.known.get("end", {}):
        p.say(f"the training run {run.name} has ended already: {run.known['end']['state']}")
        return {"changed": False}
    raise TrainingFailed(
        f"No worker runs a training job with the name {run.name}: {found['why']}. The playbook dml.vsphere.runs lists "
        "the runs."
    )


def _stop_scheduled(p: Program, site: TrainingSite, run: TrainingRun, by: str) -> dict[str, object]:
    """Stop a run whose job a scheduler knows by its name."""
    _require_known(site, run)
    deleted = p.ensure(site.job_of(run).stop)
    state = str((deleted.get("job") or {}).get("state") or "stopped")
    if state != "stopped":
        p.say(f"the training run {run.name} has ended already: {state}")
    elif run.known and not _has_end(run.known):
        _keep_end(p, site, run, {"state": "stopped", "ended": p.now()}, by)
    return {"changed": bool(deleted.get("changed"))}


def stop_sweep(p: Program, site: TrainingSite, runs: Sequence[TrainingRun]) -> dict[str, object]:
    """Stop the runs of a sweep that have not ended, all at once."""
    left = [run for run in runs if not _has_end(run.known)]
    waiting = [run for run in runs if run not in left and _waits_for_window(site, run)]
    if not left and not waiting:
        p.say(f"all {len(runs)} runs of the sweep have ended already")
    elif left and site.cancel_runs:
        p.ensure(partial(site.cancel_runs, left))
    for run in (*left, *waiting):
        stop(p, site, run)
    return {"changed": bool(left or waiting)}


def is_left(site: TrainingSite, run: TrainingRun) -> bool:
    """Return whether there is a run to stop."""
    if _waits_for_window(site, run):
        return True
    if site.job_of(run).is_scheduled:
        _require_known(site, run)
        return not _has_end(run.known)
    found = find(site, run)
    return bool(found["runs"] or found.get("is_lost") or _ended_before(site, run))


def _waits_for_window(site: TrainingSite, run: TrainingRun) -> bool:
    """Return whether a maintenance window has stopped a run, and may start its next attempt."""
    is_stopped = WINDOW in str(run.known.get("end", {}).get("cause"))
    return is_stopped and not site.calls.runs.followers(run.o["results"], run.name)


def _keep_stopped(p: Program, site: TrainingSite, run: TrainingRun, by: str) -> dict[str, object]:
    """Name the user who stops a run that a window has stopped: the window then does not start its next attempt."""
    end = run.known["end"]
    p.ensure(lambda: run_files.write_end(site.calls, run, {**end, "why": by}, {}))
    p.say(f"the training run {run.name} stays stopped: the window that has stopped it does not start it again")
    return {"changed": True}


def find(site: TrainingSite, run: TrainingRun) -> dict[str, object]:
    """Return the run; only if its launcher does not have it, the other nodes are asked.

    ``is_lost``: the launcher does not answer, and the user says that it is lost.
    """
    launcher = str(run.known.get("launcher") or "")
    jobs: dict[str, Any] = {}
    if launcher in run.nodes:
        jobs = job_search.undescribed_jobs(site.calls, [launcher])
        if jobs[launcher].get("unreachable") and not _has_end(run.known):
            _require_lost(run, launcher, busy.short_error(jobs[launcher]))
            return {"runs": [], "is_lost": True}
        found = job_search.only_run(run.o, jobs, run.nodes, run.known)
        if found["runs"]:
            return found
    jobs.update(job_search.undescribed_jobs(site.calls, [name for name in run.nodes if name not in jobs]))
    return job_search.only_run(run.o, jobs, run.nodes, run.known)


def _require_lost(run: TrainingRun, launcher: str, why: str) -> None:
    """Refuse to end a run whose launcher may still run it, unless the user says that the launcher is lost."""
    if LAUNCHER not in run.o["accept"]:
        remedy = f"""start it; if it is lost, end the run without it: -e '{{"training_accept": ["{LAUNCHER}"]}}'"""
        cause = f"its launcher {launcher} does not answer ({why}), so the run may still train there"
        raise Refused(f"the training run {run.name}", "stop it", cause, remedy)


def _ended_before(site: TrainingSite, run: TrainingRun) -> Mapping[str, Any]:
    """Return the job of a run that ended before any controller kept its end; else nothing."""
    known = run.known
    if not known or _has_end(known) or known["launcher"] not in run.nodes:
        return {}
    return _ended_on(site.calls, known["launcher"], known["run_dir"])


def _ended_on(calls: NodeCalls, launcher: str, run_dir: str) -> Mapping[str, Any]:
    """Return the job of a run directory if it has ended; empty if it has not, and if its launcher does not answer."""
    job = calls.on(launcher, any_job.INFO, {"gather": ["job"], "run_dir": run_dir}).get("job") or {}
    return job if job.get("state") in ENDED else {}


def _has_end(known: Manifest) -> bool:
    """Return whether this controller has kept all of the end of a run."""
    end = known.get("end", {})
    return "state" in end and (end["state"] != "stopped" or not known.get("folder") or "outputs" in end)


def _keep_end(p: Program, site: TrainingSite, run: TrainingRun, job: Mapping[str, Any], by: str) -> None:
    """Write the end of a run to its manifest, and bring its outputs back from the node of rank 0."""
    cause = by if job["state"] == "stopped" else job.get("why")
    p.ensure(lambda: run_files.write_end(site.calls, run, {**job, "why": cause}, {"step": job.get("step")}))
    if run.known.get("folder"):
        outputs = f"{run.known['run_dir']}/work/{run.known['outputs']}"
        p.ensure(lambda: run_files.copy_outputs(site.calls, run, run.rank_0, outputs))


def _require_known(site: TrainingSite, run: TrainingRun) -> None:
    """Refuse a name that neither this controller nor a worker knows as that of a run."""
    known = run.known or job_search.reported_manifest(site.calls, run.o, run.nodes)
    if not known:
        raise TrainingFailed(
            f"No worker has the manifest of a training run with the name {run.name} for training_backend "
            f"{run.o['backend']}. The playbook dml.vsphere.runs lists the runs; for a run with another backend, set it."
        )


def _stop_found(
    p: Program, site: TrainingSite, run: TrainingRun, found: Mapping[str, Any], by: str
) -> dict[str, object]:
    """Stop the job as its user; bring back what it leaves, if this controller has the manifest of the run.

    Its end is kept also if a node does not answer, on which processes may be left.
    """
    job, options = found["runs"][0], {"run_dir": found["run_dir"], "state": "stopped", "by": run.requested_by}
    user, launcher = site.calls.as_user(str(job["user"])), found["launcher"]
    stopped = p.ensure(lambda: user.on(launcher, any_job.JOB, options))
    ended = p.ensure(lambda: _ended_on(user, launcher, found["run_dir"])) if stopped.get("failed") else stopped["job"]
    if ended and run.known:
        _keep_end(p, site, run, {**ended, "step": job.get("step")}, by)
    required(stopped)
    return {"changed": bool(stopped.get("changed"))}


def _stop_without_launcher(p: Program, site: TrainingSite, run: TrainingRun, by: str) -> dict[str, object]:
    """End the ranks on the other nodes of a run, and keep the end of the run and its outputs."""
    known = run.known
    names = [name for name in known["nodes"] if name in run.nodes and name != known["launcher"]]
    others: list[ReachedNode] = [{"name": name, "reach": run.nodes[name]["reach"]} for name in names]

    def ranks() -> Sequence[str]:
        """Send the last signal to the ranks, and return those that ran."""
        answer = site.calls.nodes.signal_ranks(others, known["run_dir"], "KILL")
        if answer["errors"]:
            each = "; ".join(f"{node}: {why}" for node, why in answer["errors"].items())
            raise TrainingFailed(f"The ranks of the training run {run.name} could not be ended: {each}")
        return list(answer["ranks"])

    if not p.wait(lambda: not ranks(), KILL_SECONDS):
        raise TrainingFailed(f"The ranks {', '.join(ranks())} of the training run {run.name} do not end.")
    if not p.wait(lambda: not _left_on(site, run, names), KILL_SECONDS):
        raise TrainingFailed(
            f"The training run {run.name} is not stopped, because no records of its ranks name all of its processes: "
            f"{'; '.join(_left_on(site, run, names))}. End them there, and stop the run again."
        )
    _keep_end(p, site, run, {"state": "stopped", "ended": p.now()}, f"{by}, without its launcher {known['launcher']}")
    return {"changed": True}


def _left_on(site: TrainingSite, run: TrainingRun, names: Sequence[str]) -> list[str]:
    """Return why processes of a run may be left on nodes, also those of ranks without records."""
    left = []
    for node, answer in job_search.undescribed_jobs(site.calls, names).items():
        found = [job for job in answer.get("jobs", []) if job["run_dir"] == run.known["run_dir"]]
        numbers = [str(each["pid"]) for job in found for each in job.get("processes") or []]
        if "jobs" not in answer:
            left.append(f"{node} did not answer ({busy.short_error(answer)})")
        elif found:
            left.append(f"processes {', '.join(numbers)} run on {node}")
    return left
