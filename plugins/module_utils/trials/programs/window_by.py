"""The program of a maintenance window: by moves or by a restart, as requested, or as costs the job less; pure."""

from __future__ import annotations

from ...durable.program import Program
from ..steps.trial import Trial
from ..steps.window_ways import AUTO, INSTEAD, MOVE, RESTART, choose
from .maintenance_window import window
from .restart_window import restart_window


def window_by(p: Program, trial: Trial) -> str:
    """Return why the window failed; empty if it did not."""
    by = trial.settings["window"].get("by") or MOVE
    if by == AUTO:
        way = p.once("way", lambda: choose(trial, p.now()))
        p.say(way["why"])
        by = way["by"]
    if by == RESTART:
        return restart_window(p, trial)
    reason = window(p, trial)
    is_without_plan = p.written("cluster") is not None and p.written("plan") is None
    is_refused = is_without_plan or any(not move["ok"] for move in trial.facts.moves)
    return f"{reason} {INSTEAD}" if reason and is_refused else reason
