# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Values as the types that a server wants."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.logic.option_types import BOOL, FLOAT, INTEGER, TEXT, kind_of, typed


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
def test_a_value_becomes_its_kind(value: Any, kind: str, after: Any) -> None:
    assert typed(value, kind) == after and type(typed(value, kind)) is type(after)


@pytest.mark.parametrize(
    ("value", "kind"), [("maybe", BOOL), (2, BOOL), (True, INTEGER), ("1.5", INTEGER), ("x", FLOAT)]
)
def test_what_does_not_fit_is_refused(value: Any, kind: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        typed(value, kind)


def test_kinds() -> None:
    assert [kind_of(value) for value in (True, 1, 1.5, "x", None)] == [BOOL, INTEGER, FLOAT, TEXT, TEXT]
