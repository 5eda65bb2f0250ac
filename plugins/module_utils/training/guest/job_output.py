"""The end of the output of a job, with or without the values of its secret environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ...guests import supervisor

HIDDEN = "HIDDEN"
# Shorter values, such as 1 or lo, also occur in unrelated text.
SHORTEST = 8


def last_output(run_dir: str, limit: int) -> str:
    """Return the last bytes of the output, or an empty text without an output."""
    try:
        with open(os.path.join(run_dir, supervisor.OUTPUT), "rb") as output:
            output.seek(max(0, os.fstat(output.fileno()).st_size - limit))
            return output.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def shown_output(run_dir: str, limit: int) -> str:
    """Return the last lines of the output with each secret value replaced.

    The first line is left out if it is incomplete: it may begin within a secret value.
    """
    desired = supervisor.read(run_dir, supervisor.DESIRED) or {}
    text = last_output(run_dir, limit)
    if len(text.encode("utf-8", "replace")) >= limit:
        text = text.partition("\n")[2]
    return without(text, values(desired.get("secret_environment") or {}))


def values(environment: Mapping[str, object]) -> list[str]:
    """Return the values to hide and the lines in them, the longest first: a value may be part of another.

    mpirun puts a tag before each line that a rank prints.
    """
    whole = {str(value) for value in environment.values()}
    texts = whole | {line for value in whole for line in value.splitlines()}
    return sorted((text for text in texts if len(text) >= SHORTEST), key=lambda text: (-len(text), text))


def without(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text
