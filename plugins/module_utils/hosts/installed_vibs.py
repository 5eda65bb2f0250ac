# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The VIBs of a host as plain data: those that run, and those of the image that the next boot takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..vsphere.esxcli import Row
from ..vsphere.inventory import Host
from .reading import Entry, Group, Reading

LIST = "esxcli software vib list"
NVIDIA = re.compile(r"(nvidia|nvd)", re.IGNORECASE)
_RDMA = re.compile(r"nmlx|mlnx", re.IGNORECASE)
_KEYS = {"name": "Name", "version": "Version", "vendor": "Vendor", "acceptance_level": "AcceptanceLevel"}


class Images:
    """The VIBs of one host; read once between two refreshes, however many subjects use them."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._seen: Any = None
        self._images: tuple[list[Row], list[Row]] = ([], [])

    def read(self) -> tuple[list[Row], list[Row]]:
        """The VIBs that run, and those of the image that the next boot takes; without one waiting, none."""
        if self._seen is not self.host.properties:
            run = self.host.esxcli.rows
            self._images = run("software vib list"), run("software vib list", rebootingimage=True)
            self._seen = self.host.properties
        return self._images


def _that_matter(rows: Sequence[Row]) -> list[dict[str, str]]:
    chosen = [row for row in rows if NVIDIA.match(row["Name"]) or _RDMA.search(row["Name"])]
    return [{ours: str(row.get(theirs, "")) for ours, theirs in _KEYS.items()} for row in chosen]


def facts(images: Images) -> dict[str, list[dict[str, str]]]:
    """The VIBs of NVIDIA and of RDMA cards, running and pending."""
    running, pending = images.read()
    return {"running": _that_matter(running), "pending": _that_matter(pending)}


def _read(reading: Reading) -> Entry:
    return {"vibs": facts(Images(reading.host))}


def _waiting(entry: Entry) -> list[str]:
    running = {one["name"]: one["version"] for one in entry["vibs"]["running"]}
    pending = [one for one in entry["vibs"]["pending"] if running.get(one["name"]) != one["version"]]
    return [f"VIB {one['name']} {one['version']}" for one in pending]


GROUP = Group("vib", "packages", (), _read, (LIST,), waiting=_waiting)
