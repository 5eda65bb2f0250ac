"""Calls that the server refuses for want of a privilege; a test file names its own in WITHOUT_PRIVILEGE."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, NamedTuple


class Case(NamedTuple):
    """A module, its options, the call that is refused, and the privilege that is missing."""

    module: str
    options: dict[str, Any]
    call: str
    privilege: str


def of_the_tests() -> tuple[Case, ...]:
    """The cases that the integration tests of single modules name, for the hosts of the usual data centre."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py"))
    modules = [importlib.import_module(f"tests.integration.{name}") for name in names]
    return tuple(case for module in modules for case in getattr(module, "WITHOUT_PRIVILEGE", ()))
