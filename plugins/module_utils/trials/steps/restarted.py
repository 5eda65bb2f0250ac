"""The evidence of a window by restart: the time without the job by part, its next attempt, and the result; pure."""

from __future__ import annotations

from functools import partial

from ...durable.program import Program
from ...watch.live_pace import AwaitedSteps
from ..evidence import restart_lines
from .ending import close
from .opening import FIRST_STEP_SECONDS
from .trial import Trial, tried


def keep_part(p: Program, trial: Trial, name: str) -> None:
    """Keep a part of the time without the job, from the end of the one before."""
    known = trial.facts.restart
    at = p.once(("end of", name), p.now)
    before = known.get("part_ended") or (known.get("stop") or {}).get("at") or at
    known.setdefault("parts", []).append([name, max(0.0, at - float(before))])
    known["part_ended"] = at


def judge_next(p: Program, trial: Trial) -> None:
    """Wait for steps of the next attempt that no earlier one made, and judge the restart."""
    known = trial.facts.restart
    if not known["started"].get("run"):
        return
    job = trial.restartable(known["started"])
    watch = job.watch()
    with p.attempt("the first steps") as seen, p.held("the watch of the next attempt", watch.start, watch.stop):
        p.say("waits for the first steps")
        p.once("first steps", lambda: new_steps(trial, watch.records))
    close(trial, seen)
    known["verdict"] = tried(p, trial, "verdict", job.judged)


def new_steps(trial: Trial, records: str) -> bool:
    """Wait until every rank has made some steps, and return True."""
    settings, first = trial.settings, FIRST_STEP_SECONDS
    awaited = AwaitedSteps(int(settings["steps"]), float(settings["warm_timeout"]) + first, first=first)
    trial.site.records.wait_for_steps(records, awaited)
    return True


def outcome(p: Program, trial: Trial) -> str:
    """Write the evidence, show the result, and return why the window failed; empty if it did not."""
    facts = trial.facts
    p.ensure(partial(trial.site.write_facts, facts))
    for line in restart_lines.lines(facts):
        p.say(line)
    for name, content in {"window": facts.host_changes, "restart": facts.restart}.items():
        p.ensure(partial(trial.site.write, name, content))
    return " ".join([*restart_lines.reasons(facts), *p.left.values()])
