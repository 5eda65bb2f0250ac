"""Networks are found by name, in the plain and in the escaped spelling."""

from __future__ import annotations

import pytest

from plugins.module_utils.errors import NotFound
from plugins.module_utils.workers.networks import Network, Networks, distinct, to_come

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


def test_port_groups_with_one_name_are_named_by_switch() -> None:
    left, right = (Network("train", None, key=f"dvportgroup-{one}", path=f"{one}/train") for one in ("left", "right"))
    both = Networks("gpu", distinct([left, right, Network("train", None), BLUE]))
    assert [network.name for network in both.all] == ["left/train", "right/train", "train", "rack/1"]
    assert both.named("right/train").key == "dvportgroup-right"
    assert both.named("train").key == ""


def test_refuses_a_name_that_two_switches_have() -> None:
    paths = ("left/train", "right/train")
    both = Networks("gpu", distinct([Network("train", None, key=path, path=path) for path in paths]))
    with pytest.raises(
        NotFound, match="2 port groups have that name; name it with its switch: left/train or right/train"
    ):
        both.named("train")


def test_a_unique_port_group_has_its_path_too() -> None:
    only = Network("train", None, key="dvportgroup-1", path="left/train")
    assert Networks("gpu", [only]).named("left/train").name == "train"
