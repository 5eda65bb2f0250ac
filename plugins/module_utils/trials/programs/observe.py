"""The program of an observation: judge a job while others move its workers, and write nothing to vCenter; pure."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...durable.program import Program
from ..evidence.outcome import outcome
from ..steps.ending import close, finish, judge_the_end, leave
from ..steps.holding import watch_of_records
from ..steps.judgement import judge
from ..steps.observing import call_hook, has_judged_events, interval, is_due, rolled, saved
from ..steps.opening import measure, prepare
from ..steps.trial import Trial


def observe(p: Program, trial: Trial) -> str:
    """Return why the observation failed; empty if the job is continuous."""
    with p.attempt("the observation") as whole:
        prepare(p, trial)
        with watch_of_records(p, trial):
            with p.attempt("the intervals") as intervals:
                measure(p, trial)
                judge_repeatedly(p, trial)
            close(trial, intervals)
            finish(p, trial)
    close(trial, whole)
    judge_the_end(p, trial)
    call_hook(p, trial)
    leave(p, trial)
    return outcome(trial.facts, trial.site.folder, p.left)


def judge_repeatedly(p: Program, trial: Trial) -> None:
    """Judge the job after each interval, until it ends, the time is over, or its end is requested."""
    facts, number = trial.facts, 0
    now: dict[str, Any] = {"at": facts.began, "asked": False}
    while is_due(facts, now) and not facts.stopped:
        number += 1
        now = p.once(("interval", number), partial(interval, p, trial, now["at"]))
        p.say("ends the observation, as requested" if now["asked"] else "")
        judge(p, trial)
        call_hook(p, trial)
        if is_due(facts, now) and has_judged_events(facts, now["at"]):
            drop_records(p, trial, number)


def drop_records(p: Program, trial: Trial, number: int) -> None:
    """Write the verdict and the page of the events so far, and remove the records behind it."""
    files: list[str] = []
    if trial.facts.others or trial.facts.power:
        p.say("writes the verdict and the page of these events")
        files = p.once(("saved", number), lambda: saved(trial))
    # If a controller died after the watch began a new file, it begins another one: the verdict above has those records.
    window = p.once(("rolled", number), lambda: rolled(trial, files, p.now()))
    trial.facts.keep_window(window)
