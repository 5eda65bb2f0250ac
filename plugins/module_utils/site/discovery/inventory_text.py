"""Render an inventory as YAML with comments; names of a site stay text: they are neither YAML nor templates."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 118
DECIDE = "decide: "
_INDENT = "  "
# Texts that YAML 1.1 reads as text without quotes, in blocks and in braces; an address does not become a number.
_PLAIN = re.compile(r"[A-Za-z][\w./-]*(?: [\w./-]+)*|\d+\.\d+\.\d+\.\d+(?:/\d+)?", re.ASCII)
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_TEMPLATE = ("{{", "{%", "{#")


@dataclass(frozen=True)
class Expression:
    """A value that Ansible must evaluate, such as a variable; all other texts are literal."""

    text: str


@dataclass(frozen=True)
class Item:
    """A variable with its comments.

    With ``decide``, the variable is a proposal: it is a comment until the user removes the # signs. An item without
    a key is a comment. ``children`` are the keys of a variable, each with its own comments.
    """

    key: str = ""
    value: Any = None
    notes: tuple[str, ...] = ()
    decide: str = ""
    children: tuple[Item, ...] = ()

    @property
    def is_active(self) -> bool:
        """Return whether Ansible reads the variable."""
        return any(child.is_active for child in self.children) if self.children else not self.decide

    @property
    def decisions(self) -> list[str]:
        """Return the decisions that this item and its children leave to the user."""
        return [*([self.decide] if self.decide else []), *(text for child in self.children for text in child.decisions)]


def lines_of(items: Iterable[Item], depth: int = 0) -> list[str]:
    """Return the lines of a mapping, with an empty line before each decision."""
    lines = list[str]()
    for item in items:
        decisions = _decisions(item, depth)
        gap = [""] if lines and decisions else []
        lines += [*gap, *comments(item.notes, depth, follow=2 * _INDENT), *decisions, *_variable(item, depth)]
    return lines


def comments(texts: Iterable[str], depth: int, follow: str = "") -> list[str]:
    """Return the texts as comments; ``follow`` starts further lines of a text, and an empty text is an empty line."""
    start = f"{_INDENT * depth}# "
    lines = list[str]()
    for text in texts:
        wrapped = textwrap.wrap(
            printable(text),
            WIDTH - len(start),
            subsequent_indent=follow,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += [f"{start}{line}" for line in wrapped] if wrapped else [""]
    return lines


def printable(text: str) -> str:
    """Return a text for a comment: one line, without control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def scalar(value: object) -> str:
    """Return a value in YAML: the text of a site is quoted if needed, and never evaluated as a template."""
    if isinstance(value, Expression):
        return _quoted(value.text)
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if any(mark in text for mark in _TEMPLATE):
        return f"!unsafe {_quoted(text)}"
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else _quoted(text)


def _decisions(item: Item, depth: int) -> list[str]:
    # The children of a proposal are part of it, so that its lines are one block.
    texts = [item.decide] if item.is_active and item.children else item.decisions
    return comments((f"{DECIDE}{text}" for text in texts if text), depth, follow=_INDENT)


def _variable(item: Item, depth: int) -> list[str]:
    if not item.key:
        return []
    if item.children and item.is_active:
        return [f"{_INDENT * depth}{scalar(item.key)}:", *lines_of(item.children, depth + 1)]
    lines = yaml_lines({item.key: _whole(item)})
    start = _INDENT * depth + ("" if item.is_active else "# ")
    return [f"{start}{line}" for line in lines]


def _whole(item: Item) -> Any:
    return {child.key: _whole(child) for child in item.children} if item.children else item.value


def yaml_lines(value: Any) -> list[str]:
    """Return a mapping or a list as lines of YAML; short values share one line."""
    if isinstance(value, Mapping):
        return [line for key, inner in value.items() for line in _entry(f"{scalar(key)}:", inner)]
    return [line for inner in value for line in _item(inner)]


def _entry(key: str, value: object) -> list[str]:
    if _is_short(key, value):
        return [f"{key} {_flow(value)}"]
    return [key, *(f"{_INDENT}{line}" for line in yaml_lines(value))]


def _item(value: object) -> list[str]:
    if _is_short("-", value):
        return [f"- {_flow(value)}"]
    first, *rest = yaml_lines(value)
    return [f"- {first}", *(f"{_INDENT}{line}" for line in rest)]


def _is_short(key: str, value: Any) -> bool:
    """Return whether a value fits on one line; a list of mappings has one line per mapping."""
    if isinstance(value, Mapping) or _is_list(value):
        inner = list(value.values()) if isinstance(value, Mapping) else list(value)
        nested = any(isinstance(each, Mapping) or (_is_list(each) and len(each) > 1) for each in inner)
        return not inner or (not nested and len(inner) <= 5 and len(key) + len(_flow(value)) < 90)
    return True


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if _is_list(value):
        return "[" + ", ".join(_flow(inner) for inner in value) + "]"
    return scalar(value)


def _quoted(text: str) -> str:
    return '"' + "".join(_characters(text)) + '"'


def _characters(text: str) -> Iterator[str]:
    for letter in text:
        if letter in '"\\':
            yield f"\\{letter}"
        elif letter.isprintable():
            yield letter
        else:
            code = ord(letter)
            yield f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"
