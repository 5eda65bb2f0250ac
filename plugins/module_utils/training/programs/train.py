"""Program: start a training run, follow it to its end, bring its results back, and try it again if a machine fails.

The state of a run lies in files: its job on the launcher, which a second start finds running, and its manifest on the
controller. So the journal of this program may be in memory, and a controller that continues does all of it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...durable.calls import Result
from ...durable.program import Program
from ...errors import CollectionError
from ..results.manifest import Manifest
from ..runs import gpu_gate, node_setup, run_files
from ..runs.any_job import Launched, forwarding_command
from ..runs.run_watch import RunWatch, who_waits
from ..runs.training_run import Prepared, TrainingFailed, TrainingRun, hashed_environment
from .follow import Ended, TrainingSite, await_start, follow, follow_command, stop_command, unreachable

NOWHERE: Launched = {"launcher": "", "kubernetes": {}, "watched": []}


@dataclass(frozen=True)
class StartedJob:
    """A job that has started: the state of its nodes, where it runs, its manifest and the counters before it."""

    prepared: Prepared
    launched: Launched
    manifest: Manifest
    esxi_before: list[dict[str, Any]]

    def rank_0(self, run: TrainingRun) -> str:
        return str(self.manifest.get("rank_0_on") or self.launched["launcher"] or next(iter(run.nodes)))


def train(p: Program, site: TrainingSite, run: TrainingRun) -> dict[str, Any]:
    """Run the attempts of a training run until one finishes, or ends by an error of its program."""
    while True:
        started = start(p, site, run)
        if not run.o["follow"]:
            p.say(f"The training run {run.name} continues without this command. {ways(run)}")
            return {"run": run.name, "changed": True}
        p.say(f"The training run {run.name} continues if this command ends, for example with Ctrl-C. {ways(run)}")
        p.say(_forwarding(run, started))
        await_start(p, site, run)
        watch = RunWatch(site.calls, run, started.launched, started.rank_0(run))
        with p.held(f"the watch of {run.name}", watch.start, watch.stop):
            ended = follow(p, site, run, watch)
            report = bring_back(p, site, run, started, ended, watch)
        if not (ended.is_of_machine and run.has_another_attempt):
            require_finished(p, site, run, ended)
            return judge(p, site, run, started, {"report": report, "followed": ended.followed}, watch.records)
        run = _next_attempt(p, site, run, started, ended)


def _forwarding(run: TrainingRun, started: StartedJob) -> str:
    """Return the command that forwards the requested ports of the node of rank 0; empty without one."""
    node = started.rank_0(run)
    command = forwarding_command(run.nodes[node]["reach"], run.o["forward"]) if node in run.nodes else ""
    return (
        f"To reach port {', '.join(map(str, run.o['forward']))} of {node} on this machine, use {command}"
        if command
        else ""
    )


def start(p: Program, site: TrainingSite, run: TrainingRun) -> StartedJob:
    """Prepare the nodes and start the job; a run that is followed by its name alone is only found."""
    if run.is_followed_only:
        p.ensure(lambda: run_files.write_followed(site.calls, run))
        prepared = _found_state(p, site, run)
        return StartedJob(prepared, p.ensure(lambda: site.job_of(run).found()), run.known, [])
    p.say(_preparation(run))
    prepared = p.ensure(lambda: node_setup.prepare(site.calls, run, site.library))
    esxi_before = p.ensure(lambda: run_files.esxi_counters(site.calls, run, prepared))
    p.ensure(lambda: run_files.require_repeatable(run, run_files.new_manifest(run, prepared, NOWHERE, 0.0)))
    # The module finds the job that an earlier controller has started.
    started = p.once(("started", run.name), lambda: site.job_of(run).begin(prepared))
    new = run_files.new_manifest(run, prepared, started, p.now())
    manifest = p.once(("manifest", run.name), lambda: run_files.write_manifest(site.calls, run, new))
    return StartedJob(prepared, started, manifest, esxi_before)


def _preparation(run: TrainingRun) -> str:
    """Return what happens before the ranks start; packages that a node does not have yet take minutes."""
    o = run.o
    installed = f"the packages of {o['requirements']}, which pip installs" if run.requirements else ""
    parts = ", ".join(filter(None, (o["folder"], installed, o["data"])))
    return f"brings what they lack to {', '.join(run.nodes)}: {parts}" if parts else ""


def _found_state(p: Program, site: TrainingSite, run: TrainingRun) -> Prepared:
    """Return the state of nodes on which a run was started before, from its manifest."""
    known = run.known
    return Prepared(
        python=str(run.o["python"]),
        port=int(known.get("port") or run.o["port"]),
        code=known.get("code") or {},
        lock=known.get("lock") or [],
        resume=str(known.get("checkpoint") or ""),
        hcas=p.ensure(lambda: node_setup.read_hcas(site.calls, run)),
    )


def bring_back(
    p: Program, site: TrainingSite, run: TrainingRun, started: StartedJob, ended: Ended, watch: RunWatch
) -> Result:
    """Write the end of the job, its output and its page, and copy its outputs; a lost node prevents none of these.

    Return the report of the job.
    """
    calls, job = site.calls, ended.job
    p.ensure(lambda: run_files.write_end(calls, run, job, ended.followed["pace"]))
    report = p.ensure(lambda: site.job_of(run).report(ended.looked))
    p.ensure(lambda: run_files.write_output(calls, run, report.get("output")))
    p.ensure(lambda: watch.write_last_page(job))
    try:
        p.ensure(lambda: run_files.bring_outputs(calls, run, started.rank_0(run)))
        p.say(p.ensure(lambda: run_files.unusable_checkpoint(calls, run)))
        p.ensure(lambda: run_files.bring_archive(calls, run, started.manifest))
    except CollectionError as error:
        if job["state"] == "finished":
            raise
        p.say(str(error))
    return report


def _next_attempt(p: Program, site: TrainingSite, run: TrainingRun, started: StartedJob, ended: Ended) -> TrainingRun:
    """Wait for the nodes, end what the failed attempt left, and return the attempt that begins with its outputs."""
    number, most, seconds = run.number + 1, run.o["attempts"], float(run.o["attempt_wait"])
    require_same_environment(run)
    p.say(f"Attempt {number} of {most}: the training run {run.name} failed with a machine: {ended.job.get('why')}")
    if not p.wait(lambda: not unreachable(site.calls, run.nodes), seconds):
        raise TrainingFailed(
            f"The training run {run.name} is not tried again: its nodes did not respond within {seconds:.0f} s. Start "
            f"them, then resume the run with training_resume={run.name}."
        )
    p.ensure(site.job_of(run).end_leftovers)
    p.ensure(lambda: gpu_gate.require_healthy(site.calls, run))
    # If the node of rank 0 had failed, its outputs can be copied only now.
    p.ensure(lambda: run_files.bring_outputs(site.calls, run, started.rank_0(run)))
    return run.attempt(number)


def require_same_environment(run: TrainingRun) -> None:
    """Refuse another attempt of a run that continues without its variables: the manifest has only their SHA-256."""
    if not run.known:
        return
    before, now = run.known.get("asked", {}).get("environment") or {}, hashed_environment(run.o)
    differing = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if differing:
        raise TrainingFailed(
            f"The training run {run.name} is not tried again: {', '.join(differing)} of training_environment "
            "differ from this attempt. Set them as before, and run the same command again with "
            f"training_name={run.first}."
        )


def require_finished(p: Program, site: TrainingSite, run: TrainingRun, ended: Ended) -> None:
    """Fail with the cause of a job that did not finish, and with who waited for whom if it died."""
    job, silent = ended.job, str(ended.followed["pace"].get("first_silent") or "")
    not_finite = str(ended.followed["pace"].get("not_finite") or "")
    if job["state"] != "finished":
        waits = p.ensure(lambda: who_waits(site.calls, run)) if job["state"] == "died" else ""
        is_stopped = job["state"] == "stopped"
        stopped = f"was {job.get('why') or 'stopped by a command'}"
        state = stopped if is_stopped else f"{job['state']}: {job.get('why') or '-'}"
        why = "; ".join(text for text in (state, silent, waits.rstrip("."), not_finite) if text)
        where = f"The end of its output is in {run.results}/output.log."
        raise TrainingFailed(f"{run.job} {why}. {where}{_another_try(run, ended)}")


def _another_try(run: TrainingRun, ended: Ended) -> str:
    """Return how to retry a run that the failure of a machine ended, if it has no attempts left."""
    if not ended.is_of_machine or int(run.o["attempts"]) > 1:
        return ""
    start = " from its newest checkpoint" if run.o["folder"] else ""
    return (
        f" If the memory of {ended.job.get('node') or 'a node'} was exhausted, journalctl -k there shows it. "
        f"-e training_attempts=3 retries such a run{start}."
    )


def judge(
    p: Program, site: TrainingSite, run: TrainingRun, started: StartedJob, seen: Mapping[str, object], records: str
) -> dict[str, Any]:
    """Write the result of the run; fail if ranks have different parameters or another transport than requested."""
    before = {"prepared": started.prepared, "esxi_before": started.esxi_before}
    judged = p.ensure(lambda: run_files.judge(site.calls, run, {**before, **seen}, records))
    if judged["faults"]:
        raise TrainingFailed(" ".join(judged["faults"]))
    p.say(str(judged["summary"]))
    not_finite = str(judged["result"]["not_finite"])
    warnings = [f"The training run {run.name} finished, {not_finite}."] if not_finite else []
    resumed = str(started.manifest.get("resumed_from") or "")
    warnings += _restart_warnings(p, site, run, resumed) if resumed else []
    more = {"warnings": warnings} if warnings else {}
    return {"run": run.name, "changed": True, "result": judged["result"], "msg": judged["summary"], **more}


def _restart_warnings(p: Program, site: TrainingSite, run: TrainingRun, resumed: str) -> list[str]:
    """Show the verdict on the restart of a run, and return a warning if it is broken."""
    found = p.ensure(lambda: run_files.judge_restart(site.calls, run))
    for line in found["lines"]:
        p.say(str(line))
    causes = "; ".join(str(breach["detail"]) for breach in found["breaches"])
    warning = f"The training run {run.name} did not go on where the checkpoint of {resumed} ends: {causes}."
    return [warning] if causes else []


def planned(run: TrainingRun) -> str:
    ranks = len(run.nodes) * int(run.o["ranks_per_node"])
    return f"{run.name}: {ranks} ranks on {', '.join(run.nodes)} by {run.o['transport']}"


def ways(run: TrainingRun) -> str:
    """Return how to follow and how to stop a run."""
    return f"To follow the run again, use {follow_command(run)}. To stop the run, use {stop_command(run)}"
