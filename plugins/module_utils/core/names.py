"""The valid forms of machine names and addresses from guests, vCenter and users."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping

# A name with which Ansible connects; ssh treats a leading dash as an option.
MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# A portable user name of POSIX; Ansible writes it into a command of a shell without quotes.
USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}")
# Ansible evaluates text with these as a template, unless the text is marked unsafe.
_TEMPLATE = ("{{", "{%", "{#")


def short_name(name: object) -> str:
    """Return the name of a machine in lower case, without its domain: guest, DNS and vSphere may differ in both."""
    first, _dot, domain = str(name).lower().partition(".")
    # Addresses of one network share their first part.
    return f"{first}.{domain}" if first.isdigit() else first


def is_machine(name: str) -> bool:
    """Return whether a name is a valid worker name."""
    return MACHINE.fullmatch(name) is not None


def is_user(name: object) -> bool:
    return isinstance(name, str) and USER.fullmatch(name) is not None


def address(text: object) -> str | None:
    """Return the normalized address of one other machine; None for any other text.

    A guest reports its address itself: behind a loopback or multicast address, another machine would answer.
    """
    try:
        parsed = ipaddress.ip_address(str(text))
    except ValueError:
        return None
    if getattr(parsed, "scope_id", None):  # the name of an interface, which may be any text
        return None
    is_other = parsed.is_loopback or parsed.is_multicast or parsed.is_unspecified or parsed.is_reserved
    return None if is_other else str(parsed)


def printable(text: str) -> str:
    """Return the text without characters that control a terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def odd(data: object) -> list[str]:
    """Return the texts in the data that contain a template or unprintable characters."""
    return [text for text in _texts(data) if not text.isprintable() or any(mark in text for mark in _TEMPLATE)]


def _texts(data: object) -> Iterable[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(data, (list, tuple)):
        for item in data:
            yield from _texts(item)
