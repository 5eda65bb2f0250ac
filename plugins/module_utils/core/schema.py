"""The part of JSON Schema that stacks, evidence and dml.yml use, with a sentence for each fault.

It supports $ref to $defs, type, enum, pattern with a title, required, properties, additionalProperties, items, minimum,
minItems and minProperties.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

Schema = Mapping[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (Mapping,),
    "array": (list, tuple),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
_WORDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "text in quotes",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
}
# Keywords without a check: those that the walk itself uses, and annotations.
_ANNOTATIONS = {"$schema", "$defs", "title", "type", "properties", "items"}


def faults(document: object, schema: Schema, name: str = "The stack") -> list[str]:
    """Return a sentence for each fault of a document with this name."""
    return [f"{where or name} {fault}" for where, fault in _faults(document, schema, schema, "")]


def _faults(value: object, schema: Schema, root: Schema, where: str) -> Iterator[tuple[str, str]]:
    """Yield the faults in a value, nested values included, each with its position; empty for the whole document."""
    if "$ref" in schema:
        yield from _faults(value, _resolved(schema["$ref"], root), root, where)
        return
    types = schema.get("type", list(_TYPES))
    names = [types] if isinstance(types, str) else types
    if not any(_is(value, name) for name in names):
        yield where, f"must be {' or '.join(_WORDS[name] for name in names)}, and is {value!r}."
        return
    for keyword in schema:
        if keyword not in _ANNOTATIONS:
            yield from ((where, fault) for fault in _CHECKS[keyword](value, schema))
    for child, child_schema, child_where in _children(value, schema, where):
        yield from _faults(child, child_schema, root, child_where)


def _resolved(reference: str, root: Schema) -> Schema:
    definition: Schema = root["$defs"][reference.removeprefix("#/$defs/")]
    return definition


def _is(value: object, name: str) -> bool:
    """Return whether a value is of a JSON type; true is not a number."""
    return isinstance(value, _TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))


def _children(value: object, schema: Schema, where: str) -> Iterator[tuple[object, Schema, str]]:
    """Yield the nested values of a value, with their schemas."""
    if isinstance(value, Mapping):
        others = schema.get("additionalProperties", {})
        for key, child in value.items():
            child_schema = schema.get("properties", {}).get(key, others)
            if isinstance(child_schema, Mapping):
                yield child, child_schema, f"{where}.{key}" if where else str(key)
    elif isinstance(value, (list, tuple)) and "items" in schema:
        for position, child in enumerate(value, 1):
            yield child, schema["items"], f"{where}[{position}]"


def _choices(value: object, schema: Schema) -> Iterator[str]:
    if value not in schema["enum"]:
        offered = ", ".join(str(choice) for choice in schema["enum"] if choice is not None)
        yield f"must be one of {offered}, and is {value!r}."


def _pattern(value: object, schema: Schema) -> Iterator[str]:
    if isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"is {value!r}, which is not {schema['title']}."


def _required(value: object, schema: Schema) -> Iterator[str]:
    for key in schema["required"] if isinstance(value, Mapping) else ():
        if key not in cast(Mapping[str, Any], value):
            yield f"lacks {key!r}."


def _unknown(value: object, schema: Schema) -> Iterator[str]:
    if schema["additionalProperties"] is not False or not isinstance(value, Mapping):
        return
    known = schema.get("properties", {})
    for key in value:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, 1, 0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}."
            yield f"has the unknown key {key!r}: {hint}"


def _minimum(value: object, schema: Schema) -> Iterator[str]:
    if isinstance(value, (int, float)) and value < schema["minimum"]:
        yield f"must be {schema['minimum']} or more, and is {value!r}."


def _fewest(value: object, schema: Schema) -> Iterator[str]:
    fewest = schema.get("minItems", schema.get("minProperties"))
    if isinstance(value, (list, tuple, Mapping)) and len(value) < fewest:
        yield f"must have {fewest} or more entries, and has {len(value)}."


_CHECKS: dict[str, Callable[[object, Schema], Iterator[str]]] = {
    "enum": _choices,
    "pattern": _pattern,
    "required": _required,
    "additionalProperties": _unknown,
    "minimum": _minimum,
    "minItems": _fewest,
    "minProperties": _fewest,
}
