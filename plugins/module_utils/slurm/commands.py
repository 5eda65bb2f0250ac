"""Runs the commands of Slurm on a node; one that failed says why, and what to do; pure."""

from __future__ import annotations

from typing import Any

from ..durable.calls import Result
from ..guests.slurm_timers import with_cause
from ..training.runs.any_job import Ask

COMMAND = "ansible.builtin.command"


def run(ask: Ask, *words: str, stdin: str = "") -> Result:
    """Return the result of a command; the message of one that failed has the answer of Slurm, and what to do."""
    options: dict[str, Any] = {"argv": list(words), **({"stdin": stdin} if stdin else {})}
    result = ask(COMMAND, options)
    return {**result, "msg": with_cause(str(result.get("msg") or "-"))} if result.get("failed") else result
