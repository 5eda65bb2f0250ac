"""esxi_power against the simulated data centre: emptying, rebooting, returning to service, and failures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lab.simulator import Simulator
from plugins.module_utils.maintenance import service_note
from plugins.module_utils.vsphere import inventory, session
from tests.integration.ansible import Ansible, AnsibleFor, Start

ONE = {"hosts": ["esx01.lab"]}


# Four GPU hosts; workers on the first ones, each with the whole of a T4.
WORKERS = """
version: 8.0.3
datacenter: dc1
datastores: [shared]
vcenter_options: {{vgpu.hotmigrate.enabled: {hot}}}
host_defaults:
  hardware: t4_cx5
  reboot_seconds: 1
  vmotion_seconds: 0.2
  graphics: {{default: sharedDirect, policy: performance}}
  vibs: [{{name: NVD-AIE_ESXi_8.0.0_Driver, version: 550.90.05, vendor: NVIDIA}}]
clusters:
  - name: gpu
    drs: {{enabled: true, behaviour: {drs}}}
    hosts: [{{name: "esx%02d.lab", count: {hosts}}}]
vms:
  - {{name: "worker%02d", count: {workers}, host: "esx%02d.lab", powered_on: true, memory_mb: 4096, vgpu: grid_t4-16c,
     owner: "team ml"}}
