"""Options of a vCenter or host: their properties, the type and range of a value, and how a value is sent."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any

from .faults import translating_faults
from .inventory import Host
from .properties import Properties
from .sdk import ApiObject, VmomiSupport, vim

_PLAIN = re.compile(r"[\w.-]+")
# Keys such as Config.HostAgent.level[Vmsvc].logLevel contain brackets, which have a meaning in property paths.
_ALL = "config.option"


def value_path(key: str) -> str:
    """Return the property of a host that contains the value of an advanced option: only this value, or all values."""
    return f'config.option["{key}"].value' if _PLAIN.fullmatch(key) else _ALL


def value_in(properties: Properties, key: str) -> Any:
    """Return the value of an advanced option from properties of its host; None if the host does not list it."""
    found = properties.get(value_path(key))
    if _PLAIN.fullmatch(key):
        return found
    return next((one.value for one in found or [] if one.key == key), None)


def type_path(key: str) -> str:
    """Return the property of a host that contains the type of an advanced option."""
    return f'config.optionDef["{key}"].optionType'


def paths(keys: Collection[str]) -> tuple[str, ...]:
    """Return the host properties for values and types of advanced options, without the types of keys with brackets."""
    plain = [key for key in keys if _PLAIN.fullmatch(key)]
    return tuple(dict.fromkeys((*map(value_path, keys), *map(type_path, plain))))


def types_of(host: Host, keys: Iterable[str]) -> tuple[dict[str, object], dict[str, list[str]]]:
    """Return the types of a host's advanced options by key, and similar keys for each option that the host lacks.

    The types are among the properties of the host; the complete list is read only if one of them is missing.
    """
    types = {key: host[type_path(key)] for key in keys}
    if all(types.values()):
        return types, {}
    with translating_faults(host.name, "read which advanced options it has"):
        known = {one.key: one.optionType for one in host["configManager.advancedOption"].supportedOption or []}
    types = {key: kind or known.get(key) for key, kind in types.items()}
    return types, {key: get_close_matches(key, known) for key, kind in types.items() if kind is None}


def kind_of(option: object) -> str:
    """Return the type of an option's value: bool, integer, float or text."""
    if isinstance(option, vim.option.BoolOption):
        return "bool"
    if isinstance(option, (vim.option.IntOption, vim.option.LongOption)):
        return "integer"
    return "float" if isinstance(option, vim.option.FloatOption) else "text"


def definition_of(option: ApiObject) -> dict[str, object]:
    """Return the values that the server allows for an option, as plain data; a missing restriction is None."""
    choices = [one.key for one in getattr(option, "choiceInfo", None) or []]
    index = getattr(option, "defaultIndex", None)
    return {
        "kind": kind_of(option),
        "min": getattr(option, "min", None),
        "max": getattr(option, "max", None),
        "choices": choices or None,
        "characters": getattr(option, "validCharacters", None) or None,
        "default": choices[index] if choices and index is not None else getattr(option, "defaultValue", None),
        "read_only": bool(option.valueIsReadonly),
    }


def option_value(key: str, value: object, option: object) -> Any:
    """Return an option with a value of its type: servers refuse an int for a long, and a text for a boolean."""
    long = isinstance(option, vim.option.LongOption)
    return vim.option.OptionValue(key=key, value=VmomiSupport.long(value) if long else value)
