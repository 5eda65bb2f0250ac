"""Returns docs/inventory.schema.json, from the argument specs of the roles.

Editors complete and check the variables of an inventory with this JSON schema.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
TYPES = {"str": "string", "path": "string", "int": "integer", "float": "number", "bool": "boolean"}
TYPES |= {"list": "array", "dict": "object"}
# Ansible converts texts, and each variable may be a template.
TEMPLATE = {"type": "string", "pattern": r"\{[{%]"}
ABOUT = "Variables of an inventory of the Ansible collection dml.vsphere; other variables are allowed."


def schema() -> dict[str, Any]:
    """Return the JSON schema of a file of group or host variables."""
    specs = sorted((ROOT / "roles").glob("*/meta/argument_specs.yml"))
    options = {name: spec for path in specs for name, spec in _options(path).items()}
    table = yaml.safe_load((ROOT / "playbooks" / "vars" / "options.yml").read_text())
    plain = {name for one in table["playbook_options"].values() for name in one.get("variables", [])}
    options = {name: table["playbook_types"].get(name, {"type": "raw"}) for name in plain} | options
    properties = {name: _value(spec) for name, spec in options.items()}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "dml.vsphere", "description": ABOUT}
    shape = {"type": "object", "$defs": {"template": TEMPLATE}, "properties": dict(sorted(properties.items()))}
    return {**head, **shape}


def _options(path: Path) -> dict[str, Any]:
    entries = yaml.safe_load(path.read_text())["argument_specs"].values()
    return {name: spec for entry in entries for name, spec in (entry.get("options") or {}).items()}


def _value(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one variable."""
    words = spec.get("description", "")
    text = " ".join(words) if isinstance(words, list) else words
    described = {"description": " ".join(text.split())} if text else {}
    if spec.get("type", "str") == "raw":
        return described
    kind: dict[str, Any] = {"type": TYPES[spec.get("type", "str")]}
    if kind["type"] == "string":
        # YAML reads 11 or true as another type, and Ansible makes a text of it.
        empty = ["null"] if spec.get("default") is None and not spec.get("required") else []
        kind = {"enum": spec["choices"]} if "choices" in spec else {"type": ["string", "number", "boolean", *empty]}
    elif kind["type"] == "array" and "elements" in spec:
        kind["items"] = _value({**_nested(spec), "type": spec["elements"], "required": True})
    elif kind["type"] == "object" and "options" in spec:
        kind["properties"] = {name: _value(below) for name, below in spec["options"].items()}
    return {**described, "anyOf": [kind, {"$ref": "#/$defs/template"}]}


def _nested(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: spec[key] for key in ("options", "choices") if key in spec}


def document() -> str:
    """Return the content of the file."""
    return json.dumps(schema(), indent=1, sort_keys=False) + "\n"
