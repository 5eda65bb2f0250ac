"""Values for typed options: the user's value in the type of the server's option."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

BOOL, INTEGER, FLOAT, TEXT = "bool", "integer", "float", "text"
_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}


def checked(value: object, definition: Mapping[str, Any]) -> Any:
    """Return the value in the type of the server's definition; a ValueError states the allowed values."""
    if value is None:
        raise ValueError("it has no value, and options of a server cannot be removed")
    given = typed(value, definition["kind"])
    least, most, choices = definition["min"], definition["max"], definition["choices"]
    if (least is not None and given < least) or (most is not None and given > most):
        raise ValueError(f"{given} is not within {least} to {most}")
    if choices is not None and given not in choices:
        raise ValueError(f"{given!r} is not one of {', '.join(choices)}")
    strange = sorted(set(given) - set(definition["characters"])) if definition["characters"] else []
    if strange:
        raise ValueError(f"{''.join(strange)!r} is not among the characters {definition['characters']}")
    return given


def typed(value: object, kind: str) -> Any:
    """Return the value as the kind. Templates return text, so text is accepted; a ValueError states the fault."""
    text = str(value).strip()
    if kind == BOOL:
        if text.lower() not in _TRUE | _FALSE:
            raise ValueError(f"{value!r} is not true or false")
        return text.lower() in _TRUE
    if kind in {INTEGER, FLOAT}:
        return _number(value, text, kind)
    return text.lower() if isinstance(value, bool) else str(value)


def _number(value: object, text: str, kind: str) -> object:
    try:
        if isinstance(value, bool):
            raise ValueError(text)
        number = int(text, 0) if kind == INTEGER else float(text)
        if not math.isfinite(number):
            raise ValueError(text)
        return number
    except (ValueError, OverflowError):
        raise ValueError(f"{value!r} is not a number") from None


def kind_of(value: object) -> str:
    """Return the kind of a value from the server or the user."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INTEGER
    return FLOAT if isinstance(value, float) else TEXT
