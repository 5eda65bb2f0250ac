"""The permission of users and site that a maintenance window needs before it empties a host; pure.

Both can change it at any time, also while no controller runs or a pause lasts, so that it is read before each host.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Dict

from ...core.findings import listed
from ...core.names import short_name
from ...durable.calls import Result, required
from ...durable.program import Program
from ...errors import WholeError
from ...training.running.busy import second
from ..evidence import prediction
from . import other_jobs
from .holding import lost_machines
from .trial import Trial
from .window_end import deadline, ended

# An acknowledgement applies only to the next window. Clocks of nodes may differ by less than the second of these times.
ACK_SECONDS, CLOCK_SECONDS = 86_400.0, 300.0
READ_SECONDS = 60.0

Value = Mapping[str, Any]
# Why the window ends before the host (``ends``), and the accepted other jobs that started meanwhile (``jobs``).
Permission = Dict[str, Any]


def require_possible(p: Program, trial: Trial) -> None:
    """Refuse a new window that could not change any host, before it takes the lock."""
    if p.written("job") is not None:
        return
    p.say("checks the end of the window, and the acknowledgement of the owner of the job")
    reason = p.ensure(partial(over, trial.settings["window"], trial.started, p.now())) or p.ensure(
        partial(unacknowledged, p, trial)
    )
    if reason:
        raise WholeError(f"Cluster {trial.facts.cluster}: no window is opened: {reason}.")


def over(window: Value, started: float, now: float) -> str:
    """Return why a window that starts now is over already; empty if it is not."""
    until, option = deadline(window, started)
    return f"its end, {prediction.clock(until)} ({option}), is over" if until is not None and until <= now else ""


def permission(p: Program, trial: Trial, stage: Value) -> Permission:
    """Return whether the site and the owner of the job let a host be emptied; stop rules and limits are others."""
    jobs = jobs_beside(p, trial, stage)
    why = changed_machines(p, trial) or unacknowledged(p, trial)
    why = why or other_jobs.refusal_of_present(trial.facts.window, jobs)
    known = {job["run_dir"] for job in trial.facts.other_jobs}
    new = [job for job in jobs if job["run_dir"] not in known]
    return {"ends": ended(trial.facts, why) if why else "", "jobs": new}


def heed(trial: Trial, read: Permission) -> None:
    """End the window before the host, or watch and judge the jobs that started meanwhile too."""
    trial.facts.stopped = trial.facts.stopped or read["ends"]
    if not trial.facts.stopped:
        trial.watch_too(read["jobs"])


def jobs_beside(p: Program, trial: Trial, stage: Value) -> list[dict[str, object]]:
    """Return the other jobs that run now on workers which this host moves."""
    p.say("reads the training jobs on the workers")
    # A guest may be slow to answer right after its move.
    read = p.wait(partial(_readable, trial), READ_SECONDS) or _read(trial)
    if read["unread"]:
        raise WholeError(read["unread"])
    reach = {short_name(node["name"]): node.get("reach") for node in trial.settings["nodes"]}
    found = other_jobs.moving({"other_jobs": read["jobs"]}, {"stages": [stage], "places": trial.facts.at})
    return [
        {**job, "watched": [{"name": name, "reach": reach.get(short_name(name)) or []} for name in job["nodes"]]}
        for job in found
    ]


def _read(trial: Trial) -> Result:
    return required(trial.site.jobs_on_workers(trial.settings))


def _readable(trial: Trial) -> Result:
    """Return the jobs on the workers; empty while the jobs of a worker are not known."""
    read = _read(trial)
    return {} if read["unread"] else read


def changed_machines(p: Program, trial: Trial) -> str:
    """Return which workers were removed or built again since the window began; empty if none was."""
    lost = lost_machines(p, trial)
    return f"{listed(lost)}: removed or built again since the window began" if lost else ""


def unacknowledged(p: Program, trial: Trial) -> str:
    """Return why the owner of the job does not agree; empty if they do, or if no agreement is required.

    An acknowledgement is at most a day older than the start of this run, or than the end of its last pause.
    """
    if not trial.facts.window.get("requires_ack") or trial.facts.outlives_job:
        return ""
    p.say("looks for the acknowledgement of the owner of the job")
    at = trial.job.acknowledged()
    reason = "the owner of the job has not acknowledged the window"
    if at > p.now() + CLOCK_SECONDS:
        reason = f"the acknowledgement of the owner of the job is dated in the future, {second(at)}"
    elif at and at < max(trial.started, trial.resumed) - ACK_SECONDS:
        reason = f"{reason} within the last day: its last acknowledgement is of {second(at)}"
    elif at and any(change["began"] > at for change in trial.site.earlier_changes()):
        reason = f"the acknowledgement of the owner of the job, {second(at)}, was for a window that has changed hosts"
    elif at:
        return ""
    return f"{reason}: {trial.job.ack}"
