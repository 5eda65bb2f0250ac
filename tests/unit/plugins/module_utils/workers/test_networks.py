"""Networks are found by name, in the plain and in the escaped spelling."""

from __future__ import annotations

import pytest

from plugins.module_utils.errors import NotFound
from plugins.module_utils.workers.networks import Network, Networks, to_come

BLUE = Network("rack/1", None, key="dvportgroup-1")
THERE = Networks("gpu", [BLUE, Network("VM Network", None)])


@pytest.mark.parametrize("requested", ["rack/1", "rack%2f1", "rack%2F1"])
def test_a_network_has_one_name_in_two_spellings(requested: str) -> None:
    assert THERE.named(requested) is BLUE
    assert to_come(THERE, [requested]).all == THERE.all


def test_finds_a_planned_network_in_either_spelling() -> None:
    both = to_come(THERE, ["new%2f1"])
    assert both.named("new/1").to_come and both.named("new%2f1").name == "new/1"


def test_refuses_a_missing_network_as_the_user_spelled() -> None:
    with pytest.raises(NotFound, match=r"'other%2f1'.*it has VM Network, rack/1"):
        THERE.named("other%2f1")
