"""The stop of a job right after a checkpoint, and its next attempt from there, in a window by restart; pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Dict

from ...durable.program import Program
from ...errors import Refused, WholeError
from ...training.ending.job_state import JobState
from ...training.results.checkpoint import SETTLED_SECONDS, WRITTEN
from ...training.runs.restartable import Checkpoints, Restartable, SeenCheckpoint
from ..evidence.restart_lines import checkpoint_in_words
from .trial import Trial
from .window_end import MOMENTS, attend

# Written before the job is touched for the first time: from then on, the window sees to it that the job runs again.
TOUCHED = "touches the job"
RUNNING = ("running", "waiting")
Stop = Dict[str, Any]
# Two readings of the time of one checkpoint differ by less, because nodes are slow to answer.
SAME_SECONDS = 10.0
# A checkpoint that is complete for less counts as the next one.
FRESH_SECONDS = 30.0
# Files that changed a moment ago count as complete a few seconds later.
SETTLED_AT_MOST = 4 * SETTLED_SECONDS


def stop_at_checkpoint(p: Program, trial: Trial, may_stop: Callable[[], str]) -> Stop:
    """Wait for a checkpoint, and stop the job right after it is complete; raise if none appears in time.

    ``may_stop`` returns why the window ends before the stop. A later controller waits for a new checkpoint: that of an
    earlier one is old.
    """
    job, window = trial.restartable(), trial.settings["window"]
    found = _found(p, trial)
    why = found.get("ends") or p.ensure(may_stop)
    if why:
        raise WholeError(f"{str(why).rstrip('.')}. {job.name} was not stopped.")
    if found["state"] == "finished":
        return {"state": "finished", "checkpoint": None, "waited_s": found["waited_s"]}
    if found["state"] not in RUNNING and p.written(TOUCHED) is None:
        raise WholeError(f"{job.name} does not run any more, it is {found['state']}{_because(found['why'])}.")
    if found["checkpoint"] is None:
        found["checkpoint"] = _accepted(p, trial, float(window.get("accept_repeat_s") or 0.0), found["state"])
    _touch(p, trial, None)
    p.say(f"stops {job.name} at {checkpoint_in_words(found['checkpoint'], 'its')}")
    ended = _stopped(p, job)
    # Another one may have become complete until the last process ended.
    checkpoint = _settled(p, job)["newest"] or found["checkpoint"]
    stopped = {key: ended.get(key) for key in ("state", "exit_code", "why")}
    known = {"state": "stopped", "stopped": stopped, "checkpoint": checkpoint}
    return {**known, "waited_s": found["waited_s"], "at": p.now()}


def _stopped(p: Program, job: Restartable) -> JobState:
    """Stop the job, and return its end; raise if its owner was faster, who does not want it to go on."""
    ended, by_owner = p.ensure(job.stop), p.ensure(job.stopped_by_owner)
    if by_owner:
        raise WholeError(f"{job.name} does not run any more: it was {by_owner}.")
    return ended


def _found(p: Program, trial: Trial) -> Stop:
    """Wait until a new checkpoint is complete, the job ends, the user ends the window, or the time is over."""
    job, window, began = trial.restartable(), trial.settings["window"], p.now()
    signal, seconds = str(window.get("checkpoint_signal") or ""), float(window.get("checkpoint_wait") or 0)
    # If it is written, this controller has now come as far as the one that wrote it.
    touched = p.written(TOUCHED) and p.once(TOUCHED, dict)
    state, before = p.ensure(job.state)["state"], p.ensure(job.checkpoints)
    newest = usable(before)
    is_fresh = newest is not None and p.now() - newest["since"] < FRESH_SECONDS
    beyond = None if is_fresh else newest
    if state not in RUNNING and touched:
        # An earlier controller stopped it, and died before it had written that.
        beyond = touched["beyond"]
    elif state in RUNNING and not is_fresh:
        p.say(_waiting(before, signal, seconds))
    if state in RUNNING and signal and not is_fresh:
        why_not = why_no_signal(signal, before)
        if why_not:
            raise Refused(job.name, f"send {signal} to its ranks", *why_not)
        _touch(p, trial, beyond)
        p.ensure(partial(job.ask_for_checkpoint, signal, seconds))
    found = p.wait(partial(_event, p, trial, beyond), seconds) or _saved_last(p, trial, beyond)
    now = p.ensure(job.state)
    known = {"state": now["state"], "why": now.get("why") or "", "checkpoint": None, "ends": ""}
    return {**known, **found, "waited_s": p.now() - began}


def usable(found: Checkpoints) -> SeenCheckpoint | None:
    """Return the newest complete checkpoint; none if it lacks the optimizer: the job would resume as another one."""
    newest = found["newest"]
    return None if newest is None or newest["optimizer"] is False else newest


def why_none(found: Checkpoints) -> str:
    """Return why a job has no checkpoint from which it could start again."""
    newest = found["newest"]
    if newest:
        return f"{checkpoint_in_words(newest, 'its')} has no state of the optimizer"
    return found["why"] or "it has no complete checkpoint"


def why_no_signal(signal: str, found: Checkpoints) -> tuple[str, str] | None:
    """Return why a signal must not be sent, and what to do: a job that ends at it must be able to start again."""
    if not signal or usable(found):
        return None
    cause = f"{why_none(found)}, so it could not start again if it ended without saving"
    return cause, "wait for its first checkpoint, or leave window_checkpoint_signal out"


def _event(p: Program, trial: Trial, beyond: SeenCheckpoint | None) -> Stop:
    """Return a checkpoint after a known one, the end of the job, or the user's request to end; empty without any."""
    job = trial.restartable()
    trial.polls += 1
    ends = attend(p, trial) if trial.polls % MOMENTS == 1 or trial.site.must_pause() else ""
    if ends:
        return {"ends": ends}
    found = job.checkpoints()
    newest = usable(found)
    if newest and _is_after(newest, beyond):
        return {"checkpoint": newest}
    state = job.state()
    return {} if state["state"] in RUNNING or _is_being_written(found) else {"state": state["state"]}


