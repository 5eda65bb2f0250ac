"""A run with a limit, or with a host pattern in ``guests``, leaves out workers that roles must not forget."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.guests.node_checks import check
from tests.rendering import task_of, truth, value, variables

CONF = "# Written by the role dml.vsphere.slurm, which replaces changes.\nNodeName=n1 CPUs=2\nNodeName=n3 CPUs=2"
FACTS = {"nodename": "n3", "processor_nproc": 2, "memtotal_mb": 24105}
GATHERED = {
    "__slurm_gpus": {"matched": 0},
    "__slurm_cgroups": {"stdout": "cgroup2fs"},
    "__slurm_written": {"stdout": CONF},
}


@pytest.mark.parametrize(
    ("options", "refused"),
    [({"ansible_limit": "w3"}, "--limit w3"), ({"guests": "w3"}, "guests=w3"), ({"guests": "true"}, ""), ({}, "")],
)
def test_slurm_refuses_options_that_leave_out_nodes(options: dict[str, str], refused: str) -> None:
    """An ordinary run without a node of the cluster goes on: the inventory does not have that node any more."""
    hosts = {"w3": {"ansible_facts": FACTS, "ansible_host": "10.0.1.3", **GATHERED}}
    names = {"ansible_play_hosts_all": ["w3"], "hostvars": hosts, "inventory_hostname": "w3", **options}
    found, desired = (value("slurm", name, **names) for name in ("__slurm_found", "__slurm_wanted"))

    _result, message = check("slurm_settings", "w3", found, desired)

    assert message.startswith(f"The nodes cannot become a Slurm cluster: {refused} leaves out n1" if refused else "")
    assert bool(message) == bool(refused)


PINNED = """gateway ssh-ed25519 AAAA0
# BEGIN peers, kept by Ansible
w1,10.0.1.1 ssh-ed25519 AAAA1
w2 ssh-ed25519 AAAA2
deleted,10.0.1.9 ssh-ed25519 AAAA9
# END peers, kept by Ansible
w4,10.0.1.4 ssh-ed25519 AAAA4"""


def left_out_peers(play: list[str], pinned: str, options: dict[str, Any]) -> str:
    """Return the message of the role node about peers that a run leaves out; empty without any."""
    names = {
        "ansible_play_hosts_all": play,
        "groups": {"all": ["gateway", "w1", "w2", "w3", "w4"]},
        "hostvars": {"w1": {name: given for name, given in options.items() if name == "node_peers"}},
        "inventory_hostname": "w1",
        **options,
    }
    task = task_of("node", "refuse.yml", "Reject a limit")
    if not truth(task["when"], **{**variables("node"), **names}):
        return ""
    return check("node_peers", "w1", {"known_hosts": pinned}, value("node", "__node_run", **names))[1]


@pytest.mark.parametrize(
    ("options", "refused"), [({"ansible_limit": "w1"}, "--limit w1"), ({"guests": "w1"}, "guests=w1")]
)
def test_node_refuses_options_that_leave_out_peers(options: dict[str, str], refused: str) -> None:
    message = left_out_peers(["w1"], PINNED, options)

    assert message == (
        f"w1 cannot be prepared: {refused} leaves out w2, to which the node would lose its connection: run without "
        f"{refused}, or set node_peers to the nodes that train together."
    )


@pytest.mark.parametrize(
    ("play", "pinned", "options"),
    [
        (["w1", "w2"], PINNED, {"ansible_limit": "w*"}),  # the third peer is no longer in the inventory
        (["w1"], PINNED, {"guests": "true"}),
        (["w1"], "", {"ansible_limit": "w1"}),  # a new node
        (["w1"], PINNED, {"ansible_limit": "w1", "node_peers": ["w1"]}),
    ],
)
def test_node_accepts_runs_that_keep_its_peers(play: list[str], pinned: str, options: dict[str, Any]) -> None:
    assert left_out_peers(play, pinned, options) == ""
