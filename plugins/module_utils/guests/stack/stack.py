"""A stack from its file: its faults, the inputs that the user must provide, and the addresses of its files."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core import schema as schemas
from ...core.json_values import JsonObject
from . import image_parts

Stack = dict[str, Any]
# Parts that are installed only on request; their inputs are required only then.
OPTIONAL = ("container", "image")
DOCKER, OF_DOCKER = "docker", ("docker", "image", "digest")
_INSTALLED_FROM = {"package": "packages", "wheel": "wheel", "source": "source", "runfile": "source"}


class StackError(ValueError):
    """The stack does not have an input or a base."""


def faults(document: object, schema: Mapping[str, object]) -> list[str]:
    """Return a sentence for each fault of a stack: schema faults, else mismatched names, inputs and origins."""
    schema_faults = schemas.faults(document, schema)
    if schema_faults or not isinstance(document, Mapping):
        return schema_faults
    inside = image_parts.image_content(document)
    lacking = [name for name in image_parts.required_parts(document) if name not in document] if inside is None else []
    return [
        *_side_faults(image_parts.guest_program(document)),
        *_unlisted_inputs(document),
        *(f"image: {sentence}" for sentence in (_image_faults(document["image"], inside) if inside else [])),
        *(f"The stack has no image, and lacks {name!r}." for name in lacking),
    ]


def missing_inputs(document: JsonObject, parts: Sequence[str] = ()) -> list[str]:
    """Return the inputs without a value, of a stack and its requested optional parts."""
    return [path for path in _requested_parts(document, parts) if _get(document, path) is None]


def absent_parts(document: JsonObject, parts: Sequence[str]) -> list[str]:
    """Return a sentence for each requested optional part that the stack lacks."""
    return [f"It has no {part!r}." for part in parts if part not in OPTIONAL or not document.get(part)]


def completed(document: JsonObject, inputs: Mapping[str, str], bases: Mapping[str, str], mirror: str = "") -> Stack:
    """Return the stack with inputs and mirrors, and a URL next to the base and path of each file.

    A mirror of all bases has one folder per base, with its name.
    """
    stack = copy.deepcopy(dict(document))
    if mirror:
        stack["bases"] = {name: f"{mirror.rstrip('/')}/{name}" for name in stack["bases"]}
    for name, url in bases.items():
        if name not in stack["bases"]:
            raise StackError(f"The stack {stack['name']} has no base {name!r}; it has {', '.join(stack['bases'])}.")
        stack["bases"][name] = url
    for path, value in inputs.items():
        if path not in _requested_parts(stack, OPTIONAL):
            inputs_ = ", ".join(_requested_parts(stack, OPTIONAL))
            known = f"its inputs are {inputs_}" if inputs_ else "it has no inputs"
            raise StackError(f"The stack {stack['name']} has no input {path!r}; {known}.")
        _set(stack, path, value)
    _address(stack, stack["bases"])
    return stack


def without_urls(value: object) -> object:
    """Return the stack as its file has it, without the addresses."""
    if isinstance(value, dict):
        return {key: without_urls(child) for key, child in value.items() if key != "url"}
    return [without_urls(child) for child in value] if isinstance(value, list) else value


def _requested_parts(document: JsonObject, parts: Sequence[str]) -> list[str]:
    sections = [document, *(document.get(part) or {} for part in parts)]
    return [path for section in sections for path in section.get("inputs", [])]


def _address(value: object, bases: Mapping[str, str | None]) -> None:
    """Add a URL to each mapping that has a path and a base with an address."""
    if isinstance(value, dict):
        base = bases.get(value["base"]) if isinstance(value.get("base"), str) else None
        if base and "path" in value:
            value["url"] = f"{base.rstrip('/')}/{value['path'].lstrip('/')}"
        for child in value.values():
            _address(child, bases)
    elif isinstance(value, list):
        for child in value:
            _address(child, bases)


def _step(value: object, word: str) -> Any:
    """Return the value at one word of a dotted path; in a list, the entry with that name."""
    if isinstance(value, list):
        return next((entry for entry in value if isinstance(entry, Mapping) and entry.get("name") == word), None)
    return value.get(word) if isinstance(value, Mapping) else None


def _get(document: JsonObject, path: str) -> Any:
    """Return the value at the dotted path, or None."""
    value: Any = document
    for word in path.split("."):
        value = _step(value, word)
    return value


def _set(document: JsonObject, path: str, value: str) -> None:
    """Put a value at the dotted path, whose last word is a key of a mapping."""
    above, _dot, last = path.rpartition(".")
    _get(document, above)[last] = value


def _walk(value: object, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each mapping of the document with its dotted path."""
    if isinstance(value, Mapping):
        yield where, value
        for key, child in value.items():
            yield from _walk(child, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list):
        for position, child in enumerate(value, 1):
            name = child.get("name", position) if isinstance(child, Mapping) else position
            yield from _walk(child, f"{where}.{name}")


