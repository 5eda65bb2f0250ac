# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Home-made packages in answers of esxcli: their names and vendors identify the site; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from xml.sax.saxutils import escape, unescape

_PACKAGE = re.compile(r"<DataObject\b.*?</DataObject>", re.DOTALL)
_FIELD = re.compile(r"<(?P<field>Name|Vendor|Version)>(?P<text>[^<]+)</(?P=field)>")
_DESCRIPTION = re.compile(r"(<(?!Name|Vendor|ID|Version)\w+>)([^<]+)")
# A part of a version; VMware and its partners write these three.
_WORD = re.compile(r"(?!(?:OEM|vmw|vib)(?![A-Za-z]))(?<![A-Za-z])[A-Za-z]+")
# The vendors of hardware and software, as they call themselves in their packages.
_VENDORS = frozenset(
    (
        *("adaptec", "amd", "aqt", "avago", "bcm", "broadcom", "cisco", "csco", "dec", "del", "dell", "dellemc", "elx"),
        *("emc", "emu", "emulex", "fujitsu", "ftw", "hitachi", "hp", "hpe", "hpq", "ibm", "int", "intel", "ixg", "lsi"),
        *("lenovo", "lvo", "mel", "mellanox", "microchip", "mrvl", "nec", "netapp", "nvd", "nvidia", "pure", "qlc"),
        *("purestorage", "qlogic", "quanta", "samsung", "smc", "supermicro", "vmw", "vmware"),
    )
)


def names(answer: str) -> Iterator[tuple[str, str]]:
    """Yield the names of home-made packages and of their vendors, each with the word of its pseudonyms."""
    for package in _PACKAGE.findall(answer):
        values = _values(package)
        if _is_home_made(values):
            yield "vendor", values["Vendor"].strip()
            yield "package", values.get("Name", "")


def _values(package: str) -> dict[str, str]:
    return {match["field"]: unescape(match["text"]) for match in _FIELD.finditer(package)}


def _is_home_made(values: Mapping[str, str]) -> bool:
    vendor = values.get("Vendor", "").split()
    return bool(vendor) and vendor[0].strip(",.").lower() not in _VENDORS


def _without_words(package: str, version: str) -> str:
    """Return a package without the words in its version, which its ID repeats; numbers do not identify a site."""
    plain = _WORD.sub("x", version)
    return package.replace(escape(version), plain) if version else package


def replaced(text: str, pseudonyms: Mapping[str, str], reason: Callable[[str], str]) -> str:
    """Return the text with pseudonyms instead of these names; ``reason`` replaces the words in a description."""

    def described(match: re.Match[str]) -> str:
        values = _values(match[0])
        if not _is_home_made(values):
            return match[0]
        package = _without_words(match[0], values.get("Version", ""))
        return _DESCRIPTION.sub(lambda one: one[1] + escape(reason(unescape(one[2]))), package)

    text = _PACKAGE.sub(described, text)
    ordered = sorted(pseudonyms, key=lambda name: -len(name))
    pattern = "|".join(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])" for name in ordered)
    return re.sub(pattern, lambda match: pseudonyms[match[0]], text) if pattern else text
