"""Values in the types of a server's options."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.core.option_types import BOOL, FLOAT, INTEGER, TEXT, checked, kind_of, typed


@pytest.mark.parametrize(
    ("value", "kind", "after"),
    [
        ("Yes", BOOL, True),
        (0, BOOL, False),
        ("0x10", INTEGER, 16),
        (-1, INTEGER, -1),
        ("1.5", FLOAT, 1.5),
        (-1, TEXT, "-1"),
        (True, TEXT, "true"),
    ],
)
def test_converts_a_value_to_its_kind(value: Any, kind: str, after: Any) -> None:
    assert typed(value, kind) == after and type(typed(value, kind)) is type(after)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("maybe", BOOL),
        (2, BOOL),
        (True, INTEGER),
        ("1.5", INTEGER),
        ("x", FLOAT),
        ("nan", FLOAT),
        ("-inf", FLOAT),
        (1e999, FLOAT),
    ],
)
def test_incompatible_parts_are_refused(value: Any, kind: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        typed(value, kind)


def test_each_python_type_has_a_kind() -> None:
    assert [kind_of(value) for value in (True, 1, 1.5, "x", None)] == [BOOL, INTEGER, FLOAT, TEXT, TEXT]


ANY = {"min": None, "max": None, "choices": None, "characters": None}


@pytest.mark.parametrize(
    ("value", "definition", "expected"),
    [
        ("7", {"kind": INTEGER, "min": 0, "max": 5}, "7 is not within 0 to 5"),
        ("c", {"kind": TEXT, "choices": ["a", "b"]}, "'c' is not one of a, b"),
        ("a1b2", {"kind": TEXT, "characters": "abc"}, "'12' is not among the characters abc"),
        (None, {"kind": TEXT}, "it has no value"),
        ("maybe", {"kind": BOOL}, "'maybe' is not true or false"),
    ],
)
def test_refuses_a_value_that_the_server_forbids(value: Any, definition: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        checked(value, {**ANY, **definition})


@pytest.mark.parametrize(
    ("value", "definition", "after"),
    [
        ("5", {"kind": INTEGER, "min": 0, "max": 5}, 5),
        ("b", {"kind": TEXT, "choices": ["a", "b"]}, "b"),
        ("", {"kind": TEXT, "characters": "abc"}, ""),
        ("no", {"kind": BOOL}, False),
    ],
)
def test_converts_an_allowed_value_to_its_type(value: Any, definition: Any, after: Any) -> None:
    assert checked(value, {**ANY, **definition}) == after
