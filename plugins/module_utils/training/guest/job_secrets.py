"""The secret values in the environment of a job, and their removal from texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

HIDDEN = "HIDDEN"
# Shorter values, such as 1 or lo, also occur in unrelated text.
SHORTEST = 8


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
