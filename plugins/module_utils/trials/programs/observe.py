"""The program of an observation: judge a job while others move its workers, and write nothing to vCenter; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from ...continuity.judged_facts import Move
from ...durable.program import Program
from ...errors import CollectionError
from ...watch.live_pace import AwaitedSteps
from ..evidence import move_lines
from ..evidence.facts import Facts
from ..evidence.outcome import outcome
from ..steps.ending import close, finish, judge_the_end, keep_end_of_watch, leave
from ..steps.holding import watch_of_records
from ..steps.judgement import judge
from ..steps.opening import measure, prepare
from ..steps.trial import Trial

# More steps than any job makes in one interval: only the time-out ends the call.
NO_END = 1 << 40
# The records of a job for this long are enough to judge it; older ones are removed once they were judged.
KEEP_SECONDS = 600.0
STALLED, BROKEN = "stalled", "broken"
STALL_SECONDS, HOOK_SECONDS = 10.0, 60.0
OF_MOVE = ("worker", "source", "target", "by", "started", "completed", "ok")


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
            keep_end_of_watch(p, trial)
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


def is_due(facts: Facts, now: Mapping[str, Any]) -> bool:
    """Return whether the observation goes on: its duration is not over, the job runs, and no request ends it."""
    return not now["asked"] and now["at"] < facts.began + float(facts.settings["duration"]) and facts.is_running


def interval(p: Program, trial: Trial, since: float) -> dict[str, Any]:
    """Wait for the next judgement, or until the end of the observation is requested."""
    left = trial.facts.began + float(trial.settings["duration"]) - since
    seconds = max(1.0, min(float(trial.settings["observe"]["seconds"]), left))
    awaited, is_requested = AwaitedSteps(NO_END, seconds, since, ended_by=f"{trial.site.folder}/end"), False
    # The wait always times out: no rank completes that number of steps.
    with suppress(CollectionError):
        is_requested = bool(trial.site.records.wait_for_steps(trial.records, awaited)["asked"])
    return {"asked": is_requested, "at": p.now()}


def has_judged_events(facts: Facts, now: float) -> bool:
    """Return whether the records of the present window can go: it is long enough, and every move in it is judged."""
    keep = float(facts.settings["observe"].get("keep") or KEEP_SECONDS)
    return now >= (facts.rolled_at or facts.began) + keep and all(_has_settled(move, facts) for move in facts.others)


def _has_settled(move: Move, facts: Facts) -> bool:
    """Return whether a move, and the time in which the job must continue after it, are over."""
    completed = move.get("completed")
    return completed is not None and completed + facts.resume_deadline_s < facts.observed_until


def saved(trial: Trial) -> list[str]:
    """Write the verdict on the present records next to the earlier ones; return the names of the files."""
    return [str(path).rpartition("/")[2] for path in trial.here("continuity_verdict", test=trial.site.folder)["files"]]


def rolled(trial: Trial, files: list[str], now: float) -> dict[str, object]:
    """Have the watch begin new records; return the verdict on the earlier ones, which later verdicts contain."""
    facts, is_rolled = trial.facts, trial.site.roll_records()
    moves = [move_lines.without_events(move) for move in facts.others]
    rows = list((facts.judged or {}).get("moves") or []) if moves else []
    content = {"moves": moves, "rows": rows, "power": [*(facts.power or [])], "files": files}
    return {"rolled": is_rolled, "until": facts.observed_until, "at": now, **content}


def call_hook(p: Program, trial: Trial) -> None:
    """Run the command of the user if a move of others stalled the job, or if the job broke."""
    words = tuple(map(str, (trial.settings["observe"] or {}).get("hook") or []))
    new = [event for event in events(trial.facts) if event["key"] not in trial.facts.hooked]
    if not words or not new:
        return
    verdict = (trial.facts.judged or {}).get("verdict")
    content = {"cluster": trial.facts.cluster, "folder": trial.site.folder, "verdict": verdict, "events": new}
    p.say("runs the command of observe_hook")
    key = "hook", len(trial.facts.hooked) + 1
    called = p.once(key, lambda: trial.site.run_command(words, f"{json.dumps(content)}\n", HOOK_SECONDS))
    # A command that fails does not end the observation.
    p.say(str(called.get("msg") or ""))
    trial.facts.hooked += [event["key"] for event in new]


def events(facts: Facts) -> Iterator[dict[str, Any]]:
    """Yield the stalls and breaches in the verdict, each with a key."""
    judged = facts.judged or {}
    least = (facts.settings.get("observe") or {}).get("stall_seconds") or STALL_SECONDS
    for move, row in zip(facts.every_move, judged.get("moves") or []):
        if (row.get("gap_s") or 0.0) >= float(least):
            yield _stall(move, row)
    for breach in judged.get("breaches") or []:
        detail = str(breach["detail"])
        yield {"kind": BROKEN, "key": f"{BROKEN} {breach.get('kind')} {detail}", "detail": detail}


def _stall(move: Move, row: Mapping[str, object]) -> dict[str, object]:
    where = {key: move.get(key) for key in OF_MOVE}
    detail = f"{move['worker']} moved from {move.get('source')} to {move.get('target')}"
    sentence = f"{detail}, and the job stood still for {row['gap_s']:.1f} s"
    # The times of a move differ by milliseconds each time they are read.
    key = f"{STALLED} {move.get('chain')} {move['worker']}"
    return {"kind": STALLED, "key": key, "detail": sentence, "move": where, "gap_s": row["gap_s"]}
