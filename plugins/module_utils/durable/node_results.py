"""The results of a module on several nodes, and the error of those on which it failed; pure."""

from __future__ import annotations

from collections.abc import Iterable

from .calls import Arguments, ModuleFailed, NodeCalls, Result


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
