"""The result of a module that failed becomes an error with the words of the module."""

from __future__ import annotations

import pytest

from plugins.module_utils.durable.calls import ModuleFailed, required


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
