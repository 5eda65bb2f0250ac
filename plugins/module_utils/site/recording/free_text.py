# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Free text by an allow-list: a word stays only if it is known to identify no site; pure.

Numbers, versions, units, dates and addresses stay: ``Pseudonyms`` has replaced the addresses before.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .harmless_words import WORDS

# A sentence, a path, a URL, an account of a domain or an address of mail.
_SIGNS = re.compile(r"\s|[/\\@]")
# Fields of sentences, which may also have only one word.
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
    )
)
_PART = re.compile(rf"{_PHONE}|(?<![^\W_])(?P<formed>{_FORMED})(?![^\W_])|(?P<word>[^\W_]+)")
_PIECES = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# The letters of a word before its number, such as vmnic0, or after it, such as 40GB.
_NUMBERED = re.compile(r"(?P<before>[A-Za-z]+)\d{1,4}|\d+(?P<after>[A-Za-z]+)")
# A longer number is an identifier.
_LONGEST_NUMBER = 15


def is_free(text: str) -> bool:
    """Return whether a text is more than one name or value."""
    return _SIGNS.search(text.strip()) is not None


def replaced(text: str, pseudonym: Callable[[str], str]) -> str:
    """Return a text with a pseudonym for each word that is not known to be harmless."""

    def new(match: re.Match[str]) -> str:
        is_kept = match["formed"] or (match["word"] and _is_harmless(match["word"]))
        return match[0] if is_kept else pseudonym(match[0])

    return _PART.sub(new, text)


def _is_harmless(word: str) -> bool:
    if word.isdigit() or word.lower() in WORDS:
        return word.isascii() and len(word) <= _LONGEST_NUMBER
    numbered = _NUMBERED.fullmatch(word)
    letters = (numbered["before"] or numbered["after"]) if numbered else word
    return letters.isascii() and letters.isalpha() and _is_known(letters)


def _is_known(letters: str) -> bool:
    """Return whether letters are one known word, or several of which each begins with a capital letter."""
    if len(letters) == 1 or letters.lower() in WORDS:
        return True
    pieces = _PIECES.findall(letters)
    return len(pieces) > 1 and all(len(piece) > 1 and piece.lower() in WORDS for piece in pieces)
