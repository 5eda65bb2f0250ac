# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The modules that the effects of a program run, and the error of a module that failed; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, Protocol

from ..errors import CollectionError
from .program import World

Result = Dict[str, Any]


class Calls(World, Protocol):
    """A world whose effects are modules. A module that fails returns a result with ``failed`` and ``msg``."""

    def here(self, module: str, options: Mapping[str, Any]) -> Result:
        """Run a module on the controller, and return its result."""

    def there(self, module: str, options: Mapping[str, Any]) -> Result:
        """Run a module on the host to which the task of the program is delegated, and return its result."""


class ModuleFailed(CollectionError):
    """A module failed; its message is a sentence already, and its result may have more."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.result = dict(result)
        self.sentence = str(result.get("msg") or "the module failed without a message")
        super().__init__("", "", self.sentence)

    def __str__(self) -> str:
        return self.sentence


def required(result: Result) -> Result:
    """Return a result; raise ModuleFailed if its module failed."""
    if result.get("failed"):
        raise ModuleFailed(result)
    return result
