"""Escape foreign text for HTML, XML, Markdown and CSV, so that it stays text."""

from __future__ import annotations

import re
from html import escape

REPLACEMENT = "\ufffd"
# Everything that is not a Char of XML 1.0 (2.2), such as most control characters and halves of a surrogate pair.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# The start of code, links, HTML, entities, tables, headings, mentions or strikethrough, at any position.
_ANYWHERE = re.compile(
    r"[\\`*\[\]<>&|~#!@$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.|(?<=:)/", re.IGNORECASE
)
# The start of a list, a rule or the underline of a heading, at the start of a line.
_FIRST = re.compile(r"^(?:[-+=:]|\d+[.)](?=\s|$))")


def html(text: object) -> str:
    """Return the text for HTML, without control characters and characters that change the direction of the text."""
    return escape(_CONTROL.sub(REPLACEMENT, str(text)))


def xml(text: object) -> str:
    """Return the text without characters that XML does not allow."""
    return _NO_XML.sub("", str(text))


def markdown(text: object) -> str:
    """Return the text for a line of Markdown or a cell of a table: a character reference is never markup."""
    return _ANYWHERE.sub(_referred, _CONTROL.sub(REPLACEMENT, " ".join(str(text).split())))


# Spreadsheets skip blanks and zero-width characters before a formula, and read full-width signs as the usual ones. In
# languages with a decimal comma, they start a new cell at a semicolon, even within quotes.
_FORMULA = re.compile(
    r"(^|;)(?=[\s\u00ad\u180e\u200b-\u200f\u2060-\u206f\ufeff\ufffd]*[=+\-@\uff1d\uff0b\uff0d\uff20])"
)


def line(text: object) -> str:
    """Return the text as a separate line of Markdown, such as an item of a list or a heading."""
    return _FIRST.sub(_referred, markdown(text))


def cell(value: object) -> object:
    """Return a value for a comma-separated table; text that a spreadsheet takes for a formula gets a leading quote."""
    if not isinstance(value, str):
        return value
    return _FORMULA.sub(r"\1'", _CONTROL.sub(REPLACEMENT, " ".join(value.split())))


def _referred(match: re.Match[str]) -> str:
    before, last = match.group()[:-1], match.group()[-1]
    return f"{before}&#{ord(last)};"