"""


@pytest.fixture
def vcenter(vcenter: Simulator) -> Simulator:
    """The lab, whose first host boots at once."""
    vcenter.set_host("esx01.lab", reboot_seconds=0.2)
    return vcenter


def workers(
    start: Start, hosts: int = 4, count: int = 2, hot: bool = True, drs: str = "partiallyAutomated"
) -> Simulator:
    return start(text=WORKERS.format(hosts=hosts, workers=count, hot=str(hot).lower(), drs=drs))


def test_evacuates_reboots_and_returns_a_host_once_each(vcenter: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("esxi_power", check=True, state="maintenance", **ONE)
    assert planned.changed and vcenter.writes() == []
    entered = ansible.module("esxi_power", state="maintenance", **ONE)
    assert entered.changed and entered.host("esx01.lab")["state"]["ours"], entered.out
    assert entered.result["diff"] == planned.result["diff"]
    vcenter.clear()
    again = ansible.module("esxi_power", state="maintenance", **ONE)
    assert not again.changed and vcenter.writes() == []
    before = vcenter.ask("GET", "/hosts/esx01.lab")
    booted = ansible.module("esxi_power", state="rebooted", **ONE)
    assert booted.changed and booted.host("esx01.lab")["state"]["reboot"] == "done", booted.out
    assert vcenter.ask("GET", "/hosts/esx01.lab") != before
    assert [write["method"] for write in vcenter.writes()].count("RebootHost_Task") == 1
    given = ansible.module("esxi_power", state="in_service", **ONE)
    assert given.changed and given.host("esx01.lab")["state"] == {"maintenance": False, "ours": False, "by": None}
    vcenter.clear()
    assert not ansible.module("esxi_power", state="in_service", **ONE).changed
    assert vcenter.writes() == []


def test_does_not_return_another_users_host_to_service(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.set_host("esx01.lab", maintenance=True)
    entered = ansible.module("esxi_power", state="maintenance", **ONE)
    assert not entered.changed and not entered.host("esx01.lab")["state"]["ours"]
    assert ansible.module("esxi_power", state="rebooted", **ONE).changed
    vcenter.clear()
    left = ansible.module("esxi_power", state="in_service", **ONE)
    assert not left.changed and vcenter.writes() == []
    assert left.host("esx01.lab")["state"]["maintenance"]
    assert "did not put it there" in left.host("esx01.lab")["warnings"][0]
    forced = ansible.module("esxi_power", state="in_service", only_if_ours=False, **ONE)
    assert forced.changed and not forced.host("esx01.lab")["state"]["maintenance"]


@pytest.mark.hosts_out(2)
def test_moves_workers_one_by_one_and_lists_owners(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = workers(start)
    ansible = ansible_for(vcenter)
    desired = {"hosts": ["esx01.lab", "esx02.lab"], "state": "maintenance", "moved_by": "module"}
    planned = ansible.module("esxi_power", check=True, **desired)
    moves = [entry["state"]["evacuation"]["moves"] for entry in planned.result["hosts"]]
    assert [[(one["vm"], one["owner"]) for one in some] for some in moves] == [
        [("worker01", "team ml")],
        [("worker02", "team ml")],
    ]
    assert {one["to"] for some in moves for one in some} == {"esx03.lab", "esx04.lab"}
    assert vcenter.writes() == []
    done = ansible.module("esxi_power", **desired)
    assert done.changed, done.out
    moved = [write["name"] for write in vcenter.writes() if write["method"] == "RelocateVM_Task"]
    assert sorted(moved) == ["worker01", "worker02"]


def test_evaluates_each_host_separately_with_one_call(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = workers(start, 4, 3)
    ansible = ansible_for(vcenter)
    stop = {"state": "maintenance", "moved_by": "module", "each_alone": True}
    used: list[int] = []
    for hosts in (["esx01.lab"], [f"esx{number:02}.lab" for number in range(1, 4)]):
        vcenter.clear()
        planned = ansible.module("esxi_power", check=True, hosts=hosts, **stop)
        used.append(sum(vcenter.calls().values()))
        # Together they would find one free GPU; alone each finds that of esx04.lab.
        assert [entry["unmet"] for entry in planned.result["hosts"]] == [[]] * len(hosts), planned.out
        moves = [entry["state"]["evacuation"]["moves"] for entry in planned.result["hosts"]]
        assert [one["to"] for some in moves for one in some] == ["esx04.lab"] * len(hosts)
    assert used[1] <= used[0], used
    together = ansible.module("esxi_power", check=True, **{**stop, "hosts": hosts, "each_alone": False})
    assert sum(bool(entry["unmet"]) for entry in together.result["hosts"]) == 2
    really = ansible.module("esxi_power", hosts=hosts, **stop)
    assert really.rc == 1 and "each_alone is for check mode: omit it" in really.msg
    assert vcenter.writes() == []


PASSED = """
datacenter: dc1
datastores: [shared]
clusters: [{name: gpu, hosts: [{name: "esx%02d.lab", count: 2, passthrough: [all]}]}]
host_defaults: {hardware: t4_cx5}
vms: [{name: solver, host: esx01.lab, powered_on: true, passthrough: gpu, owner: carol}]
"""


def test_powers_off_a_passthrough_machine_only_if_allowed(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=PASSED)
    ansible = ansible_for(vcenter)
    refused = ansible.module("esxi_power", state="maintenance", **ONE)
    assert refused.rc == 1 and "solver" in refused.msg and "power_off: true" in refused.msg
    assert vcenter.writes() == []
    done = ansible.module("esxi_power", state="maintenance", power_off=True, power_off_timeout=5, **ONE)
    assert done.changed, done.out
    methods = [write["method"] for write in vcenter.writes()]
    assert methods.index("ShutdownGuest") < methods.index("EnterMaintenanceMode_Task")


def test_timeout_names_the_blocking_machine_and_restores_service(start: Start, ansible_for: AnsibleFor) -> None:
    # DRS of the lab says that it is fully automated, and moves nothing.
    vcenter = start(
        text=WORKERS.format(hosts=2, workers=1, hot="true", drs="fullyAutomated").replace(", vgpu: grid_t4-16c", "")
    )
    ansible = ansible_for(vcenter)
    late = ansible.module("esxi_power", state="maintenance", maintenance_timeout=1, **ONE)
    assert late.rc == 1
    assert "after 1 s it still runs worker01 (" in late.msg and "owner team ml" in late.msg
    after = ansible.module("esxi_power", check=True, state="in_service", **ONE)
    assert after.host("esx01.lab")["state"] == {"maintenance": False, "ours": False, "by": None}


def test_next_run_keeps_waiting_for_an_overdue_reboot(vcenter: Simulator, ansible: Ansible) -> None:
    ansible.module("esxi_power", state="maintenance", **ONE)
    vcenter.set_host("esx01.lab", never_returns=True)
    gone = ansible.module("esxi_power", state="rebooted", reboot_timeout=2, **ONE)
    assert gone.rc == 1
    assert gone.msg.startswith("esx01.lab: could not reboot: it went down and did not return within 2 s; ")
    vcenter.clear()
    healed = threading.Timer(1, lambda: vcenter.set_host("esx01.lab", connection="connected"))
    healed.start()
    back = ansible.module("esxi_power", state="rebooted", reboot_timeout=20, **ONE)
    healed.join()
    assert back.rc == 0 and back.host("esx01.lab")["state"]["reboot"] == "done", back.out
    assert "RebootHost_Task" not in [write["method"] for write in vcenter.writes()]


def test_does_not_repeat_a_reboot_that_finished_later(vcenter: Simulator, ansible: Ansible) -> None:
    ansible.module("esxi_power", state="maintenance", **ONE)
    vcenter.set_host("esx01.lab", never_returns=True)
    ansible.module("esxi_power", state="rebooted", reboot_timeout=1, **ONE)
    vcenter.set_host("esx01.lab", connection="connected")
    vcenter.clear()
    after = ansible.module("esxi_power", state="rebooted", **ONE)
    assert after.rc == 0 and "RebootHost_Task" not in [write["method"] for write in vcenter.writes()]
    assert ansible.module("esxi_power", state="rebooted", **ONE).rc == 0
    assert [write["method"] for write in vcenter.writes()].count("RebootHost_Task") == 1


@pytest.mark.parametrize(
    ("method", "state"),
    [
        ("EnterMaintenanceMode_Task", "maintenance"),
        ("RebootHost_Task", "rebooted"),
        ("ExitMaintenanceMode_Task", "in_service"),
    ],
)
@pytest.mark.parametrize("kind", ["fault", "task_fails"])
def test_quotes_the_servers_refusal_and_keeps_host_state(
    vcenter: Simulator, ansible: Ansible, method: str, state: str, kind: str
) -> None:
    if state != "maintenance":
        ansible.module("esxi_power", state="maintenance", **ONE)
    vcenter.fault(method, kind, fault="HostConfigFault", message="Not today.")
    failed = ansible.module("esxi_power", state=state, **ONE)
    assert failed.rc == 1 and failed.msg.startswith("esx01.lab: could not") and "Not today" in failed.msg
    now = ansible.module("esxi_power", check=True, state="maintenance", **ONE).host("esx01.lab")
    assert now["changed"] is (state == "maintenance")
    assert ansible.module("esxi_power", state=state, **ONE).changed


def test_next_run_returns_a_host_still_in_maintenance(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("esxi_power", state="maintenance", **ONE).changed
    vcenter.fault("ExitMaintenanceMode_Task", "deaf", count=1)
    assert "accepted the change, yet maintenance is True" in ansible.module("esxi_power", state="in_service", **ONE).msg
    assert ansible.module("esxi_power", state="in_service", **ONE).changed
    assert not vcenter.ask("GET", "/hosts/esx01.lab")["maintenance"]


@contextmanager
def first_host(vcenter: Simulator) -> Iterator[inventory.Host]:
    """The first host, read in a separate session."""
    options = {"validate_certs": True, "tls_fingerprint": None, "proxy": None, "timeout": 60, **vcenter.connection}
    with session.session(options) as opened:
        hosts = inventory.find_hosts(opened, {"hosts": ["esx01.lab"]}, service_note.PATHS)
        hosts.refresh()
        yield hosts.hosts[0]


def test_continues_only_its_own_entry_into_maintenance(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = workers(start)
    ansible = ansible_for(vcenter)
    with first_host(vcenter) as host:
        host.ref.EnterMaintenanceMode_Task(timeout=60, evacuatePoweredOffVms=False)
        theirs = ansible.module("esxi_power", state="maintenance", moved_by="module", **ONE)
        assert theirs.rc == 1 and "is putting it into maintenance mode now" in theirs.msg
        service_note.write(host, service_note.ServiceNote("killed@ctl", service_note.now(host)))
        vcenter.fault("RelocateVM_Task", "task_fails", count=1, fault="MigrationFault", message="The source refused.")
        assert ansible.module("esxi_power", state="maintenance", moved_by="module", **ONE).rc == 1, (
            "it is still entering"
        )
        vcenter.clear()
        taken_up = ansible.module("esxi_power", state="maintenance", moved_by="module", maintenance_timeout=20, **ONE)
    assert taken_up.rc == 0 and taken_up.host("esx01.lab")["state"]["ours"], taken_up.out
    assert "EnterMaintenanceMode_Task" not in [write["method"] for write in vcenter.writes()]


def test_returning_a_host_cancels_its_own_running_entry(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = workers(start)
    ansible = ansible_for(vcenter)
    with first_host(vcenter) as host:
        service_note.write(host, service_note.ServiceNote("killed@ctl", service_note.now(host)))
        entry = host.ref.EnterMaintenanceMode_Task(timeout=60, evacuatePoweredOffVms=False)
        back = ansible.module("esxi_power", state="in_service", **ONE)
        assert back.rc == 0, back.out
        assert entry.info.state == "error"
        assert not host.ref.runtime.inMaintenanceMode
    assert not ansible.module("esxi_power", state="in_service", **ONE).changed


def test_failed_move_leaves_the_host_in_service(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = workers(start)
    ansible = ansible_for(vcenter)
    vcenter.fault("RelocateVM_Task", "task_fails", fault="MigrationFault", message="The source refused.")
    failed = ansible.module("esxi_power", state="maintenance", moved_by="module", **ONE)
    assert failed.rc == 1
    assert (
        "worker01: could not move it from esx01.lab to esx03.lab" in failed.msg and "The source refused" in failed.msg
    )
    assert not ansible.module("esxi_power", check=True, state="in_service", **ONE).changed
    assert ansible.module("esxi_power", state="maintenance", moved_by="module", **ONE).changed
