# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The hooks of a maintenance window, and the acknowledgement of the owner of its job; pure."""

from __future__ import annotations

import json
from functools import partial

from ...durable.program import Program
from ...errors import WholeError
from .trial import Trial

EVENTS = ("start", "host", "breach", "pause", "end")
# An acknowledgement applies only to the next window.
ACK_SECONDS = 86_400.0


def notify(p: Program, trial: Trial, event: str, about: str) -> None:
    """Tell the hooks of the user about an event. A hook that fails or hangs does not stop the window."""
    for number, hook in enumerate(trial.settings["window"].get("notify") or [], start=1):
        if event not in (hook.get("events") or EVENTS):
            continue
        key = "notice", event, trial.facts.round, number
        called = p.once(key, partial(trial.site.notify, hook, _text(trial, event, about)))
        p.say(f"window_notify {number}: {called['msg']}" if called.get("msg") else "")


def notify_of_pause(trial: Trial) -> None:
    """Tell the hooks that the window stops and stays open; each pause is a new event, so nothing is written."""
    for hook in trial.settings["window"].get("notify") or []:
        if "pause" in (hook.get("events") or EVENTS):
            trial.site.notify(hook, _text(trial, "pause", ", ".join(trial.facts.waiting_hosts)))


def _text(trial: Trial, event: str, about: str) -> str:
    facts = trial.facts
    content = {
        "event": event,
        "about": about,
        "cluster": facts.cluster,
        "folder": trial.site.folder,
        "done": [change["host"] for change in facts.finished_changes],
        "left": facts.waiting_hosts,
        "verdict": (facts.judged or {}).get("verdict"),
    }
    return f"{json.dumps(content)}\n"


def require_acknowledgement(p: Program, trial: Trial) -> None:
    """Raise unless the owner of the job has acknowledged the window within the last day, if the window requires it."""
    if not trial.settings["window"].get("requires_ack"):
        return
    p.say("looks for the acknowledgement of the owner of the job")
    at = p.once("acknowledgement", lambda: _acknowledged(p, trial))
    if not at:
        raise WholeError(
            f"Cluster {trial.facts.cluster}: the owner of the job has not acknowledged the window: {trial.job.ack}."
        )


def _acknowledged(p: Program, trial: Trial) -> float:
    at = trial.job.acknowledged()
    return at if p.now() - at < ACK_SECONDS else 0.0