def _saved_last(p: Program, trial: Trial, beyond: SeenCheckpoint | None) -> Stop:
    """Return the checkpoint after a known one of a job that saved it and ended just before the time was over."""
    job = trial.restartable()
    newest = usable(_settled(p, job)) if p.ensure(job.state)["state"] not in RUNNING else None
    return {"checkpoint": newest} if newest and _is_after(newest, beyond) else {}


def _is_being_written(found: Checkpoints) -> bool:
    """Return whether the files of the newest checkpoint have just changed; that of an ended job is complete soon."""
    return found["torn"] is not None and found["torn"]["why"] == WRITTEN


def _settled(p: Program, job: Restartable) -> Checkpoints:
    """Return the checkpoints once the files of the newest one no longer change."""

    def are_settled() -> Checkpoints | None:
        found = job.checkpoints()
        return None if _is_being_written(found) else found

    return p.wait(are_settled, SETTLED_AT_MOST) or p.ensure(job.checkpoints)


def _is_after(checkpoint: SeenCheckpoint, known: SeenCheckpoint | None) -> bool:
    """Return whether a checkpoint is a later one; a program may write all of them into one file."""
    if known is None:
        return True
    seconds = checkpoint["since"] - known["since"]
    is_other = (checkpoint["path"], checkpoint["step"]) != (known["path"], known["step"])
    return seconds > SAME_SECONDS or (is_other and seconds > -SAME_SECONDS)


