# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Definitions of the options of a vCenter or host: the type and range of a value, and how a value is sent."""

from __future__ import annotations

from typing import Any

from .sdk import VmomiSupport, vim


def kind_of(option: Any) -> str:
    """The kind of value that an option takes: bool, integer, float or text."""
    if isinstance(option, vim.option.BoolOption):
        return "bool"
    if isinstance(option, (vim.option.IntOption, vim.option.LongOption)):
        return "integer"
    return "float" if isinstance(option, vim.option.FloatOption) else "text"


def definition_of(option: Any) -> dict[str, Any]:
    """What the server allows for an option, as plain data; None for what it does not restrict."""
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


def option_value(key: str, value: Any, option: Any) -> Any:
    """An option with its value as its own type: servers refuse an int for a long, and a text for a truth value."""
    long = isinstance(option, vim.option.LongOption)
    return vim.option.OptionValue(key=key, value=VmomiSupport.long(value) if long else value)
