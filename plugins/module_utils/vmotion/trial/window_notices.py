# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The hooks of a maintenance window; pure."""

from __future__ import annotations

import json
from functools import partial

from ...durable.program import Program
from .trial import Trial

EVENTS = ("start", "host", "breach", "pause", "end")


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
