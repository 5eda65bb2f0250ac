"""The utilisation of GPUs: which card an instance of a counter belongs to, and summaries of its samples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UTILISATION, MEMORY = "utilization", "mem.used"
_ADDRESS = re.compile(r"(?<![0-9a-f])(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?![0-9a-f])", re.IGNORECASE)


@dataclass(frozen=True)
class Samples:
    """The samples of one counter of one instance on a host."""

    counter: str
    instance: str
    values: Sequence[int]


def by_card(addresses: Sequence[str], samples: Sequence[Samples]) -> tuple[dict[str, dict[str, Samples]], list[str]]:
    """Return samples by PCI address and counter, and the instances that cannot be assigned to a card.

    An instance without a name is the total of its host, which is used only if the host has one card.
    """
    found: dict[str, dict[str, Samples]] = {}
    strangers = set()
    named = [one for one in samples if one.instance]
    for one in named or (samples if len(addresses) == 1 else []):
        address = card_of(one.instance, addresses) if one.instance else addresses[0]
        if address is None:
            strangers.add(one.instance)
        elif one.values:
            found.setdefault(address, {})[one.counter] = one
    return found, sorted(strangers)


def card_of(instance: str, addresses: Sequence[str]) -> str | None:
    """Return the PCI address that an instance names, in any spelling; None if it names none of these."""
    match = _ADDRESS.search(instance)
    if not match:
        return None
    domain, place = (match[1] or "0000").lower()[-4:], match[2].lower()
    return next((one for one in addresses if one.lower() == f"{domain}:{place}"), None)


def summary(counters: Mapping[str, Samples], seconds: int) -> dict[str, Any] | None:
    """Return mean and peak in percent, and memory in gigabytes; None if the utilisation was not measured."""
    busy, memory = counters.get(UTILISATION), counters.get(MEMORY)
    if busy is None:
        return None
    return {
        "mean": _mean(busy.values) / 100,
        "peak": max(busy.values) / 100,
        "memory_gb": None if memory is None else _mean(memory.values) / 2**20,
        "samples": len(busy.values),
        "covered_hours": len(busy.values) * seconds / 3600,
    }


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)
