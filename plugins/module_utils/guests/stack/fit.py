"""The compatibility of all parts of a stack, from the tables of stacks/facts/compatibility.yml."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import fit_gpu, fit_software, image_parts
from .compatibility import CompatibilityIssue, CompatibilityTables, Stack

Rule = Callable[[Stack, CompatibilityTables], Iterator[CompatibilityIssue]]
RULES: tuple[Rule, ...] = (*fit_gpu.RULES, *fit_software.RULES)
# If there is an image, the guest has only a system and containers, and does not train.
OF_GUEST: tuple[Rule, ...] = (fit_software.system, fit_software.container)


@dataclass(frozen=True)
class NodeEnvironment:
    """The known system, GPU and host driver of a node."""

    platform: str | None = None
    gpu: str | None = None
    host_driver: str | None = None


def issues(stack: Stack, facts: CompatibilityTables, around: NodeEnvironment | None = None) -> list[CompatibilityIssue]:
    """Return all pairs that are incompatible, or whose compatibility no source confirms."""
    result = [issue for rule in RULES for issue in rule(image_parts.training_side(stack), facts)]
    if stack.get("image"):
        result += [issue for rule in OF_GUEST for issue in rule(image_parts.guest_program(stack), facts)]
    return [*result, *_issues_around(stack, facts, around or NodeEnvironment())]


def misfits(stack: Stack, facts: CompatibilityTables, around: NodeEnvironment | None = None) -> list[str]:
    """Return a sentence for each incompatible pair."""
    return [issue.sentence for issue in issues(stack, facts, around) if issue.misfit]


def not_established(stack: Stack, facts: CompatibilityTables, around: NodeEnvironment | None = None) -> list[str]:
    """Return a sentence for each pair whose compatibility no source confirms."""
    return [issue.sentence for issue in issues(stack, facts, around) if not issue.misfit]


def _issues_around(stack: Stack, facts: CompatibilityTables, around: NodeEnvironment) -> Iterator[CompatibilityIssue]:
    """Yield the issues with the node's system, its GPU and its host."""
    platforms: Mapping[str, Any] = stack["platforms"]
    if around.platform is not None and around.platform not in platforms:
        yield CompatibilityIssue(f"The stack is for {', '.join(platforms)} and the node has {around.platform}.", True)
    if around.gpu is not None:
        yield from fit_gpu.gpu_of_node(image_parts.training_side(stack), facts, around.gpu)
    if around.host_driver is not None:
        yield from fit_gpu.host_and_guest(stack, facts, around.host_driver)
