"""Programs: run a program with each combination of values side by side; measure each number of nodes and transport."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...durable.calls import required
from ...durable.program import Program
from ...errors import CollectionError
from ..results.manifest import Manifest
from ..runs import run_source
from ..runs.run_watch import WEEK_SECONDS, RunWatch
from ..runs.training_options import Options
from ..runs.training_run import TrainingFailed, TrainingRun, request_of
from ..runs.variations import Variation, row, table
from .follow import ALIVE, Ended, ForRuns, TrainingSite, stop_command
from .train import StartedJob, bring_back, judge, require_finished, start, train

# A launcher that reports no end is asked for the state of its job this often.
LOOK_SECONDS = 30.0
# The states of a run that the same command makes again.
FAILED = ("died", "stopped")


KnownOf = Callable[[str], Manifest]
FINISHED = "finished"
Point = Mapping[str, Any]


@dataclass(frozen=True)
class Running:
    """The run of a variation, which is followed."""

    variation: Variation
    run: TrainingRun
    started: StartedJob
    watch: RunWatch


@dataclass(frozen=True)
class Sweep:
    """The world of a sweep, how its runs are made and read, and their watches.

    ``started`` and ``failures`` have the runs that were started, and the failed ones, by their names.
    """

    p: Program
    site: TrainingSite
    run_of: Callable[[Variation], TrainingRun]
    known_of: KnownOf
    watches: ExitStack
    started: dict[str, tuple[TrainingRun, StartedJob]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def failed(self, name: str, error: CollectionError) -> None:
        """Show and keep the failure of a run, which does not end the others."""
        self.p.say(str(error))
        self.failures[name] = str(error)


def vary(
    p: Program,
    site: TrainingSite,
    groups: Sequence[Sequence[Variation]],
    run_of: Callable[[Variation], TrainingRun],
    known_of: KnownOf,
) -> dict[str, Any]:
    """Make the runs of all groups that have no result yet, and show one table; results here are the journal."""
    made = [each for group in groups for each in group if p.ensure(partial(_is_made, known_of, each))]
    p.ensure(lambda: _require_same_program(site, made, run_of, known_of))
    left = [[each for each in group if each not in made] for group in groups]
    with ExitStack() as watches:
        sweep = Sweep(p, site, run_of, known_of, watches)
        _submit_arrays(sweep, left)
        running = [each for group in left for each in _begin_next(sweep, group)]
        p.say(f"To stop a run, use {stop_command(replace(running[0].run, name='RUN'))}" if running else "")
        while running:
            ended = p.wait(partial(_ended, p, site, running), WEEK_SECONDS)
            if ended is None:
                raise TrainingFailed(f"{running[0].run.name} did not end within a week, and continues.")
            running.remove(ended)
            _finish(sweep, ended)
            (group,) = (group for whole, group in zip(groups, left) if ended.variation in whole)
            running += _begin_next(sweep, group)
    rows = _shown(p, site, groups, known_of)
    if sweep.failures:
        why = " ".join(dict.fromkeys(sweep.failures.values()))
        raise TrainingFailed(f"{len(sweep.failures)} of {len(rows)} runs did not finish. {why}")
    return {"changed": True, "rows": rows}


def _is_made(known_of: KnownOf, variation: Variation) -> bool:
    """Return whether a run has finished and its outputs are here."""
    known = known_of(variation.name)
    end = known.get("end") or {}
    is_here = "outputs" in end or not known.get("folder")
    return known.get("command") == variation.command and end.get("state") == "finished" and is_here


def _require_same_program(
    site: TrainingSite, made: Sequence[Variation], run_of: Callable[[Variation], TrainingRun], known_of: KnownOf
) -> None:
    """Refuse a table of runs that have finished with another program than this command has."""
    if made:
        results = {each.name: known_of(each.name) for each in made}
        run_source.require_same_program(site.calls, run_of(made[0]), results)


def _submit_arrays(sweep: Sweep, groups: Sequence[list[Variation]]) -> None:
    """Submit the runs of each group as one job of a batch system, which then does not need this controller."""
    submit_array = sweep.site.submit_array
    if submit_array is None:
        return
    for group in groups:
        group[:] = [each for each in group if _is_started(sweep, each)]
        _submit(sweep, group, submit_array)


def _submit(sweep: Sweep, group: list[Variation], submit_array: ForRuns) -> None:
    """Submit the prepared runs of a group."""
    try:
        sweep.p.ensure(lambda: submit_array([sweep.started[each.name][0] for each in group]))
    except CollectionError as error:
        for variation in group:
            sweep.failed(variation.name, error)
        group.clear()


def _is_started(sweep: Sweep, variation: Variation) -> bool:
    """Start the run of a variation as far as its nodes can, and return whether that succeeded."""
    try:
        sweep.started[variation.name] = _start(sweep, variation)
    except CollectionError as error:
        sweep.failed(variation.name, error)
    return variation.name in sweep.started


def _begin_next(sweep: Sweep, group: list[Variation]) -> list[Running]:
    """Start the next run of a group that can be started, and return it; empty if none is left."""
    while group:
        variation = group.pop(0)
        try:
            return [_begin(sweep, variation)]
        except CollectionError as error:
            sweep.failed(variation.name, error)
    return []


def _begin(sweep: Sweep, variation: Variation) -> Running:
    """Start the run of a variation, unless its job was submitted with others, and its watch."""
    p, site = sweep.p, sweep.site
    run, started = sweep.started.get(variation.name) or _start(sweep, variation)
    watch = RunWatch(site.calls, run, started.launched, started.rank_0(run))
    sweep.watches.enter_context(p.held(f"the watch of {run.name}", watch.start, watch.stop))
    values = ", ".join(f"{key} {value}" for key, value in variation.values.items())
    p.say(f"{run.name} trains on {', '.join(run.nodes)} with {values}")
    return Running(variation, run, started, watch)


def _start(sweep: Sweep, variation: Variation) -> tuple[TrainingRun, StartedJob]:
    """Start the run of a variation; one that failed before is made again."""
    p, site, run = sweep.p, sweep.site, sweep.run_of(variation)
    job = p.ensure(site.job_of(run).look).get("job") or {}
    if job.get("state") in FAILED:
        if job.get("started"):
            require_outputs_here(run, sweep.known_of(run.name), str(job["state"]))
        p.once(("forget", run.name), site.job_of(run).forget)
    return run, start(p, site, run)


def require_outputs_here(run: TrainingRun, known: Manifest, state: str) -> None:
    """Refuse to make a failed run again, which removes its folder on the nodes, while only they have its outputs."""
    if run.o["folder"] and "outputs" not in (known.get("end") or {}):
        raise TrainingFailed(
            f"The training run {run.name} has {state}, and its outputs are only on {next(iter(run.nodes))}: copy them, "
            f"and remove {run.dir} on {', '.join(run.nodes)}. Then the same command makes the run again."
        )


def _ended(p: Program, site: TrainingSite, running: Sequence[Running]) -> Running | None:
    """Return a run whose launcher reported its end, or whose job no longer runs."""
    for each in running:
        if each.watch.has_reported_end() or (
            each.watch.is_due(p.now(), LOOK_SECONDS) and not _is_alive(site, each.run)
        ):
            return each
    return None


def _is_alive(site: TrainingSite, run: TrainingRun) -> bool:
    """Return whether a job runs or, if its launcher does not answer, may run."""
    job = site.job_of(run).look().get("job")
    return job is None or job["state"] in ALIVE


def _finish(sweep: Sweep, ended: Running) -> None:
    """Bring back the results of a run that has ended."""
    p, site, run, watch = sweep.p, sweep.site, ended.run, ended.watch
    try:
        looked = p.ensure(lambda: required(site.job_of(run).look()))
        followed = p.ensure(lambda: watch.read_again(looked["job"]["state"]))
        end = Ended(looked, followed)
        report = bring_back(p, site, run, ended.started, end, watch)
        require_finished(p, site, run, end)
        judge(p, site, run, ended.started, {"report": report, "followed": followed}, watch.records)
    except CollectionError as error:
        sweep.failed(run.name, error)
    finally:
        p.ensure(watch.stop)


def _shown(
    p: Program, site: TrainingSite, groups: Sequence[Sequence[Variation]], known_of: KnownOf
) -> list[dict[str, Any]]:
    """Show the table, and return its rows."""
    rows = p.ensure(lambda: _rows(site, groups, known_of))
    for line in table(rows):
        p.say(line)
    return rows


def _rows(site: TrainingSite, groups: Sequence[Sequence[Variation]], known_of: KnownOf) -> list[dict[str, object]]:
    """Return the table in the order of the variations."""
    made = sorted((each for group in groups for each in group), key=lambda each: int(each.name.rpartition(".")[2]))
    metrics = site.calls.runs.last_metrics(site.results, [each.name for each in made])
    return [row(each, known_of(each.name), metrics.get(each.name) or {}) for each in made]


def sweep(p: Program, site: TrainingSite, o: Options, run_of: Callable[[Point], TrainingRun]) -> None:
    """Perform the runs of a measurement that have no good result yet; results on the controller are its journal."""
    p.ensure(lambda: require_good_network(site, o))
    plan = p.ensure(lambda: remaining(site, o))
    p.say(plan["summary"])
    for point in plan["left"]:
        run = run_of(point)
        # If the launcher does not answer, the job may run.
        state = required(p.ensure(site.job_of(run).look))["job"]["state"]
        if state not in ALIVE and (point["again"] or state != FINISHED):
            p.once(("forget", run.name), site.job_of(run).forget)
        train(p, site, run)


def remaining(site: TrainingSite, o: Options) -> dict[str, Any]:
    """Return the runs that are left as ``left``, and a sentence about them as ``summary``."""
    measured = {
        "name": o["sweep_name"],
        "nodes": o["nodes"],
        "sizes": [int(size) for size in o["sweep_nodes"]],
        "transports": o["sweep_transports"],
        "repeats": int(o["sweep_repeats"]),
    }
    results = {"path": o["results"], "state": "directory", "mode": "0700"}
    required(site.calls.here("ansible.builtin.file", results))
    return site.calls.runs.remaining(measured=measured, results=o["results"], requested=request_of(o), prove=o["prove"])


def require_good_network(site: TrainingSite, o: Options) -> None:
    """Refuse to measure a network with findings: the scaling would measure them."""
    found = site.calls.runs.network_findings(o["fabric_results"], o["nodes"], o["fabric_recent"])
    if found and not o["fabric_accepted"]:
        raise TrainingFailed(
            f"The network between the nodes has findings, so the scaling would measure them: {' '.join(found)} Correct "
            "them and run the playbook dml.vsphere.fabric_check again, or accept them with "
            "-e training_fabric_accepted=true."
        )
