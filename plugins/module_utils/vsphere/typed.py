"""Walks through API values by their types: through their texts, and the fields that the type tables define."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from .sdk import VmomiSupport

_BASE = ("dynamicType", "dynamicProperty")


@dataclass(frozen=True)
class TypedField:
    """A field of a data object: the name of the object's type, its own name, its value, and whether it may be unset."""

    kind: str
    name: str
    value: Any
    optional: bool


def is_object(value: object) -> bool:
    """Return whether a value refers to an object of the inventory or to a manager."""
    return isinstance(value, VmomiSupport.ManagedObject)


def fields(value: object) -> Iterator[TypedField]:
    """Yield every field of every data object in a value."""
    for one in _data_objects(value):
        for info in _infos(one):
            yield TypedField(_name(one), info.name, getattr(one, info.name), bool(info.flags & VmomiSupport.F_OPTIONAL))


def replace_texts(value: object, new: Callable[[str, str, str], str], kind: str = "", name: str = "") -> Any:
    """Return the value with each text replaced, in place if possible; ``new`` gets type, field and text.

    Enumerations, references and numbers stay unchanged.
    """
    # pylint: disable-next=unidiomatic-typecheck # an enumeration is a kind of str
    if type(value) is str:
        return new(kind, name, value)
    if isinstance(value, list):
        value[:] = [replace_texts(one, new, kind, name) for one in value]
    elif _is_data(value):
        for info in _infos(value):
            before = getattr(value, info.name)
            after = replace_texts(before, new, _name(value), info.name)
            if after is not before:
                setattr(value, info.name, after)
    return value


def clear_numbers(value: object, names: Collection[str]) -> None:
    """Set the numbers in fields of these names to 0, in place."""
    for one in _data_objects(value):
        for info in _infos(one):
            if info.name in names and isinstance(getattr(one, info.name), int):
                setattr(one, info.name, info.type(0))


def plain(value: Any) -> Any:
    """Return a value as plain data: references by id, all times alike, so that calls can be compared."""
    if is_object(value):
        return str(value._moId)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if _is_data(value):
        given = {info.name: getattr(value, info.name) for info in _infos(value)}
        return {"": _name(value), **{name: plain(one) for name, one in given.items() if not _is_unset(one)}}
    if hasattr(value, "isoformat"):
        return "moment"
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)


def _data_objects(value: object) -> Iterator[Any]:
    if isinstance(value, list):
        for one in value:
            yield from _data_objects(one)
    elif _is_data(value):
        yield value
        for info in _infos(value):
            yield from _data_objects(getattr(value, info.name))


def _is_unset(value: object) -> bool:
    return value is None or (isinstance(value, list) and not value)


def _is_data(value: object) -> bool:
    return isinstance(value, (VmomiSupport.DataObject, VmomiSupport.GetVmodlType("vmodl.MethodFault")))


def _infos(value: Any) -> list[Any]:
    return [info for info in value._GetPropertyList() if info.name not in _BASE]


def _name(value: object) -> str:
    return type(value).__name__
