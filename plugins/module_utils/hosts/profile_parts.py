"""Every part of a host's profile. Written by tools/subjects.py from the files that have a PART: do not edit."""

from __future__ import annotations

from . import advanced_option, graphics, kernel_module, passthrough, pvrdma, roce, vib
from .part import Part, in_order

PARTS: tuple[Part, ...] = in_order(
    each.PART for each in (advanced_option, graphics, kernel_module, passthrough, pvrdma, roce, vib)
)
