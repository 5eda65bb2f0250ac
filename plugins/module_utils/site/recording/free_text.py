"""Replaces the words of free text: numbers, addresses, times, signs and pseudonyms stay; pure.

The type of a message, which is not free text, is enough to understand it. ``Pseudonyms`` replaces addresses earlier.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# A sentence, a path, a URL, a domain account or an email address.
_SIGNS = re.compile(r"\s|[/\\@]")
# Fields that contain sentences, some of which have only one word.
SENTENCES = frozenset(
    (
        *("message", "fullFormattedMessage", "localizedMessage", "faultMessage", "faultMsg", "reason", "description"),
        *("detail", "details", "comment", "text", "msg", "annotation", "notes"),
    )
)
_HEX = "[0-9A-Fa-f]"
_PHONE = r"(?P<phone>\+\d[\d ()/.-]{5,}\d)"
_FORMED = "|".join(
    (
        rf"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}",  # a UUID
        rf"(?:{_HEX}{{2}} ){{7}}{_HEX}{{2}}[ -](?:{_HEX}{{2}} ){{7}}{_HEX}{{2}}",  # a UUID as switches write it
        rf"{_HEX}{{4}}:{_HEX}{{2}}:{_HEX}{{2}}\.[0-7]",  # a PCI address
        rf"(?:{_HEX}{{2}}[:-]){{5,}}{_HEX}{{2}}",  # a hardware address
        rf"(?:2001:db8|fe80)::{_HEX}{{1,4}}",  # the pseudonym of an IPv6 address
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?",  # a time
        rf"0[xX]{_HEX}{{1,8}}",
        r"(?:X{5}-){4}\d{5}",  # the pseudonym of a licence key
        r"vmfs/volumes|vmdk|vmx|nvram|vswp|iso",  # of paths
        r"domain-\d+\.example",
        r"(?:vmnic|vmk|vmrdma|vmhba)\d{1,4}",  # the devices of ESXi
    )
)
_PART = re.compile(
    rf"{_PHONE}|(?<![^\W_])(?P<formed>{_FORMED})(?![^\W_])|(?P<own>[a-z]+-\d+)(?![^\W_])|(?P<word>[^\W_]+)"
)
# A longer number is an identifier.
_LONGEST_NUMBER = 15


def is_free(text: str) -> bool:
    """Return whether a text is more than one name or value."""
    return _SIGNS.search(text.strip()) is not None


def replaced(text: str, pseudonym: Callable[[str], str], is_own: Callable[[str], bool]) -> str:
    """Return a text with a pseudonym for each word, except for the pseudonyms in it."""

    def new(match: re.Match[str]) -> str:
        word = match["word"] or ""
        is_number = word.isascii() and word.isdigit() and len(word) <= _LONGEST_NUMBER
        is_kept = match["formed"] or is_number or (match["own"] and is_own(match["own"]))
        return match[0] if is_kept else pseudonym(match[0])

    return _PART.sub(new, text)
