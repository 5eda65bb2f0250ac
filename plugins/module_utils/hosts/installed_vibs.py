# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The VIBs of a host as plain data: those of the running image, and those of the image for the next boot."""

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


class InstalledVibs:
    """The VIBs of one host; several subjects share them, and they are read once between two refreshes."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._properties: Any = None
        self._images: tuple[list[Row], list[Row]] = ([], [])

    def read(self) -> tuple[list[Row], list[Row]]:
        """Return the VIBs of the running image, and those of the next boot; empty if no image waits for the boot."""
        if self._properties is not self.host.properties:
            run = self.host.esxcli.rows
            self._images = run("software vib list"), run("software vib list", rebootingimage=True)
            self._properties = self.host.properties
        return self._images


def _relevant(rows: Sequence[Row]) -> list[dict[str, str]]:
    chosen = [row for row in rows if NVIDIA.match(row["Name"]) or _RDMA.search(row["Name"])]
    return [{key: str(row.get(field, "")) for key, field in _KEYS.items()} for row in chosen]


def facts(vibs: InstalledVibs) -> dict[str, list[dict[str, str]]]:
    """Return the VIBs of NVIDIA and of RDMA cards, running and pending."""
    running, pending = vibs.read()
    return {"running": _relevant(running), "pending": _relevant(pending)}


def _read(reading: Reading) -> Entry:
    return {"vibs": facts(InstalledVibs(reading.host))}


def _waiting(entry: Entry) -> list[str]:
    running = {vib["name"]: vib["version"] for vib in entry["vibs"]["running"]}
    pending = [vib for vib in entry["vibs"]["pending"] if running.get(vib["name"]) != vib["version"]]
    return [f"VIB {vib['name']} {vib['version']}" for vib in pending]


GROUP = Group("vib", "packages", (), _read, (LIST,), waiting=_waiting)
