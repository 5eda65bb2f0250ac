"""Versions of a stack's parts are compared by their numbers."""

from __future__ import annotations

import pytest

from plugins.module_utils.guests.stack.part_versions import at_least, built_for_cuda, numbers, same_cuda, series, within


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.4.7-1+cuda10.0", (2, 4, 7)),
        ("5:18.09.7~3-0~ubuntu", (18, 9, 7)),
        ("12.0", (12,)),
        ("535.54.03", (535, 54, 3)),
    ],
)
def test_versions_are_numbers(version: str, expected: tuple[int, ...]) -> None:
    assert numbers(version) == expected


def test_refuses_a_version_that_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="'latest' is not a version"):
        numbers("latest")


def test_versions_are_compared_by_number() -> None:
    assert at_least("2.10", "2.9")
    assert not at_least("535.54", "535.54.03")
    assert series("2.15.1", 2) == "2.15"
    assert series("12", 2) == "12.0"
    assert within("3.11.2", ["3.9", "3.11"])
    assert not within("3.12", ["3.9", "3.11"])
    assert within("2.19", ["2.16", None])
    assert built_for_cuda("8.9.7.29-1+cuda12.2") == "12.2"
    assert built_for_cuda("8.9.7.29-1.cuda12.2") == "12.2"
    assert built_for_cuda("4.1.4-3+b1") is None
    assert same_cuda("12.2", "12.9")
    assert not same_cuda("10.0", "10.1")
    assert not same_cuda("11.8", "12.0")
