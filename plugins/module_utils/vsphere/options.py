"""The options of vCenter and of virtual machines as the server stores them, and the values that count as true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .faults import translating_faults
from .sdk import vim
from .session import Session

# VMware treats each of these as true, in upper or lower case.
_TRUE = frozenset({"true", "yes", "1"})


def is_on(value: object) -> bool:
    """Return whether the value of an option is true; an option that is not set (None) is not."""
    return str(value).strip().lower() in _TRUE


def extra_config(options: Sequence[Any] | None) -> dict[str, str]:
    """Return the advanced settings of a virtual machine by key."""
    return {str(one.key): str(one.value) for one in options or []}


def vcenter_option(session: Session, key: str) -> object:
    """Return the value of one vCenter option, in its type; None if it is not set or does not exist."""
    with translating_faults(session.server, f"read its option {key}"):
        try:
            found = session.content.setting.QueryOptions(key)
        except vim.fault.InvalidName:
            return None
    return next((one.value for one in found or [] if one.key == key), None)
