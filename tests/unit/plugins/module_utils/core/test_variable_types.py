"""A value of a wrong type is a sentence that names its variable."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.core.variable_types import wrong_types

GROUPS = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {"name": {"type": "str", "required": True}, "vlan": {"type": "int"}},
}
SPECS: dict[str, Any] = {
    "text": {"type": "str", "default": ""},
    "free": {"type": "str"},
    "file": {"type": "path", "required": True},
    "folder": {"type": "path", "default": ""},
    "count": {"type": "int", "default": 1},
    "rate": {"type": "float", "default": 1.0},
    "flag": {"type": "bool", "default": False},
    "names": {"type": "list", "elements": "str", "default": []},
    "groups": GROUPS,
    "any": {"type": "raw"},
    "table": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "tools": {"type": "list", "elements": "str", "choices": ["a", "b"], "default": ["a"]},
}


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("text", None, "the variable text has no value, but must be a text"),
        ("text", ["x"], "the variable text must be a text, not a list"),
        ("file", "", "the variable file has no value, but must be a path"),
        ("count", "seven", "the variable count must be a whole number, not 'seven'"),
        ("count", 1.5, "the variable count must be a whole number, not 1.5"),
        ("count", True, "the variable count must be a whole number, not true"),
        ("count", None, "the variable count has no value, but must be a whole number"),
        ("rate", "fast", "the variable rate must be a number, not 'fast'"),
        ("flag", 3, "the variable flag must be true or false, not 3"),
        ("names", "esx01.lab", "the variable names must be a list, not 'esx01.lab'"),
        ("names", {"a": 1}, "the variable names must be a list, not a mapping"),
        ("names", None, "the variable names has no value, but must be a list"),
        ("names", [None], "entry 1 of the variable names has no value, but must be a text"),
        ("names", ["a", {"b": 1}], "entry 2 of the variable names must be a text, not a mapping"),
        ("groups", ["a"], "entry 1 of the variable groups must be a mapping, not 'a'"),
        ("groups", [{"name": "a"}, {"vlan": 1}], "entry 2 of the variable groups lacks the key name"),
        (
            "groups",
            [{"name": "a", "vlan": "x"}],
            "vlan of entry 1 of the variable groups must be a whole number, not 'x'",
        ),
        ("groups", [{"name": "a", "vlann": 1}], "has the key vlann, but it can have only name, vlan"),
        ("table", "x" * 50, f"the variable table must be a mapping, not '{'x' * 40}...'"),
        ("state", "gone", "the variable state must be one of present, absent, not 'gone'"),
        ("tools", ["a", "c"], "entry 2 of the variable tools must be one of a, b, not 'c'"),
    ],
)
def test_reports_a_wrong_type(name: str, value: Any, sentence: str) -> None:
    (found,) = wrong_types(SPECS, {name: value})
    assert sentence in found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            ("text", "x"),
            ("text", 7),
            ("text", True),
            ("free", None),
            ("folder", ""),
            ("count", "7"),
            ("count", 7.0),
            ("rate", "0.5"),
        ],
        *[("flag", "yes"), ("flag", 0), ("flag", "False"), ("names", []), ("names", ("a", 1)), ("any", {"x": None})],
        *[("groups", [{"name": "a", "vlan": None}]), ("groups", "{{ mine }}"), ("groups", ["{{ mine }}"])],
        *[("table", {}), ("state", "absent"), ("tools", ["b"]), ("unknown", 1), ("rate", 2), ("text", "{% if x %}")],
    ],
)
def test_accepts_a_value_of_the_right_type(name: str, value: Any) -> None:
    assert wrong_types(SPECS, {name: value}) == []


def test_accepts_comma_separated_texts_from_the_command_line() -> None:
    given = {"names": "a,b", "groups": "a,b", "count": "x"}
    assert len(wrong_types(SPECS, given, frozenset({"names", "groups"}))) == 2
    assert len(wrong_types(SPECS, given)) == 3
