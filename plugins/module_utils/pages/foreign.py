# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Names and words of others in files of a markup: they stay text, whatever they hold. HTML has html.escape."""

from __future__ import annotations

import re
from typing import Any

REPLACEMENT = "\ufffd"
# What XML 1.0 calls a Char (2.2): neither most control characters nor halves of a surrogate pair.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# What begins code, links, HTML, entities, tables, headings, mentions or strikethrough, wherever it stands.
_ANYWHERE = re.compile(
    r"[\\`*\[\]<>&|~#!@$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.|(?<=:)/", re.IGNORECASE
)
# What begins a list, a rule or the underline of a heading, at the beginning of a line.
_FIRST = re.compile(r"^(?:[-+=:]|\d+[.)](?=\s|$))")


def xml(text: Any) -> str:
    """The text without what XML cannot hold."""
    return _NO_XML.sub("", str(text))


def markdown(text: Any) -> str:
    """The text within a line of Markdown or a cell of a table: a character reference is never taken for markup."""
    return _ANYWHERE.sub(_referred, _HIDDEN.sub(REPLACEMENT, " ".join(str(text).split())))


# Spreadsheets skip blanks and signs without width before a formula, and read full-width signs as the usual ones.
_FORMULA = re.compile(r"[\t\r\n]|[\s\u00ad\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def line(text: Any) -> str:
    """The text as a line of Markdown of its own, such as an item of a list or a heading."""
    return _FIRST.sub(_referred, markdown(text))


def cell(value: Any) -> Any:
    """A value of a comma-separated table; a text that a spreadsheet would take for a formula gets a quote before it."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def _referred(found: re.Match[str]) -> str:
    before, last = found.group()[:-1], found.group()[-1]
    return f"{before}&#{ord(last)};"
