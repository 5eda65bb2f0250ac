"""Options keyed by object name: Ansible's argument specification cannot express them, so they are checked here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..errors import Refused
from .properties import Properties


def by_name(option: str, spec: Mapping[str, object], values: Properties) -> dict[str, dict[str, object]]:
    """Return the options of each name with their defaults; refuse the first that does not match its specification."""
    return {name: _checked(f"{option} of {name}", spec, given) for name, given in values.items()}


def require_positive(params: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise ``Refused`` for options that must be above 0, before a module connects to vCenter."""
    if wrong := [f"{name} is {params[name]:g}" for name in names if params[name] <= 0]:
        raise Refused("the options of the module", "read them", f"{', '.join(wrong)}", "give a number above 0")


def _checked(target: str, spec: Mapping[str, object], given: object) -> dict[str, object]:
    if not isinstance(given, dict):
        raise Refused(target, "read it", f"{given!r} is not a dictionary", "correct it")
    result = ArgumentSpecValidator(spec).validate(given)
    if result.error_messages:
        raise Refused(target, "read it", "; ".join(result.error_messages), "correct it")
    return dict(result.validated_parameters)
