# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Settings of a node that are wanted, beside those that are in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNLIMITED = {"unlimited": "-1", "infinity": "-1"}


def misfits(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """A sentence for each setting that is not in force; a list of values is met when every one is as wanted."""
    sentences = []
    for name, value in wanted.items():
        there = found.get(name)
        values = there if isinstance(there, list) else [there]
        if {_plain(one) for one in values} != {_plain(value)}:
            sentences.append(f"{name} is {' and '.join(str(one) for one in values)}, not {value}.")
    return sentences


def _plain(value: Any) -> str:
    """A value as text, whatever blanks the kernel puts between its words."""
    text = " ".join(str(value).split())
    return UNLIMITED.get(text, text)
