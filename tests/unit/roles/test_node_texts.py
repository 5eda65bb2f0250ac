"""The command line gives the time servers of a node as a text."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.rendering import rendered

NODE = Path(__file__).parents[3] / "roles" / "node"


@pytest.mark.parametrize("given", ["ntp1.lab, ntp2.lab", "ntp1.lab,ntp2.lab", ["ntp1.lab", "ntp2.lab"]])
def test_time_servers_are_whole_names_in_text(given: object) -> None:
    tasks = yaml.safe_load((NODE / "tasks" / "time.yml").read_text(encoding="utf-8"))
    (block,) = [one["ansible.builtin.blockinfile"]["block"] for one in tasks if "ansible.builtin.blockinfile" in one]

    assert rendered(block, node_time_servers=given).split() == [
        "server",
        "ntp1.lab",
        "iburst",
        "server",
        "ntp2.lab",
        "iburst",
    ]
