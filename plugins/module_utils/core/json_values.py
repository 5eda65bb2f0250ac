"""JSON in the output of programs, as Ansible passes it on, and its objects."""

from __future__ import annotations

import json
from typing import Any, Mapping

# An object of JSON: the output of a program, a reply, or a document of this collection.
JsonObject = Mapping[str, Any]


def parse_json(value: object) -> Any:
    """Return the data in a JSON text; None for an empty text. Ansible before 2.19 passes data instead of text."""
    if not isinstance(value, str):
        return value
    return json.loads(value) if value.strip() else None


def mapping(value: object) -> JsonObject:
    """Return a JSON object; empty for any other value."""
    return value if isinstance(value, Mapping) else {}


def objects(value: object) -> list[JsonObject]:
    """Return the JSON objects in a list; empty for any other value."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
