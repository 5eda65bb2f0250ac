"""PCI addresses as hosts write them, such as 0000:3b:00.0, from the forms that users and the API use."""

from __future__ import annotations

import re

from ..errors import Refused

GPUS = "gpus"  # in a list of addresses: all NVIDIA GPUs of a host
_ADDRESS = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")


def pci_address(text: str) -> str:
    """Return the PCI address from user input, which may omit the domain."""
    match = _ADDRESS.fullmatch(text.strip().lower())
    if not match:
        raise Refused(text, "read it as a PCI address", "it is not a PCI address", "write it as 0000:3b:00.0")
    return f"{match[1] or '0000'}:{match[2]}"


def with_domain(text: str) -> str:
    """Return an API's PCI address with its domain, which NUMA nodes may omit."""
    lower = text.lower()
    return f"0000:{lower}" if lower.count(":") == 1 else lower
