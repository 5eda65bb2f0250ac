"""Any text in JUnit and Markdown: the file stays well-formed, and the text stays text."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from plugins.module_utils.pages import escaping, training_page, verdict_files, vmotion_page

ODD = [
    *(
        "<script>alert(1)</script>",
        "[here](http://x)",
        "![x](//y)",
        "<http://x.example>",
        "# heading",
        "- item",
        "1. one",
    ),
    *(
        "a | b",
        "a\\| b",
        "`code`",
        "``",
        "**loud**",
        "__init__",
        "~~no~~",
        "&lt;b&gt;",
        "&#60;b>",
        "\n\n# heading",
        "===",
    ),
    *(
        "---",
        "```",
        "a\n---",
        "    code",
        "\t> quoted",
        "[x]: http://x",
        "\ud800",
        "\x00\x1b[31m",
        "\u2028# x",
        "<!--",
        "]]>",
    ),
    *("http://x.example", "www.example.org", "@everyone", "#12", "\u202egnp.exe", "1) one", "+ one", "= one", "\\"),
]
_ANY = st.text(st.characters(codec=None)) | st.sampled_from(ODD) | st.lists(st.sampled_from(ODD)).map("".join)
# A text of only blanks does not count.
TEXTS = _ANY.filter(str.strip)


def tokens(text: str) -> list[Token]:
    """Return all tokens of a page of Markdown with GitHub's tables and strikethrough."""
    return list(_flat(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)))


def _flat(found: list[Token]) -> Iterator[Token]:
    for token in found:
        yield token
        yield from _flat(token.children or [])


def structure(text: str) -> Counter[str]:
    """Return the number of elements of each kind in a page, without those that only split a text."""
    return Counter(token.type for token in tokens(text) if token.type not in ("text", "text_special"))


class Bare(HTMLParser):
    """Parser for the words of an HTML page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.words += data


def words(text: str) -> str:
    """Return the visible text of a page."""
    return " ".join(Bare(MarkdownIt("commonmark").enable("table").render(text)).words.split())


def timeline_of(text: str) -> dict[str, Any]:
    """Return a timeline in which every word is foreign text."""
    move = {"worker": text, "source": text, "target": text, "moved": False, "said": text, "external": True, "by": text}
    numbers = {"from": 1.0, "until": 2.0, "gap_s": None, "throughput": {}, "resumed_s": None}
    breach = {"kind": text, "detail": text}
    return {"verdict": text, "moved": text, "name": text, "moves": [{**move, **numbers}], "breaches": [breach]}


def report(text: str) -> dict[str, Any]:
    """Return a report in which every word is foreign text."""
    run = {"name": text, "nodes": 1, "gpus": 1, "transport": text, "images_per_sec": 1.0, "asked": {text: text}}
    built = {text: {text: {text: text, "why": text}}}
    published = {"name": text, "source": text, "runs": [{**run, "transport": "tcp"}]}
    made = training_page.report(
        [{**run, "built": built, "proof": {"why": text, "transport": text}}], [published], None, text
    )
    return {**made, "vmotion_tests": [timeline_of(text)], "not_measured": [text]}


@given(TEXTS)
def test_no_text_changes_the_structure_of_a_report(text: str) -> None:
    assert structure(training_page.markdown(report(text))) == structure(training_page.markdown(report("word")))


@given(TEXTS)
def test_no_text_changes_the_structure_of_a_timeline(text: str) -> None:
    assert structure(vmotion_page.markdown(timeline_of(text), text)) == structure(
        vmotion_page.markdown(timeline_of("word"), "word")
    )


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1))
def test_a_reader_of_markdown_reads_the_text(text: str) -> None:
    message = " ".join(text.split())
    assert words(f"- {escaping.line(text)}") == message
    assert words(f"a {escaping.markdown(text)}") == f"a {message}".strip()


@pytest.mark.parametrize("text", ["grid_t4-16c", "190.0", "-", "w1 (by others): 3.5 s, 80%", "esx01.lab", "VM Network"])
def test_leaves_ordinary_text_in_cells_unchanged(text: str) -> None:
    assert escaping.markdown(text) == text


@given(TEXTS)
def test_junit_is_well_formed_with_any_text(text: str) -> None:
    moves = [{"worker": text, "source": text, "target": text, "said": text}]
    for verdict in ("broken", "inconclusive", "continuous"):
        judged = {"verdict": verdict, "breaches": [{"detail": text}], "unproven": [text], "moves": [{"moved": False}]}
        written = verdict_files.junit_report(text, judged, moves)
        assert written.startswith('<?xml version="1.0" encoding="utf-8"?>')
        assert len(ET.fromstring(written.encode()).findall("testcase")) == 2


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        *((text, f"'{text}") for text in ("=1+1", "+1", "-1", "@x", "\u200b=1", "\uff1d1", "\uff0b1", "\u180e=1")),
        *((f"{blank}=1", "'=1") for blank in ("\t", " ", "\n", "\u00a0", "\r\n", "\u2028")),
        *((f"{control}=1", "'\ufffd=1") for control in ("\0", "\x1b", "\u202e", "\ud800")),
        # In languages with a decimal comma, a spreadsheet starts a new cell here.
        ("a;=1", "a;'=1"),
        ("a; \n+1;b", "a;' +1;b"),
        ("a\n=1", "a =1"),
        ("a=1", "a=1"),
        ("w1; w2", "w1; w2"),
    ],
)
def test_text_never_becomes_a_spreadsheet_formula(text: str, cell: str) -> None:
    assert escaping.cell(text) == cell
    assert (escaping.cell("tcp"), escaping.cell(-1.5), escaping.cell(None)) == ("tcp", -1.5, None)
