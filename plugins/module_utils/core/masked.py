# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Names that contain a secret: Ansible masks them in results, and what is written from these results is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# Ansible writes these in the place of secrets: the first one before ansible-core 2.22, the second one from then on.
MASKS = ("********", "$REDACTED$")
REMEDY = "choose a password that is not a part of a name"


def masked_names(value: Any) -> Iterator[str]:
    """Yield the names with a masked part in nested data; a longer text may contain asterisks."""
    for text in texts(value):
        if " " not in text and any(mask in text for mask in MASKS):
            yield text


def contains(value: Any, secret: str) -> bool:
    """Return whether a text in nested data contains a secret, so that Ansible would mask a part of it."""
    return bool(secret) and any(secret in text for text in texts(value))


def texts(value: Any) -> Iterator[str]:
    """Yield the texts in nested data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for pair in value.items() for part in pair for text in texts(part))
    elif isinstance(value, (list, tuple)):
        yield from (text for part in value for text in texts(part))