def _side_faults(side: Mapping[str, object]) -> list[str]:
    """Return the faults of names and origins in the guest, or in the image."""
    return [*_unknown_names(side), *_absent_origins(side)]


def _image_faults(own: JsonObject, inside: Mapping[str, object]) -> list[str]:
    """Return the faults of an image, which starts from an image of a registry or from an archive of files."""
    bases = bool(own.get("archive")) + ("from" in own and "digest" in own)
    lacking = [] if bases == 1 else ["give its base: either from and digest, or archive."]
    return [*lacking, *_side_faults(inside)]


def _unknown_names(document: JsonObject) -> Iterator[str]:
    """Yield a sentence for each name of a base, key or platform that the stack lacks."""
    for where, mapping in _walk(document, ""):
        base = mapping.get("base")
        if base is not None and base not in document["bases"]:
            yield f"{where} names the base {base!r}, and bases has {', '.join(document['bases'])}."
        for key in mapping.get("keys", []) if isinstance(mapping.get("keys"), list) else []:
            if key not in document.get("keys", {}):
                yield f"{where} names the key {key!r}, and keys has {', '.join(document.get('keys', {})) or 'none'}."
        for name in ("packages", "build_packages", "repositories"):
            by_platform = mapping.get(name)
            for platform in by_platform if isinstance(by_platform, Mapping) else ():
                if platform not in document["platforms"]:
                    offered = ", ".join(document["platforms"])
                    yield f"{where or 'The stack'} has {name} for {platform!r}, and platforms has {offered}."


def _unlisted_inputs(document: JsonObject) -> Iterator[str]:
    """Yield a sentence for each checksum without value and input, and for each input that is not in the stack."""
    inputs = _requested_parts(document, OPTIONAL)
    for where, mapping in _walk(document, ""):
        for key in ("sha256", "digest"):
            if key in mapping and mapping[key] is None and f"{where}.{key}" not in inputs:
                yield f"{where}.{key} is null: give the checksum, or list '{where}.{key}' in inputs."
    for path in inputs:
        above, _dot, last = path.rpartition(".")
        holder = _get(document, above) if above else document
        if not isinstance(holder, Mapping) or last not in holder:
            yield f"inputs names {path!r}, which is not in the stack."


def _absent_origins(document: JsonObject) -> Iterator[str]:
    """Yield a sentence for each part that lacks the origin from which it is installed."""
    container = document.get("container")
    if container and container.get("engine", DOCKER) == DOCKER:
        for name in OF_DOCKER:
            if name not in container:
                yield f"container has the engine docker, and lacks {name!r}."
    if "archive" in (document.get("python") or {}) and "prefix" not in document["python"]:
        yield "python comes from an archive, and lacks 'prefix', the folder that it gets."
    for name in ("gpu_driver", "openmpi"):
        part = document.get(name)
        if part and _INSTALLED_FROM[part["install"]] not in part:
            yield f"{name} is installed from a {part['install']} and lacks {_INSTALLED_FROM[part['install']]!r}."
