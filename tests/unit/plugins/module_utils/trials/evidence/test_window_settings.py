"""Settings of a maintenance window that nothing reads are refused."""

from __future__ import annotations

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.hosts.change_hosts import HostChangeOptions
from plugins.module_utils.hosts.rollout import OPTIONS_OF_WINDOW, RolloutOptions, window_of
from plugins.module_utils.trials.evidence.window_settings import require_known


def test_refuses_a_setting_that_nothing_reads() -> None:
    how = RolloutOptions(HostChangeOptions("gpu", {}), window=dict.fromkeys(OPTIONS_OF_WINDOW))
    window = window_of({"leaving": ["esx1"], "reboots": {"esx1": 2, "esx2": 0}}, how)
    assert window["reboots"] == {"esx1": 2}

    require_known(window)
    with pytest.raises(Refused, match=r"^vmotion_test_window: could not read it: a .* no setting max_stall, reboot;"):
        require_known({**window, "reboot": 1, "max_stall": 2})


def test_refuses_spare_hosts_if_no_worker_moves() -> None:
    spare = {"cluster": "cpu", "hosts": ["esx21.lab"]}
    for way in ("move", "auto"):
        require_known({"by": way, "spare": spare})
    with pytest.raises(Refused, match=r"^window_spare: could not use it: with window_by=restart, the workers"):
        require_known({"by": "restart", "spare": spare})
