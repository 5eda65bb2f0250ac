"""Options of another action are refused: this one would ignore them."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.action import observe, vmotion_test
from plugins.module_utils.errors import Refused


def _own(action: type[Any], of_role: dict[str, Any]) -> Any:
    return action._own(action.__new__(action), of_role)


@pytest.mark.parametrize(("action", "name"), [(observe, "window"), (vmotion_test, "window"), (vmotion_test, "observe")])
def test_action_refuses_the_options_of_another(action: Any, name: str) -> None:
    with pytest.raises(Refused, match=f"tasks_from={name}"):
        _own(action.ActionModule, {"cluster": "gpu", name: {"moved_by": "drs"}})


def test_action_leaves_out_empty_options_of_another() -> None:
    assert _own(vmotion_test.ActionModule, {"cluster": "gpu", "window": {}, "observe": {}}) == {"cluster": "gpu"}