def _accepted(p: Program, trial: Trial, most: float, state: str) -> SeenCheckpoint:
    """Return the newest complete checkpoint if the user accepts the repetition of the time since; raise otherwise.

    Only ``start_again`` withdraws the request: a job that has ended since would count as finished, and stay so.
    """
    job, window = trial.restartable(), trial.settings["window"]
    found = p.ensure(job.checkpoints)
    newest = usable(found)
    age = p.now() - newest["since"] if newest else 0.0
    if newest and age <= most:
        return newest
    signal = f" after the signal {window['checkpoint_signal']}" if window.get("checkpoint_signal") else ""
    cause = f"no new checkpoint was complete{signal} within {float(window.get('checkpoint_wait') or 0):.0f} s"
    if state == "stopped":
        cause = f"it ended{signal} without a new checkpoint"
    if found["torn"]:
        cause += f"; {found['torn']['path']} is not complete: {found['torn']['why']}"
    older = f"{checkpoint_in_words(newest, 'its')} is {age:.0f} s old" if newest else why_none(found)
    remedy = (
        "set window_checkpoint_wait to more than its interval, or window_accept_repeat_s to the accepted repetition"
    )
    raise Refused(job.name, "stop it at a checkpoint", f"{cause}, and {older}", remedy)


def _touch(p: Program, trial: Trial, beyond: SeenCheckpoint | None) -> None:
    """Write once that the job is touched now, and its last checkpoint: at its end, there must be a later one."""
    if p.written(TOUCHED) is None:
        p.once(TOUCHED, lambda: {"at": p.now(), "beyond": beyond})
    trial.facts.restart["touched"] = True
    p.ensure(partial(trial.site.write_facts, trial.facts))


def start_again(p: Program, trial: Trial) -> dict[str, object]:
    """Start the next attempt of a job that this window has stopped; it may run already, or may not have been stopped.

    Return ``run``, its name, or ``why`` none was started.
    """
    job, known = trial.restartable(), trial.facts.restart.get("stop") or {}
    why = _taken_by_owner(job)
    if why:
        job.free_nodes()
        return {"run": "", "why": why}
    state = job.state()["state"]
    # A job that keeps its name may run again, because an earlier controller died after it had started it.
    is_started = state in RUNNING and known.get("state") == "stopped"
    if state in RUNNING and not is_started:
        job.withdraw()
        return {"run": "", "why": f"{job.name} was not stopped"}
    if state == "finished":
        # It may have finished while an earlier controller was about to stop it.
        job.withdraw()
        return {"run": "", "why": f"{job.name} has finished"}
    if not is_started:
        # An earlier attempt at stopping it may have failed after the processes ended.
        job.stop()
    checkpoint = known.get("checkpoint") or _required_checkpoint(job)
    p.say(f"starts {job.name} again from {checkpoint_in_words(checkpoint, 'its')}")
    parts = [list(part) for part in trial.facts.restart.get("parts") or []]
    started = job.start_again(checkpoint, {"waited_s": known.get("waited_s"), "down": parts})
    owner = str(started.get("by_owner") or "")
    return {"run": "", "why": f"its owner has resumed it as {owner}"} if owner else dict(started)


def _taken_by_owner(job: Restartable) -> str:
    """Return what the owner has done with the job, which the window leaves so; empty for nothing."""
    # Its launcher may be on a host that stays lost.
    owner = job.by_owner()
    if owner:
        return f"its owner has resumed it as {owner}"
    stopped = job.stopped_by_owner()
    return f"{job.name} was {stopped}" if stopped else ""


def _required_checkpoint(job: Restartable) -> SeenCheckpoint:
    """Return the newest complete checkpoint of a job; raise without one."""
    newest = job.checkpoints()["newest"]
    if newest is None:
        remedy = "resume it by hand, then end the window with dml.vsphere.window and window_action=end"
        raise Refused(job.name, "start it again", "it has no complete checkpoint", remedy)
    return newest


def _waiting(before: Checkpoints, signal: str, seconds: float) -> str:
    interval = f", one each {before['interval']:.0f} s" if before["interval"] else ""
    if signal:
        return f"sends {signal} to the ranks, and waits at most {seconds:.0f} s for their checkpoint"
    return f"waits at most {seconds:.0f} s for the next checkpoint{interval}"


def _because(why: str) -> str:
    return f": {why}" if why else ""
