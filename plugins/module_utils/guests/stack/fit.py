# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The fit of all parts of a stack, by the facts of stacks/facts/compatibility.yml."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import fit_gpu, fit_software, image_parts
from .misfits import Facts, Finding, Stack

Rule = Callable[[Stack, Facts], Iterator[Finding]]
RULES: tuple[Rule, ...] = (*fit_gpu.RULES, *fit_software.RULES)
# Beside an image the guest has a system and containers, and nothing that trains.
OF_GUEST: tuple[Rule, ...] = (fit_software.system, fit_software.container)


@dataclass(frozen=True)
class Surroundings:
    """The system, GPU and host driver that a stack meets, as far as they are known."""

    platform: str | None = None
    gpu: str | None = None
    host_driver: str | None = None


def findings(stack: Stack, facts: Facts, around: Surroundings | None = None) -> list[Finding]:
    """All pairs that do not fit, and all of which no source says whether they fit."""
    found = [finding for rule in RULES for finding in rule(image_parts.trains(stack), facts)]
    if stack.get("image"):
        found += [finding for rule in OF_GUEST for finding in rule(image_parts.guest(stack), facts)]
    return [*found, *_findings_around(stack, facts, around or Surroundings())]


def misfits(stack: Stack, facts: Facts, around: Surroundings | None = None) -> list[str]:
    """A sentence on each pair that does not fit."""
    return [finding.sentence for finding in findings(stack, facts, around) if finding.misfit]


def not_established(stack: Stack, facts: Facts, around: Surroundings | None = None) -> list[str]:
    """A sentence on each pair of which no source says whether it fits."""
    return [finding.sentence for finding in findings(stack, facts, around) if not finding.misfit]


def _findings_around(stack: Stack, facts: Facts, around: Surroundings) -> Iterator[Finding]:
    """The findings on the node's system, its GPU and its host."""
    platforms: Mapping[str, Any] = stack["platforms"]
    if around.platform is not None and around.platform not in platforms:
        yield Finding(f"The stack is for {', '.join(platforms)} and the node has {around.platform}.", True)
    if around.gpu is not None:
        yield from fit_gpu.gpu_of_node(image_parts.trains(stack), facts, around.gpu)
    if around.host_driver is not None:
        yield from fit_gpu.host_and_guest(stack, facts, around.host_driver)
