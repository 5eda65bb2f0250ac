"""Parse, compare, merge and render driver option strings such as ``pfctx=0x08 pfcrx=0x08``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_KEY = re.compile(r"[A-Za-z0-9_.-]+")
# NVIDIA uses NVreg_RegistryDwords=RmPVMRL=0x01; a number before a second equals sign means that a blank is missing.
_VALUE = re.compile(r"[^\s=]+|[A-Za-z]\S*")
# A leading zero means octal in C and decimal to users, so 010 is not treated as a number and only equals itself.
_DECIMAL = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]+")


class OptionError(ValueError):
    """An option string, an option or a priority is invalid."""


def parse(text: str) -> dict[str, str]:
    """Return the keys and values of an option string, in their order."""
    options: dict[str, str] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if not equals or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise OptionError(f"The option string {text!r} cannot be read at {word!r}: expected key=value.")
        if key in options:
            raise OptionError(f"The option string {text!r} gives {key!r} twice, as {options[key]!r} and as {value!r}.")
        options[key] = value
    return options


def render(options: Mapping[str, object]) -> str:
    """Return the options as one string that ``parse`` accepts; True and False become 1 and 0, a list becomes 8,8."""
    return " ".join(f"{key}={value}" for key, value in _spelled(options).items())


def merge(current: str, desired: Mapping[str, object], exact: bool = False) -> str:
    """Return the current string with the desired options; equal values keep their spelling, ``exact`` drops others."""
    kept = parse(current)
    spelled = _spelled(desired)
    if exact:
        kept = {key: value for key, value in kept.items() if key in spelled}
    for key, value in spelled.items():
        if key not in kept or not same_value(kept[key], value):
            kept[key] = value
    return render(kept)


def differing(
    current: str, desired: Mapping[str, object], exact: bool = False
) -> dict[str, tuple[str | None, str | None]]:
    """Return the options that ``merge`` would change: key -> (before, after), None if absent."""
    before = parse(current)
    after = parse(merge(current, desired, exact))
    return {key: (before.get(key), after.get(key)) for key in (*before, *after) if before.get(key) != after.get(key)}


def same_value(first: str, second: str) -> bool:
    """Return whether two option values are equal: numbers as numbers, comma lists item by item."""
    return [_comparable(item) for item in first.split(",")] == [_comparable(item) for item in second.split(",")]


def pfc_mask(priorities: Iterable[int]) -> str:
    """Return the bit mask of 802.1p priorities for pfctx and pfcrx: [3] is 0x08."""
    mask = 0
    for priority in priorities:
        if isinstance(priority, bool) or not isinstance(priority, int) or not 0 <= priority <= 7:
            raise OptionError(f"The PFC priority {priority!r} is not one of the whole numbers 0 to 7.")
        mask |= 1 << priority
    return f"0x{mask:02x}"


def _spelled(options: Mapping[str, object]) -> dict[str, str]:
    spelled: dict[str, str] = {}
    for key, value in options.items():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise OptionError(f"The option name {key!r} is not valid in an option string.")
        text = _text(value)
        if text is None or not _VALUE.fullmatch(text):
            raise OptionError(
                f"The option {key!r} cannot be set to {value!r}: "
                "expected a whole number, a boolean, a list of them, or text without spaces."
            )
        spelled[key] = text
    return spelled


def _text(value: object) -> str | None:
    if isinstance(value, (list, tuple)):
        items = [_text(item) for item in value]
        return ",".join(map(str, items)) if all(items) else None
    if isinstance(value, int):
        return str(int(value))
    return str(value) if isinstance(value, str) else None


def _comparable(value: str) -> int | str:
    if _HEXADECIMAL.fullmatch(value):
        return int(value, 16)
    return int(value) if _DECIMAL.fullmatch(value) else value
