"""Custom attributes of vCenter: notes that stay with an object and that every controller sees."""

from __future__ import annotations

import time

from ..errors import Refused, StillDiffers
from .faults import translating_faults
from .sdk import ApiObject, vim
from .session import Session

CHANGED = "CustomFieldValueChangedEvent"
KEPT_SECONDS, PAUSE_SECONDS = 5.0, 0.5


def value_of(name: str, available_fields: ApiObject, custom_values: ApiObject) -> str:
    """Return the text of an attribute from an object's ``availableField`` and ``customValue``; empty without one."""
    key = next((field.key for field in available_fields or [] if field.name == name), None)
    return next((one.value for one in custom_values or [] if one.key == key), "")


def other_author(session: Session, ref: object, target: str, name: str) -> str:
    """Return the other account that wrote an attribute last, by the events that vCenter still has; empty if none did.

    Each user who may set custom attributes can write a note of ours.
    """
    entity = vim.event.EventFilterSpec.ByEntity(entity=ref, recursion="self")
    spec = vim.event.EventFilterSpec(entity=entity, eventTypeId=[CHANGED])
    with translating_faults(target, f"look up who wrote its custom attribute {name}"):
        events = session.content.eventManager.QueryEvents(spec)
    writes = [event for event in events or [] if event.name == name and event.userName]
    last = max(writes, key=lambda event: (event.createdTime, event.key), default=None)
    return last.userName if last is not None and last.userName.lower() != session.account.lower() else ""


def store(session: Session, ref: object, target: str, name: str, text: str, kind: object = None) -> None:
    """Set an attribute of a host or another object, and define the attribute if it is missing."""
    manager = session.content.customFieldsManager
    with translating_faults(target, f"write its custom attribute {name}"):
        key = _key(session, name)
        if key is None:
            try:
                key = manager.AddCustomFieldDef(name=name, moType=kind or vim.HostSystem).key
            except vim.fault.DuplicateName:  # another controller won
                key = _key(session, name)
        manager.SetField(entity=ref, key=key, value=text)
        is_kept = _is_kept(ref, key, text)
    if not is_kept:
        reason = "the server accepted it, yet the object does not show it"
        raise StillDiffers(target, f"write its custom attribute {name}", reason, "look at vCenter's log (vpxd.log)")


def _is_kept(ref: ApiObject, key: int | None, text: str) -> bool:
    """Return whether an object shows the text within seconds; later decisions must not rely on a discarded note."""
    deadline = time.monotonic() + KEPT_SECONDS
    while True:
        if next((one.value for one in ref.customValue or [] if one.key == key), "") == text:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(PAUSE_SECONDS)


def definitions(session: Session) -> list[ApiObject]:
    """Return all attributes that this vCenter defines."""
    with translating_faults(session.server, "read its custom attributes"):
        return list(session.content.customFieldsManager.field or [])


def require(session: Session, name: str) -> None:
    """Refuse an attribute that this vCenter does not define."""
    names = sorted(field.name for field in definitions(session))
    if name not in names:
        reason = f"it has {', '.join(names) or 'none'}"
        raise Refused(session.server, f"find its custom attribute {name}", reason, "correct the name")


def _key(session: Session, name: str) -> int | None:
    return next((field.key for field in session.content.customFieldsManager.field or [] if field.name == name), None)
