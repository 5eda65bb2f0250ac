"""The result of a module that failed becomes an error with the words of the module."""

from __future__ import annotations

import pytest

from plugins.module_utils.durable.calls import ModuleFailed, all_required, required


def test_a_good_result_is_returned() -> None:
    assert required({"moves": []}) == {"moves": []}


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"failed": True, "msg": "esx1: could not reboot it: it is busy"}, "esx1: could not reboot it: it is busy"),
        ({"failed": True}, "the module failed without a message"),
    ],
)
def test_raises_the_message_of_a_failed_result(result: dict[str, object], words: str) -> None:
    with pytest.raises(ModuleFailed) as caught:
        required(result)
    assert str(caught.value) == words
    assert caught.value.result == result


def test_nodes_with_one_reason_share_its_sentence() -> None:
    failed = {"failed": True, "msg": "w1: the disk is full"}
    results = {"w1": failed, "w2": {"failed": True, "msg": "the disk is full", "unreachable": True}, "w3": {"ok": 1}}

    with pytest.raises(ModuleFailed) as caught:
        all_required({**results, "w4": {"failed": True}})

    assert str(caught.value) == "w1, w2: the disk is full w4: the module failed without a message"
    assert caught.value.result["unreachable"] is True


def test_good_results_of_nodes_are_returned() -> None:
    assert all_required({"w1": {"ok": 1}}) == {"w1": {"ok": 1}}
