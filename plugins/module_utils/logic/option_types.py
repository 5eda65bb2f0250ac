# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Values for typed options: what a user wrote, as the type that the server wants."""

from __future__ import annotations

from typing import Any

BOOL, INTEGER, FLOAT, TEXT = "bool", "integer", "float", "text"
_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}


def typed(value: Any, kind: str) -> Any:
    """The value as the kind; a ValueError says what it is not. Templates make text of everything, so text is read."""
    text = str(value).strip()
    if kind == BOOL:
        if text.lower() not in _TRUE | _FALSE:
            raise ValueError(f"{value!r} is not true or false")
        return text.lower() in _TRUE
    if kind in {INTEGER, FLOAT}:
        return _number(value, text, kind)
    return text.lower() if isinstance(value, bool) else str(value)


def _number(value: Any, text: str, kind: str) -> Any:
    try:
        if isinstance(value, bool):
            raise ValueError(text)
        return int(text, 0) if kind == INTEGER else float(text)
    except ValueError:
        raise ValueError(f"{value!r} is not a number") from None


def kind_of(value: Any) -> str:
    """The kind of a value that the server or the user gave."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INTEGER
    return FLOAT if isinstance(value, float) else TEXT
