"""YAML with comments: what comes from a site stays text."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.site.discovery.inventory_text import Expression, Item, comments, lines_of, scalar, yaml_lines

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
VALUES = st.recursive(
    st.one_of(TEXT, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4), st.dictionaries(TEXT, inner, min_size=1, max_size=4)
    ),
    max_leaves=12,
)


class Loader(yaml.SafeLoader):
    """Reads the tag of Ansible as text."""


Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))


def load(lines: list[str]) -> Any:
    return yaml.load("\n".join(lines), Loader=Loader)


@given(st.dictionaries(TEXT.filter(lambda text: "{" not in text), VALUES, min_size=1, max_size=4))
def test_every_value_survives(value: dict[str, Any]) -> None:
    assert load(yaml_lines(value)) == value


@pytest.mark.parametrize(
    "word", ["yes", "NO", "null", "~", "1", "1.5", "0x1f", "1e3", "12:30:45", "2026-01-01", "=", "<<"]
)
def test_quotes_a_text_that_yaml_would_misread(word: str) -> None:
    assert load([f"value: {scalar(word)}"]) == {"value": word}


@pytest.mark.parametrize("name", ["{{ lookup('pipe', 'id') }}", "a {% raw %}", "{# x #}"])
def test_a_name_is_never_templated(name: str) -> None:
    assert scalar(name).startswith('!unsafe "')
    assert scalar(Expression("{{ ansible_playbook_python }}")) == '"{{ ansible_playbook_python }}"'


@given(TEXT)
def test_a_comment_stays_a_comment(text: str) -> None:
    assert all(not line or line.lstrip().startswith("# ") for line in comments([text], 2))
    assert load([*comments([text], 0), "end: 1"]) == {"end": 1}


def test_a_proposal_is_commented_below_its_decisions() -> None:
    whole = Item("profile", children=(Item("a", 1, decide="first"), Item("b", {"c": 2}, decide="second")))
    assert not whole.is_active and whole.decisions == ["first", "second"]
    assert lines_of([whole], 1) == [
        "  # decide: first",
        "  # decide: second",
        "  # profile:",
        "  #   a: 1",
        "  #   b: {c: 2}",
    ]


def test_shows_a_current_variable_next_to_its_proposal() -> None:
    whole = Item("profile", children=(Item("a", 1), Item("b", 2, decide="second")))
    assert load(lines_of([whole])) == {"profile": {"a": 1}}
    assert lines_of([whole]) == ["profile:", "  a: 1", "", "  # decide: second", "  # b: 2"]


def test_long_lists_have_a_line_for_each_entry() -> None:
    assert yaml_lines({"a": [{"b": 1, "c": 2}], "d": []}) == ["a:", "  - {b: 1, c: 2}", "d: []"]
