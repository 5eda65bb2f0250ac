"""The modules that the effects of a program run, and the error of a module that failed; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Dict, Mapping, Protocol, Sequence, TypedDict

from ..errors import WholeError
from .program import World

# The arguments of a module, and its result.
Arguments = Mapping[str, Any]
Result = Dict[str, Any]


class ReachedNode(TypedDict):
    """A node, and the words of the command that runs an appended command there, such as ssh with its options."""

    name: str
    reach: Sequence[str]


class Modules(Protocol):
    """The modules that run on the controller."""

    def here(self, module: str, options: Arguments, /) -> Result:
        """Run a module, and return its result; that of one that fails has ``failed`` and ``msg``."""

    def planned(self, module: str, options: Arguments, /) -> Result:
        """Run a module in check mode, and return its result."""


class Calls(World, Modules, Protocol):
    """A world whose effects are modules."""


class NodeCalls(Calls, Protocol):
    """A world that also runs modules on hosts of the inventory, and watches jobs in the background."""

    def on(self, host: str, module: str, options: Mapping[str, object]) -> Result:
        """Run a module on a host, and return its result; that of an unreachable host has ``unreachable``."""

    def on_each(self, module: str, options: Mapping[str, Mapping[str, object]]) -> dict[str, Result]:
        """Run a module on several hosts at once, with separate options, and return the results by host."""

    def as_user(self, user: str) -> NodeCalls:
        """Return the same world, in which modules on hosts run as another user."""

    def controller(self) -> int:
        """Return the process of the playbook; a watch ends with it."""

    def watch(self, options: Mapping[str, object]) -> Result:
        """Start the watch of the records of a job, a process of the controller, without waiting for its end."""


class ModuleFailed(WholeError):
    """A module failed; its message is a sentence already, and its result may have more."""

    def __init__(self, result: Mapping[str, object]) -> None:
        self.result = dict(result)
        super().__init__(str(result.get("msg") or "the module failed without a message"))


def required(result: Result) -> Result:
    """Return a result; raise ModuleFailed if its module failed."""
    if result.get("failed"):
        raise ModuleFailed(result)
    return result


def on_all(calls: NodeCalls, nodes: Iterable[str], module: str, options: Arguments) -> dict[str, Result]:
    """Run a module with the same options on nodes, and return the results; raise ModuleFailed if one of them failed."""
    return all_required(calls.on_each(module, dict.fromkeys(nodes, options)))


def all_required(results: dict[str, Result]) -> dict[str, Result]:
    """Return the results of nodes; raise ModuleFailed with a sentence for each reason and the nodes that have it."""
    reasons: dict[str, list[str]] = {}
    for node, result in results.items():
        if result.get("failed"):
            text = str(result.get("msg") or "the module failed without a message")
            reasons.setdefault(_without(node, text), []).append(node)
    if reasons:
        texts = [f"{', '.join(nodes)}: {text}" for text, nodes in reasons.items()]
        is_unreachable = any(result.get("unreachable") for result in results.values())
        raise ModuleFailed({"msg": " ".join(texts), "unreachable": is_unreachable})
    return results


def _without(node: str, text: str) -> str:
    """Return a message without its node's name, because the sentence already contains it."""
    start = f"{node}: "
    return text[len(start) :] if text.startswith(start) else text
