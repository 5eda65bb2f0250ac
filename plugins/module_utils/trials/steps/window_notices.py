"""The hooks of a maintenance window; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from ...durable.program import Program
from .trial import Trial

EVENTS = ("start", "host", "breach", "pause", "end")
SEVERITIES = {"breach": "critical", "pause": "warning"}


def notify(p: Program, trial: Trial, event: str, about: str) -> None:
    """Tell the hooks of the user about an event. A hook that fails or hangs does not stop the window."""
    for number, hook in enumerate(trial.facts.window.get("notify") or [], start=1):
        if event not in (hook.get("events") or EVENTS):
            continue
        key = "notice", event, trial.facts.round, number
        called = p.once(key, partial(trial.site.notify, hook, _text(trial, hook, event, about)))
        p.say(f"window_notify {number}: {called['msg']}" if called.get("msg") else "")


def notify_of_pause(trial: Trial) -> None:
    """Tell the hooks that the window stops and stays open; each pause is a new event, so nothing is written."""
    for hook in trial.facts.window.get("notify") or []:
        if "pause" in (hook.get("events") or EVENTS):
            trial.site.notify(hook, _text(trial, hook, "pause", ", ".join(trial.facts.waiting_hosts)))


def _text(trial: Trial, hook: Mapping[str, Any], event: str, about: str) -> str:
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
    return f"{json.dumps(in_format(hook.get('format') or 'json', content))}\n"


def in_format(name: str, content: Mapping[str, Any]) -> object:
    """Return an event in the format of its receiver: as it is, as a message of a chat, or as an alert."""
    if name == "json":
        return content
    done, left = len(content["done"]), len(content["left"])
    text = (
        f"Window of cluster {content['cluster']}: {content['event']}: {content['about']} ({done} changed, {left} left)"
    )
    if name == "slack":
        return {"text": text}
    severity = SEVERITIES.get(content["event"], "info")
    labels = {"alertname": "MaintenanceWindow", "cluster": content["cluster"], "event": content["event"]}
    annotations = {"summary": text, "folder": content["folder"]}
    return [{"labels": {**labels, "severity": severity}, "annotations": annotations}]
