"""A plugin of mypy: ``get`` with a key that a TypedDict does not have is an error, as ``[]`` is."""

from __future__ import annotations

from collections.abc import Callable

from mypy.nodes import StrExpr
from mypy.plugin import MethodContext, Plugin
from mypy.plugins.default import typed_dict_get_callback
from mypy.types import Type, TypedDictType, get_proper_type


def checked_get(context: MethodContext) -> Type:
    """Return the type of the value, and report an unknown key."""
    read, key = get_proper_type(context.type), context.args[0][0] if context.args and context.args[0] else None
    if isinstance(read, TypedDictType) and isinstance(key, StrExpr) and key.value not in read.items:
        context.api.fail(f'TypedDict "{read.fallback.type.name}" has no key "{key.value}"', key)
    return typed_dict_get_callback(context)


class TypedKeys(Plugin):
    """The plugin, which mypy asks about each call of a method."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Return the check for ``get``."""
        return checked_get if fullname == "typing.Mapping.get" else None


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin."""
    return TypedKeys
