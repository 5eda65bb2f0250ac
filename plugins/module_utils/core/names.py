# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The forms of names and addresses that guests, vCenter and its users tell: which may stand for a machine."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

# A name that Ansible connects to by and shows: ssh takes a dash at its beginning for an option.
MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# By these Ansible knows a template, which it evaluates where a text is not marked unsafe.
_TEMPLATE = ("{{", "{%", "{#")


def short_name(name: object) -> str:
    """Return the name of a machine as its guest, DNS and vSphere agree on it: without case and domain."""
    first, _dot, domain = str(name).lower().partition(".")
    # Addresses of one network share their first part.
    return f"{first}.{domain}" if first.isdigit() else first


def is_machine(name: str) -> bool:
    """Whether a name has the form of a worker's."""
    return MACHINE.fullmatch(name) is not None


def address(text: Any) -> str | None:
    """An address by which one other machine can be reached, in its usual form; None for any other text.

    A guest tells its address itself: with one of the machine that asks, or of many, others would answer in its place.
    """
    try:
        found = ipaddress.ip_address(str(text))
    except ValueError:
        return None
    if getattr(found, "scope_id", None):  # the name of an interface, which may be any text
        return None
    is_other = found.is_loopback or found.is_multicast or found.is_unspecified or found.is_reserved
    return None if is_other else str(found)


def printable(text: str) -> str:
    """The text without characters that control a terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def odd(told: Any) -> list[str]:
    """The texts in some data that hold a template or signs that nobody can see, so that no person wrote them."""
    return [text for text in _texts(told) if not text.isprintable() or any(one in text for one in _TEMPLATE)]


def _texts(told: Any) -> Iterable[str]:
    if isinstance(told, str):
        yield told
    elif isinstance(told, Mapping):
        for key, value in told.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(told, (list, tuple)):
        for one in told:
            yield from _texts(one)
