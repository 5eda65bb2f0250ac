"""The types of the variables of an inventory: a sentence for each value that its variable cannot have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Spec = Mapping[str, Any]

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "a mapping",
    "path": "a path",
}
_BOOLEANS = frozenset({"y", "yes", "on", "1", "true", "t", "n", "no", "off", "0", "false", "f"})
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
LONGEST = 40


def wrong_types(
    specs: Mapping[str, Spec], values: Mapping[str, object], texts: frozenset[str] = frozenset()
) -> list[str]:
    """Return a sentence for each variable with a value of a wrong type.

    ``texts`` are variables that the command line gives as text, in which a comma separates the entries of a list.
    """
    sentences = []
    for name in sorted(set(specs) & set(values)):
        spec, value = specs[name], values[name]
        if name in texts and isinstance(value, str) and _is_list_of_texts(spec):
            continue
        sentences += list(_problems(f"the variable {name}", spec, value))
    return sentences


def _is_list_of_texts(spec: Spec) -> bool:
    return spec.get("type") == "list" and spec.get("elements", "str") == "str"


def _problems(name: str, spec: Spec, value: Any) -> Iterator[str]:
    """Yield the sentences about a value, or about the first of its entries that is wrong."""
    kind = spec.get("type", "str")
    if kind == "raw" or _is_template(value):
        return
    # An empty path would be the current folder.
    if value is None or (kind == "path" and value == "" and spec.get("required")):
        if spec.get("default") is not None or spec.get("required"):
            yield f"{name} has no value, but must be {_type_name(spec)}"
    elif not _fits(kind, value):
        yield f"{name} must be {_type_name(spec)}, not {_shown(value)}"
    elif kind == "list":
        yield from _of_list(name, spec, value)
    elif kind == "dict":
        yield from _of_mapping(name, spec.get("options") or {}, value)
    elif "choices" in spec and str(value) not in map(str, spec["choices"]):
        yield f"{name} must be {_type_name(spec)}, not {_shown(value)}"


def _of_list(name: str, spec: Spec, value: list[object]) -> Iterator[str]:
    """Yield the sentences about the entries of a list."""
    below = {key: spec[key] for key in ("options", "choices") if key in spec}
    entry = {**below, "type": spec.get("elements", "raw"), "required": True}
    for place, each in enumerate(value, start=1):
        yield from _problems(f"entry {place} of {name}", entry, each)


def _of_mapping(name: str, options: Mapping[str, Spec], value: Mapping[str, object]) -> Iterator[str]:
    """Yield the sentences about the keys of a mapping whose keys are known."""
    if not options:
        return
    for key in [key for key in value if key not in options]:
        yield f"{name} has the key {key}, but it can have only {', '.join(options)}"
    for key, spec in options.items():
        if key in value:
            yield from _problems(f"{key} of {name}", spec, value[key])
        elif spec.get("required"):
            yield f"{name} lacks the key {key}"


def _type_name(spec: Spec) -> str:
    if "choices" in spec and spec.get("type", "str") != "list":
        return f"one of {', '.join(map(str, spec['choices']))}"
    return _WORDS.get(spec.get("type", "str"), "a text")


def _shown(value: object) -> str:
    """Return a value in words: its type, plus the value of strings and numbers."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}...") if isinstance(value, str) else text


def _is_template(value: object) -> bool:
    return isinstance(value, str) and ("{{" in value or "{%" in value)


def _fits(kind: str, value: object) -> bool:
    """Return whether Ansible can use a value, which is not null, as one of a type."""
    if kind in ("list", "dict"):
        return isinstance(value, (list, tuple) if kind == "list" else Mapping)
    if isinstance(value, (list, tuple, Mapping)):
        return False
    if kind == "bool":
        return str(value).lower().removesuffix(".0") in _BOOLEANS
    if kind not in ("int", "float"):
        return True
    return not isinstance(value, bool) and (_is_whole(value) if kind == "int" else _is_number(value))


def _is_whole(value: object) -> bool:
    return float(value).is_integer() if isinstance(value, float) else _WHOLE.fullmatch(str(value)) is not None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
