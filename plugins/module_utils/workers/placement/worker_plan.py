"""The workers of a call as lines of text: the changes and the host of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...plan import State


def as_lines(workers: Sequence[Mapping[str, object]]) -> dict[str, list[str]]:
    """Return the lines of text in the result of a call: those of the plan, and those of the workers' state."""
    return {"plan_lines": plan_lines(workers), "state_lines": state_lines(workers)}


def plan_lines(workers: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the changes of each worker with their reasons; workers without changes share a line."""
    listed = list(workers)
    idle = [worker["name"] for worker in listed if not worker.get("failed") and not worker.get("changed")]
    lines = [f"{', '.join(idle)}: as described, nothing to do"] if idle else []
    return [*lines, *changes([worker for worker in listed if worker["name"] not in idle])]


def changes(entries: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the changes of each entry with their reasons."""
    return [line for entry in entries for line in _lines(entry)]


def state_lines(workers: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the host, the GPUs and the address of each worker."""
    return [_where(worker["name"], worker["state"]) for worker in workers if not worker.get("failed")]


def _lines(worker: Mapping[str, Any]) -> list[str]:
    if worker.get("failed"):
        return [str(worker["msg"])]
    reasons = [*worker.get("why", []), *(f"not now: {reason}" for reason in worker.get("unmet", []))]
    head = f"{worker['name']}: {'is shut down and changes' if 'power_off' in worker.get('needs', []) else 'changes'}"
    return [head, *(f"    {reason}" for reason in reasons)]


def _where(name: str, state: State) -> str:
    if not state.get("exists"):
        return f"{name}: does not exist"
    does = "runs" if state["power"] == "on" else "is off"
    parts = [f"{name}: {does} on {state['host']}"]
    parts += [", ".join(state["gpus"])] if state.get("gpus") else []
    parts += [str(state["address"])] if state.get("address") else []
    return ", ".join(parts)
