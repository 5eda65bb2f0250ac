# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""From the words of a host profile to its parts: which subjects it means, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ..vsphere.fleet import Host
from . import kernel_module
from .kernel_module import KernelModule
from .profile import Part

OPTIONS: dict[str, Any] = {
    "kernel_modules": {"type": "list", "elements": "dict", "default": [], "options": kernel_module.OPTIONS},
}
PATHS = tuple(dict.fromkeys((*kernel_module.PATHS,)))


def parts_of(host: Host, profile: Mapping[str, Any]) -> list[Part]:
    """The parts of one host's profile."""
    return [*_kernel_modules(host, profile["kernel_modules"])]


def _kernel_modules(host: Host, wanted: list[Mapping[str, Any]]) -> Iterator[Part]:
    for one in wanted:
        plan = partial(kernel_module.plan_options, wanted=one["options"], exact=one["exact"])
        yield Part(f"kernel module {one['name']}", KernelModule(host, one["name"]), plan)
