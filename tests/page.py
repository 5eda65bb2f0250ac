"""Reads an HTML page like a browser: its tables, its plot, and the resources that it would fetch."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_FETCHING = {"src", "href", "data", "action", "poster", "background", "srcset", "xlink:href"}
_NEVER_CLOSED = {"meta", "link", "img", "br", "hr", "input"}
_FAR = re.compile(r"@import|url\((?!#)|https?:|//[a-z]", re.IGNORECASE)


class Page(HTMLParser):
    """One page: rows of cells for each table body, titles of the plot's rows, elements by name."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[list[list[str]]] = []
        self.titles: list[str] = []
        self.elements: list[str] = []
        self.external: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.external += [f"{tag} {key}={value}" for key, value in attrs if key in _FETCHING or key.startswith("on")]
        self.external += [f"{tag} {key}={value}" for key, value in attrs if key == "style" and _FAR.search(value or "")]
        if tag not in _NEVER_CLOSED:
            self._open.append(tag)
        if tag == "tbody":
            self.tables.append([])
        elif tag == "tr" and "tbody" in self._open:
            self.tables[-1].append([])
        elif tag == "td" and "tbody" in self._open:
            self.tables[-1][-1].append("")
        elif tag == "title" and "svg" in self._open:
            self.titles.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _NEVER_CLOSED:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open.pop() == tag, f"{tag} closes what it did not open"

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style" and _FAR.search(data):
            self.external.append(f"style {_FAR.search(data)}")
        if "td" in self._open and "tbody" in self._open:
            self.tables[-1][-1][-1] += data
        elif self._open and self._open[-1] == "title" and "svg" in self._open:
            self.titles[-1] += data
