"""Judges exchanges over vCenter's REST API by VMware's descriptions of it."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

FILE = Path(__file__).parent / "fixtures" / "rest" / "descriptions.json.xz"
# Each request must fit all descriptions.
RELEASES = ("7.0.3", "8.0.2", "9.1.1")
# Paths whose description of 8.0.2 is missing.
WITHOUT_8 = "/api/vcenter/"
TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "number": (int, float),
    "array": list,
    "object": dict,
}
# The results of tasks, by operation, as other operations describe them.
RESULTS = {
    "scan$task": "EsxSettingsClusterCompliance",
    "check$task": "EsxSettingsClustersSoftwareReportsLastCheckResultCheckResult",
    "apply$task": "EsxSettingsClustersSoftwareReportsLastApplyResultApplyResult",
}
# The SDK of 9.1.1 has these operations without their action.
WITHOUT_ACTION = re.compile(
    r"/api/cis/tasks\?action=list|/api/vcenter/storage/policies/[^/]+\?action=check-compatibility"
)
# Fields of later releases.
LATER = {"check_issues"}
Schema = Mapping[str, Any]


@cache
def _description(release: str) -> Any:
    return json.loads(lzma.decompress(FILE.read_bytes()))[release]


def problems(exchange: Mapping[str, Any]) -> list[str]:
    """Return what in a request and its answer does not fit the descriptions."""
    path = exchange["path"]
    without = {"8.0.2": path.startswith(WITHOUT_8), "9.1.1": bool(WITHOUT_ACTION.fullmatch(path))}
    releases = [one for one in RELEASES if not without.get(one)]
    found = [problem for release in releases for problem in _request(release, exchange)]
    # The simulator answers as 8.0; the description of 9.1.1 lacks statuses.
    answered = [one for one in releases if one != "9.1.1"][-1]
    operation = _operation(answered, exchange)
    if operation and str(exchange["status"]) not in operation["responses"]:
        found.append(f"no status {exchange['status']}")
    for release in {answered, releases[-1]}:
        operation = _operation(release, exchange)
        schema = (operation or {"responses": {}})["responses"].get(str(exchange["status"]), {})
        found += _misfits(release, schema, _parsed(exchange["answer"]), "answer")
    found += _result_misfits(_parsed(exchange["answer"]))
    return [f"{exchange['method']} {exchange['path']}: {problem}" for problem in dict.fromkeys(found)]


def _result_misfits(answer: Any) -> Iterator[str]:
    """Return what in the result of a finished task does not fit; descriptions leave its type open."""
    task = answer if isinstance(answer, dict) else {}
    kind = RESULTS.get(task.get("operation", ""))
    if kind and task["status"] == "SUCCEEDED":
        yield from _misfits("8.0.2", _description("8.0.2")["definitions"][kind], task["result"], "result")


def _request(release: str, exchange: Mapping[str, Any]) -> Iterator[str]:
    operation = _operation(release, exchange)
    if operation is None:
        yield f"{release} has no such operation"
        return
    bodies = [one for one in operation["parameters"] if one["in"] == "body"]
    body = _parsed(exchange["body"])
    if body is None:
        yield from (f"{release} requires a body" for one in bodies if one.get("required"))
    elif not bodies:
        yield f"{release} takes no body"
    else:
        yield from _misfits(release, bodies[0]["schema"], body, "body")


def _parsed(text: str) -> Any:
    """Return a body or an answer, None if it is empty, and text that is not JSON as it is."""
    try:
        return json.loads(text) if text.strip() else None
    except ValueError:
        return text


def _operation(release: str, exchange: Mapping[str, Any]) -> Any:
    """Return the description of a request's operation; None if there is none."""
    path, _mark, query = exchange["path"].partition("?")
    for template, verbs in _description(release)["paths"].items():
        its_path, _mark, its_query = template.partition("?")
        operation = verbs.get(exchange["method"].lower())
        if operation is None or not re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", its_path), path):
            continue
        known = {one["name"] for one in operation["parameters"] if one["in"] == "query"}
        if {pair for pair in parse_qsl(query) if pair[0] not in known} == set(parse_qsl(its_query)):
            return operation
    return None


def _misfits(release: str, schema: Schema, value: Any, where: str) -> Iterator[str]:
    while "$ref" in schema:
        schema = _description(release)["definitions"][schema["$ref"].rpartition("/")[2]]
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (kind == "integer" and isinstance(value, bool))):
        yield f"{where} is not of the type {kind} in {release}: {json.dumps(value)[:80]}"
    elif value not in schema.get("enum", [value]):
        yield f"{where} is {value}, which {release} does not know"
    elif kind == "array":
        for one in value:
            yield from _misfits(release, schema.get("items", {}), one, f"{where}[]")
    elif kind == "object":
        yield from _fields(release, schema, value, where)


def _fields(release: str, schema: Schema, value: Mapping[str, Any], where: str) -> Iterator[str]:
    fields, required = schema.get("properties", {}), schema.get("required", [])
    yield from (f"{where} lacks {key}, which {release} requires" for key in required if value.get(key) is None)
    for key, one in value.items():
        if key in fields or "additionalProperties" in schema:
            # An optional field may be null.
            if one is not None:
                its = fields[key] if key in fields else schema["additionalProperties"]
                yield from _misfits(release, its, one, f"{where}.{key}")
        elif fields and key not in LATER:
            yield f"{where}.{key} is not in {release}"
