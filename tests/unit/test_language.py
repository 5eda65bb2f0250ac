"""The prose of the checkout has no words that language.yml refuses, and each pattern finds its words only."""

from __future__ import annotations

import pytest

from tests.rules import language


@pytest.fixture(scope="module")
def checkout() -> list[language.Hit]:
    return language.of([])


@pytest.mark.parametrize("entry", language.PATTERNS, ids=lambda entry: entry["finds"])
def test_pattern_finds_its_example_and_accepts_near_misses(entry: dict[str, str]) -> None:
    assert language.expression(entry["find"]).search(entry["finds"])
    assert not language.expression(entry["find"]).search(entry["accepts"])


def test_prose_of_this_checkout_matches_no_pattern(checkout: list[language.Hit]) -> None:
    assert not checkout, "rewrite these words:\n" + "\n".join(map(str, checkout))
