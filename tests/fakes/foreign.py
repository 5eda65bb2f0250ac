"""Odd input from others: any JSON, any text, and good answers with a part put wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

WORDS = st.text(max_size=6) | st.sampled_from(["", "true", "-1", "1e999", "null", "{{ x }}", "\x1b[31m", "\ud800", "²"])
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -1, 2**63])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
# Deeper than a parser of this language goes.
DEEP = "[" * 100_000


def parts(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each part of an answer, itself first."""
    yield way
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in pairs:
        yield from parts(one, (*way, key))


def put(value: Any, way: tuple[Any, ...], new: Any, *, away: bool = False) -> Any:
    """The answer with one part replaced, or taken away."""
    if not way:
        return new
    changed = copy.deepcopy(value)
    inner = changed
    for key in way[:-1]:
        inner = inner[key]
    if away:
        del inner[way[-1]]
    else:
        inner[way[-1]] = new
    return changed


@st.composite
def mangled(draw: Any, good: Any) -> Any:
    """A good answer with a part replaced by anything, or missing; now and then as it should be."""
    way = draw(st.sampled_from(list(parts(good))))
    return put(good, way, draw(JSON), away=draw(st.booleans()))


def text(*good: str) -> st.SearchStrategy[str]:
    """Good texts cut, doubled and mixed with anything, and texts that have nothing to do with them."""
    words = [word for one in good for word in one.split()] + [" ", "\n", ":", "=", ",", "-", "0"]
    pieces = st.sampled_from(words) | WORDS
    made = st.lists(pieces, max_size=12).map(" ".join)
    cut = st.builds(
        lambda one, begin, end: one[begin:end], st.sampled_from(good), st.integers(0, 40), st.integers(0, 400)
    )
    # Ansible passes on an invalid byte in the output of a program as half of a surrogate pair.
    invalid = st.builds(
        lambda one, at: f"{one[:at]}\udcff{one[at:]}", st.sampled_from(good), st.integers(0, max(map(len, good)))
    )
    others = (st.text(max_size=40), st.just("9" * 5000), st.just(DEEP))
    return st.one_of(st.sampled_from(good), made, cut, invalid, *others)


def lines(*good: str) -> st.SearchStrategy[list[str]]:
    """Lines of such texts."""
    return st.lists(text(*good), max_size=5)


def json_text(good: Any) -> st.SearchStrategy[str]:
    """JSON of the wrong form, and invalid JSON."""
    return mangled(good).map(dumped) | text(json.dumps(good))


def dumped(value: Any) -> str:
    """As JSON; numbers for which JSON has no words are as Python writes them."""
    return json.dumps(value)
