"""The prose of the checkout has no words that language.yml refuses, and each pattern finds its words only."""

from __future__ import annotations

import pytest

from tests.rules import language


@pytest.fixture(scope="module")
def checkout() -> list[language.Hit]:
    return language.of([])


@pytest.mark.parametrize("entry", language.PATTERNS, ids=lambda entry: entry["finds"])
def test_a_pattern_finds_its_words_and_accepts_a_near_miss(entry: dict[str, str]) -> None:
    assert language.expression(entry["find"]).search(entry["finds"])
    assert not language.expression(entry["find"]).search(entry["accepts"])


def test_no_prose_of_this_checkout_has_a_hit(checkout: list[language.Hit]) -> None:
    assert not checkout, "rewrite these words:\n" + "\n".join(map(str, checkout))
