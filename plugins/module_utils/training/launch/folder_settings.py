"""The settings of a folder in its file dml.yml, as options of the role training; pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from ...core import schema as schemas
from ...errors import Refused
from .data import is_url

FILE = "dml.yml"
# The keys that are options of the role under the same name.
SAME = ("command", "ranks_per_node", "data_sha256", "outputs", "outputs_every", "sweep", "attempts")
SCALARS = (str, int, float)
LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(.*)", re.ASCII)


def options_of(folder: str, document: Any, schema: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that the document of a folder sets; refuse it with all its faults.

    ``variables`` are those of the file in ``environment_from``; the document outweighs them.
    """
    path = posixpath.join(folder, FILE)
    document = {} if document is None else document
    if faults := schemas.faults(_without_values(document), schema, FILE):
        text = " ".join(faults).rstrip(".")
        raise Refused(
            path, "read the settings of the folder", text, f"correct {FILE}; docs/dml.schema.json describes its keys"
        )
    options = {key: document[key] for key in SAME if key in document}
    if "data" in document:
        # The file travels with its folder, wherever the command is typed.
        options["data"] = _beside(folder, document["data"])
    if "nodes" in document:
        nodes = document["nodes"]
        options["nodes"] = [str(nodes)] if isinstance(nodes, int) else list(nodes)
    if variables or "environment" in document:
        own = {str(name): str(value) for name, value in (document.get("environment") or {}).items()}
        options["environment"] = {**variables, **own}
    if "stun_seconds" in document.get("window", {}):
        options["stun_seconds"] = document["window"]["stun_seconds"]
    return options


def variables_of(path: str, text: str) -> dict[str, str]:
    """Return the variables in a file with a line NAME=VALUE for each; no error has a value."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.strip()
        if not plain or plain.startswith("#"):
            continue
        match = LINE.fullmatch(plain)
        value = _unquoted(match[2]) if match else None
        if not match or value is None:
            cause = f"line {number} is not NAME=VALUE, or its quote does not end"
            raise Refused(path, "read the variables of the ranks", cause, "write one variable on each line")
        found[match[1]] = value
    return found


def _unquoted(text: str) -> str | None:
    """Return a value without its quotes, or without the comment after it; None if a quote does not end."""
    quote = text[:1] if text[:1] in ("'", '"') else ""
    if not quote:
        return re.sub(r"\s+#.*", "", text)
    end = text.find(quote, 1)
    rest = text[end + 1 :].strip()
    return None if end < 0 or (rest and not rest.startswith("#")) else text[1:end]


def _without_values(document: Any) -> object:
    """Return a document for the check, whose faults show values: not those of the environment, which may be secrets."""
    given = document.get("environment") if isinstance(document, Mapping) else None
    if not isinstance(given, Mapping):
        return document
    masked = {
        name: "" if isinstance(each, SCALARS) and not isinstance(each, bool) else None for name, each in given.items()
    }
    return {**document, "environment": masked}


def _beside(folder: str, given: str) -> str:
    return given if is_url(given) or given.startswith("~") else posixpath.join(folder, given)
