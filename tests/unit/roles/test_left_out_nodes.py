"""A run with a limit, or with a host pattern in ``guests``, leaves out workers that roles must not forget."""

from __future__ import annotations

import pytest

from plugins.module_utils.guests.node_checks import check
from tests.rendering import value

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
