"""A port of a worker is reached with the login of the inventory."""

from __future__ import annotations

import pytest

from plugins.module_utils.training.runs.launching import forwarding_command

SSH = ["ssh", "-oBatchMode=yes", "-i", "/keys/a b", "me@w1"]
LOGIN = "-oBatchMode=yes -i '/keys/a b' me@w1"


@pytest.mark.parametrize(
    ("reach", "ports", "expected"),
    [
        (SSH, [6006], f"ssh -N -L 6006:localhost:6006 {LOGIN}"),
        ([*SSH, "sudo", "-n", "-u", "u"], [1, 2], f"ssh -N -L 1:localhost:1 -L 2:localhost:2 {LOGIN}"),
        (SSH, [], ""),
        (["sh", "-c"], [6006], ""),
    ],
)
def test_the_command_has_the_options_of_the_connection(reach: list[str], ports: list[int], expected: str) -> None:
    assert forwarding_command(reach, ports) == expected
