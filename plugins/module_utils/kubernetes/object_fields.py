"""Typed access to the fields of an API object, even if a field is missing or has another type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from ..core.json_values import mapping, objects

Object = Mapping[str, Any]
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_QUANTITY = re.compile(r"([0-9]{1,18})([kMGTPE]|[KMGTPE]i)")


def part(thing: object, key: str) -> Object:
    return mapping(mapping(thing).get(key))


def several(thing: object, key: str) -> list[Object]:
    return objects(mapping(thing).get(key))


def labels(thing: Object | None) -> Object:
    return part(part(thing, "metadata"), "labels")


def whole(value: object) -> int | None:
    """Return a whole number, also from the text of a label; None for anything else."""
    text = str(value)
    return int(text) if isinstance(value, (int, str)) and _WHOLE.fullmatch(text) else None


def is_deleted(thing: Object) -> bool:
    """Return whether an object was deleted, which is final: it may wait for the end of what depends on it."""
    return bool(part(thing, "metadata").get("deletionTimestamp"))


def quantity(value: object) -> int | None:
    """Return a number of devices: the API server writes 1000 as 1k; None for anything else."""
    scaled = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if not scaled:
        return whole(value)
    base = 1024 if scaled[2].endswith("i") else 1000
    return int(scaled[1]) * int(base ** ("KMGTPE".index(scaled[2][0].upper()) + 1))


def seconds(text: object) -> float | None:
    """Return a time of the API, such as 2026-07-03T14:59:17Z, in seconds since 1970; None for anything else."""
    whole, _dot, part = str(text or "").rstrip("Z").partition(".")
    try:
        at = datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return at.timestamp() + (float(f"0.{part}") if part.isdigit() else 0.0)


def conditions(thing: Object | None) -> dict[str, Object]:
    return {str(condition.get("type")): condition for condition in several(part(thing, "status"), "conditions")}


def is_true(conditions_by_type: Mapping[str, Object], kind: str) -> bool:
    return str(conditions_by_type.get(kind, {}).get("status")) == "True"
