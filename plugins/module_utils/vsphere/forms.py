"""The form that an answer of the REST API must have, as far as the collection uses it.

A form is a type. ``[form]`` is a list of that form, and ``{str: form}`` a mapping with any names. ``{"name": form}`` is
an object with these fields and any others; a field written as ``"name?"`` may be missing or null.
"""

from __future__ import annotations

from typing import Any

ANY = object
_WORDS = {str: "text", bool: "true or false", int: "a whole number", dict: "an object", list: "a list"}


def misfit(value: Any, form: Any, where: str = "it") -> str:
    """Return why an answer does not have the form; empty if the answer has it."""
    if isinstance(form, list):
        each = [(f"{where}[{index}]", one, form[0]) for index, one in enumerate(value)] if _is(value, list) else []
        return _first(each) if _is(value, list) else _is_no(where, list)
    if not isinstance(form, dict):
        return "" if _is(value, form) else _is_no(where, form)
    if not _is(value, dict):
        return _is_no(where, dict)
    if str in form:
        return _first([(f"{where}.{name}", one, form[str]) for name, one in value.items()])
    needed = {name.rstrip("?"): one for name, one in form.items() if not _may_lack(value, name)}
    return _first([(f"{where}.{name}", value.get(name), one) for name, one in needed.items()])


def _may_lack(value: dict[str, object], name: str) -> bool:
    return name.endswith("?") and value.get(name.rstrip("?")) is None


def _first(each: list[tuple[str, object, object]]) -> str:
    return next((found for found in (misfit(value, form, where) for where, value, form in each) if found), "")


def _is(value: Any, kind: Any) -> bool:
    """Return whether a value is of a type; true and false are not numbers, as in JSON."""
    return isinstance(value, kind) and (kind in (bool, ANY) or not isinstance(value, bool))


def _is_no(where: str, kind: Any) -> str:
    return f"{where} is not {_WORDS[kind]}"
