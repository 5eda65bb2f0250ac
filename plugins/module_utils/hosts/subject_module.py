"""The module of one subject: its arguments and its run are derived from the subject's Part."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from .. import runner
from ..runner import Params
from ..vsphere import inventory, session
from . import cluster_image
from .part import Part, ProfileContext


def arguments(part: Part) -> dict[str, Any]:
    return {
        "argument_spec": {**session.arguments(), **inventory.ARGUMENTS, **_options(part)},
        "supports_check_mode": True,
        "required_one_of": [*inventory.EXACTLY_ONE, *part.spec.get("required_one_of", ())],
        "mutually_exclusive": inventory.EXACTLY_ONE,
        "required_if": part.spec.get("required_if"),
    }


def run(module: runner.Module, part: Part) -> None:
    """Bring the part to its desired state on all hosts, and end the module."""
    runner.run(module, lambda: _converge(module, part))


def _converge(module: runner.Module, part: Part) -> dict[str, object]:
    params, value = module.params, _value(part, module.params)
    further = part.result(value)
    with session.session(params) as opened:
        hosts = inventory.find_hosts(opened, params, (*part.paths, *part.paths_of(value)))
        context = ProfileContext({part.key: value}, images=cache(partial(cluster_image.managed_clusters, opened)))
        subjects = [subject for host in hosts.hosts for subject in part.members(host, value, context)]
        return {**runner.converge(module, runner.Work(subjects=subjects, refresh=hosts.refresh_for)), **further}


def _options(part: Part) -> Mapping[str, object]:
    options: Mapping[str, Any] = part.spec.get("options") or {"options": {**part.spec, "required": True}}
    return options


def _value(part: Part, params: Params) -> object:
    """Return the value under the key of the part in a profile that is equivalent to the options of the module."""
    if "options" not in part.spec:
        return params["options"]
    value = {name: params[name] for name in part.spec["options"]}
    return [value] if part.spec["type"] == "list" else value
