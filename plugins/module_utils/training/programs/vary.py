# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Program: run one training program with each combination of values, side by side on groups of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...durable.calls import required
from ...durable.program import Program
from ..runs.run_watch import WEEK_SECONDS, RunWatch
from ..runs.training_run import TrainingFailed, TrainingRun
from ..variations import Variation, row, table
from .follow import ALIVE, Ended, TrainingSite
from .train import StartedJob, bring_back, judge, require_finished, start

# A launcher that reports no end is asked for the state of its job this often.
LOOK_SECONDS = 30.0


@dataclass(frozen=True)
class Running:
    """The run of a variation, which is followed."""

    variation: Variation
    run: TrainingRun
    started: StartedJob
    watch: RunWatch


def vary(
    p: Program,
    site: TrainingSite,
    groups: Sequence[Sequence[Variation]],
    run_of: Callable[[Variation], TrainingRun],
    known_of: Callable[[str], Mapping[str, Any]],
) -> dict[str, Any]:
    """Make the runs of all groups that have no result yet, and show one table; results here are the journal."""
    left = [[each for each in group if not p.ensure(partial(_is_made, known_of, each))] for group in groups]
    failures: dict[str, str] = {}
    with ExitStack() as watches:
        running = [_begin(p, site, group.pop(0), run_of, watches) for group in left if group]
        p.say("To stop a run, use ansible-playbook -i INVENTORY dml.vsphere.stop -e training_name=RUN")
        while running:
            ended = p.wait(partial(_ended, p, site, running), WEEK_SECONDS)
            if ended is None:
                raise TrainingFailed(f"{running[0].run.name} did not end within a week, and continues.")
            running.remove(ended)
            failures.update(_finish(p, site, ended))
            (group,) = (group for made, group in zip(groups, left) if ended.variation in made)
            running += [_begin(p, site, group.pop(0), run_of, watches)] if group else []
    rows = p.ensure(lambda: _rows(site, groups, known_of))
    for line in table(rows):
        p.say(line)
    if failures:
        raise TrainingFailed(f"{len(failures)} of {len(rows)} runs did not finish. {' '.join(failures.values())}")
    return {"changed": True, "rows": rows}


def _is_made(known_of: Callable[[str], Mapping[str, Any]], variation: Variation) -> bool:
    known = known_of(variation.name)
    return known.get("command") == variation.command and (known.get("end") or {}).get("state") == "finished"


def _begin(
    p: Program, site: TrainingSite, variation: Variation, run_of: Callable[[Variation], TrainingRun], watches: ExitStack
) -> Running:
    """Start the run of a variation and its watch."""
    run = run_of(variation)
    started = start(p, site, run)
    watch = RunWatch(site.calls, run, started.launched, started.rank_0(run))
    watches.enter_context(p.held(f"the watch of {run.name}", watch.start, watch.stop))
    values = ", ".join(f"{key} {value}" for key, value in variation.values.items())
    p.say(f"{run.name} trains on {', '.join(run.nodes)} with {values}")
    return Running(variation, run, started, watch)


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


def _finish(p: Program, site: TrainingSite, ended: Running) -> dict[str, str]:
    """Bring back the results of a run that has ended, and return its failure by its name; empty if it finished."""
    run, watch = ended.run, ended.watch
    followed = p.ensure(watch.read_again)
    looked = p.ensure(lambda: required(site.job_of(run).look()))
    end = Ended(looked, followed)
    try:
        report = bring_back(p, site, run, ended.started, end, watch)
        require_finished(p, site, run, end)
        judge(p, site, run, ended.started, {"report": report, "followed": followed}, watch.records)
    except TrainingFailed as error:
        p.say(str(error))
        return {run.name: str(error)}
    finally:
        p.ensure(watch.stop)
    return {}


def _rows(
    site: TrainingSite, groups: Sequence[Sequence[Variation]], known_of: Callable[[str], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the table in the order of the variations."""
    made = sorted((each for group in groups for each in group), key=lambda each: int(each.name.rpartition(".")[2]))
    results = site.calls.here("last_metrics", {"results": site.results, "runs": [each.name for each in made]})
    metrics = results.get("metrics") or {}
    return [row(each, known_of(each.name), metrics.get(each.name) or {}) for each in made]
