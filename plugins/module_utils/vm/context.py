# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What a worker is given: what it shares with the other workers of its call, and what is its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from . import clone, networks
from .desired import Call
from .machine import Machine
from .site import Site

Tell = Callable[[str, str], None]


def _tell_nobody(_about: str, _what: str) -> None:
    """Progress that nobody asked to see."""


@dataclass(frozen=True)
class Context:
    """The cluster of a call, the options that hold for all of its workers, and how to tell progress."""

    site: Site
    call: Call
    places: clone.Places
    tell: Tell = _tell_nobody

    @property
    def networks(self) -> networks.Networks:
        """The networks of the cluster, with those that are prepared before the workers are built."""
        return networks.to_come(self.site.networks, self.call.to_come.port_groups)


@dataclass
class Assignment:
    """What one worker got: its host, or why there is none, addresses for new cards, and what this run did with it."""

    host: str = ""
    refusal: str = ""
    macs: Mapping[str, str] = field(default_factory=dict)
    cloned: bool = False
    started: Machine | None = None
    silent: bool = False  # it was started, and its guest told no address in time
