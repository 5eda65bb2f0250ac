# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Escape foreign text for XML, Markdown and CSV, so that it stays text; for HTML there is html.escape."""

from __future__ import annotations

import re
from typing import Any

REPLACEMENT = "\ufffd"
# All except a Char of XML 1.0 (2.2), such as most control characters and halves of a surrogate pair.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# The start of code, links, HTML, entities, tables, headings, mentions or strikethrough, at any position.
_ANYWHERE = re.compile(
    r"[\\`*\[\]<>&|~#!@$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.|(?<=:)/", re.IGNORECASE
)
# The start of a list, a rule or the underline of a heading, at the start of a line.
_FIRST = re.compile(r"^(?:[-+=:]|\d+[.)](?=\s|$))")


def xml(text: Any) -> str:
    """Return the text without characters that XML does not allow."""
    return _NO_XML.sub("", str(text))


def markdown(text: Any) -> str:
    """Return the text for a line of Markdown or a cell of a table: a character reference is never markup."""
    return _ANYWHERE.sub(_referred, _HIDDEN.sub(REPLACEMENT, " ".join(str(text).split())))


# Spreadsheets skip blanks and signs without width before a formula, and read full-width signs as the usual ones.
_FORMULA = re.compile(r"[\t\r\n]|[\s\u00ad\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def line(text: Any) -> str:
    """Return the text as a separate line of Markdown, such as an item of a list or a heading."""
    return _FIRST.sub(_referred, markdown(text))


def cell(value: Any) -> Any:
    """Return a value for a comma-separated table; a text that is a formula for a spreadsheet gets a leading quote."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def _referred(match: re.Match[str]) -> str:
    before, last = match.group()[:-1], match.group()[-1]
    return f"{before}&#{ord(last)};"
