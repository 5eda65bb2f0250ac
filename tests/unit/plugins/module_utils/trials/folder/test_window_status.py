"""The state of a window names the hosts that runs took out of service, and how to return those that were left."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.trials.folder.window_status import lines

FREE: dict[str, Any] = {"held": False, "over": None}
HELD = {"held": True, "owner": "bob", "run": "one", "since": "then", "over": None}
LEFT = "gpu: esx5 is out of service (maintenance), and no run continues it: the playbook hosts finishes its change"


@pytest.mark.parametrize(
    ("lock", "begin", "advises"),
    [(FREE, LEFT, True), ({**HELD, "over": "it died"}, LEFT, True), (HELD, "gpu: esx5 is out of service", False)],
    ids=["free", "over", "held"],
)
def test_status_names_hosts_that_a_rollout_left(lock: dict[str, Any], begin: str, advises: bool) -> None:
    out = [{"host": "esx5", "why": "maintenance", "ours": True}, {"host": "esx6", "why": "maintenance", "ours": False}]

    _holder, *shown = lines("gpu", lock, None, out)

    assert len(shown) == 1 and shown[0].startswith(begin)
    assert ("esxi_power with state=in_service returns it as it is" in shown[0]) == advises
