# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""esxi_power on hosts that a person takes out of service and returns with a client of vCenter."""

from __future__ import annotations

from datetime import UTC, datetime

from lab.simulator import Simulator
from plugins.module_utils.maintenance import service_note
from plugins.module_utils.vsphere import inventory, session, tasks
from tests.integration.ansible import Ansible
from tests.integration.killing import wait_for

ONE = {"hosts": ["esx01.lab"]}


def test_a_host_that_was_returned_by_hand_and_taken_out_again_is_not_ours(vcenter: Simulator, ansible: Ansible) -> None:
    """The note of the first time stays on the host: a person in a client does not remove it."""
    entered = ansible.module("esxi_power", state="maintenance", **ONE)
    since = entered.host("esx01.lab")["state"]["by"].rpartition(" ")[2]
    assert ansible.module("esxi_power", check=True, state="in_service", **ONE).changed, "it is ours"
    wait_for(lambda: datetime.now(UTC).strftime(service_note.FORMAT) > since, 5)
    with session.session({"validate_certs": True, "timeout": 60, **vcenter.connection}) as opened:
        (host,) = inventory.find_hosts(opened, ONE).hosts
        for method in ("ExitMaintenanceMode_Task", "EnterMaintenanceMode_Task"):
            tasks.wait(opened, tasks.Started(getattr(host.ref, method)(timeout=30), host.name, method), 30)
    vcenter.clear()
    left = ansible.module("esxi_power", state="in_service", **ONE)
    assert not left.changed and vcenter.writes() == [], left.out
    assert "did not put it there" in left.host("esx01.lab")["warnings"][0]
    stops = ansible.module("cluster_info", cluster="gpu", leaving=["esx01.lab"]).result["stops"]
    assert [stop["object"] for stop in stops if stop["rule"] == "taken_out"] == ["esx01.lab"], stops
