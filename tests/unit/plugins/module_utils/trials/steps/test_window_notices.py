"""The bodies that hooks of a window get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from plugins.module_utils.trials.steps.window_end import EVENTS, in_format

ROOT = Path(__file__).resolve().parents[6]


def event_of(event: str, **more: Any) -> dict[str, Any]:
    about = {"host": "esx01.lab", "breach": "rank 1 ended"}.get(event, "esx01.lab, esx02.lab")
    plain = {"event": event, "about": about, "cluster": "gpu", "folder": "/srv/gpu-1", "verdict": None}
    return {**plain, "done": ["esx05.lab"], "left": ["esx01.lab", "esx02.lab"], **more}


def documented() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the example and the schema of the page."""
    page = (ROOT / "docs/maintenance-window.md").read_text().partition("## Hooks")[2]
    example, schema = (json.loads(block.partition("```")[0]) for block in page.split("```json\n")[1:3])
    return example, schema


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_obeys_the_schema_of_the_page(event: str) -> None:
    example, schema = documented()
    check = jsonschema.Draft202012Validator(schema)

    check.validate(example)
    check.validate(in_format("json", event_of(event)))
    assert not check.is_valid({**example, "event": "resume"})
    assert schema["properties"].keys() == set(schema["required"]) == event_of(event).keys()


def test_chat_gets_the_event_as_text() -> None:
    text = "Window of cluster gpu: breach: rank 1 ended (1 changed, 2 left)"
    assert in_format("slack", event_of("breach")) == {"text": text}


@pytest.mark.parametrize(("event", "severity"), [("breach", "critical"), ("pause", "warning"), ("host", "info")])
def test_alert_labels_name_cluster_and_severity(event: str, severity: str) -> None:
    (alert,) = in_format("alertmanager", event_of(event))

    labels = {"alertname": "MaintenanceWindow", "cluster": "gpu", "event": event, "severity": severity}
    assert alert["labels"] == labels
    assert alert["annotations"]["summary"].startswith(f"Window of cluster gpu: {event}: ")
