"""rdma_fabric where vCenter accepts and does not keep, and where it stores names in its own form."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.fabrics import datacentre, desired

Make = Start
For = AnsibleFor


def info(ansible: Ansible, **options: Any) -> dict[str, Any]:
    outcome = ansible.module("cluster_info", **{"cluster": "gpu", "switch": "rdma", **options})
    assert outcome.rc == 0, outcome.msg
    return {name: outcome.result[name] for name in ("fabric", "pings", "ping_error")}


@pytest.mark.parametrize("method", ["RemoveVirtualNic", "SetField"])
@pytest.mark.datacentre(text=datacentre())
def test_next_run_removes_what_the_server_kept(vcenter: Simulator, ansible: Ansible, method: str) -> None:
    before = info(ansible)
    assert ansible.module("rdma_fabric", **desired()).rc == 0
    vcenter.fault(method, "deaf")
    deaf = ansible.module("rdma_fabric", cluster="gpu", state="absent")
    assert deaf.rc != 0 and "the server accepted it, yet" in deaf.msg, deaf.out
    mended = ansible.module("rdma_fabric", cluster="gpu", state="absent")
    assert mended.rc == 0 and info(ansible) == before, mended.out


@pytest.mark.datacentre(text=datacentre())
def test_lost_note_ends_the_run_before_building_adapters(vcenter: Simulator, ansible: Ansible) -> None:
    before = info(ansible)
    vcenter.fault("SetField", "deaf")
    deaf = ansible.module("rdma_fabric", **desired())
    assert deaf.rc != 0 and "could not write its custom attribute" in deaf.msg
    assert "AddVirtualNic" not in [write["method"] for write in vcenter.writes()]
    assert "the rest is done" not in deaf.msg and "completed changes are kept" in deaf.msg, "no host has joined"
    assert ansible.module("rdma_fabric", **desired()).rc == 0
    assert ansible.module("rdma_fabric", cluster="gpu", state="absent").rc == 0
    assert info(ansible) == before


def test_recognizes_names_that_vcenter_stores_escaped(start: Make, ansible_for: For) -> None:
    vcenter = start(text=datacentre())
    ansible, fabric = ansible_for(vcenter), desired(switch="rdma/1")
    fabric["port_groups"] = [{**one, "name": one["name"].replace("-", "/50%\\")} for one in fabric["port_groups"]]
    fabric["adapters"] = [{**one, "port_group": "rdma/50%\\vmk"} for one in fabric["adapters"]]
    built = ansible.module("rdma_fabric", **fabric)
    assert built.rc == 0, built.msg
    vcenter.clear()
    again = ansible.module("rdma_fabric", **fabric)
    assert again.rc == 0 and not again.changed and vcenter.writes() == [], again.out
    assert info(ansible, switch="rdma/1")["fabric"]["switch"] == {"mtu": 9000, "ours": True}
    gone = {"cluster": "gpu", "switch": "rdma/1", "state": "absent"}
    assert ansible.module("rdma_fabric", **gone).changed and not ansible.module("rdma_fabric", **gone).changed
