"""The fault matrix of host preparation: what goes wrong while hosts are changed. docs/faults.md is its table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import AnsibleFor, Start
from tests.integration.faults import DRIVER, HOST, Bench, Fault, power_off
from tests.integration.rolling import datacentre

STAYS = "Hosts in maintenance mode stay there; the next run of this playbook continues from here"
WORKER = "vms: [{name: solver, host: esx01.lab, powered_on: true, memory_mb: 4096, owner: carol}]"


def strike(method: str, kind: str = "fault", **more: Any) -> Callable[[Simulator], None]:
    """A fault of the simulator at the next call of a method."""
    return lambda vcenter: vcenter.fault(method, kind, **more)


def automated(*hosts: str) -> str:
    """A data centre whose DRS claims to move everything and moves nothing; a virtual machine runs on the first host."""
    return datacentre(*hosts, more=WORKER).replace("partiallyAutomated", "fullyAutomated")


def link(state: str) -> Callable[[Simulator], None]:
    """The connection between vCenter and the host."""
    return lambda vcenter: vcenter.set_host(HOST, connection=state)


FULL = Fault(
    "cluster too full",
    lambda _vcenter: None,
    ("solver (", "owner carol", "has nowhere to go: no other host of cluster gpu is in service"),
    out=False,
    mend=lambda vcenter: power_off(vcenter, "solver"),
)
PRIVILEGE = Fault(
    "missing privilege",
    strike("EnterMaintenanceMode_Task", fault="NoPermission"),
    ("esx01.lab: could not enter maintenance mode", "NoPermission", "give administrator@vsphere.local that privilege"),
    out=False,
)
DEAF = Fault(
    "deaf host",
    strike("UpdateModuleOptionString", "deaf"),
    ("esx01.lab: could not change", "accepted the change, yet", "look at the host's log", STAYS),
)
DROPPED = Fault(
    "connection dropped",
    strike("UpdateModuleOptionString", "drop", after=True),
    ("esx01.lab: could not", "the connection broke", "run again, which reads the state again", STAYS),
)
LOST = Fault(
    "host unreachable before the reboot",
    link("notResponding"),
    ("esx01.lab: could not", "vCenter shows it as notResponding", "bring it back and run again"),
    at="Rename_Task",
    mend=link("connected"),
)
EXPIRED = Fault(
    "session expired",
    strike("RebootHost_Task", "expire_session"),
    ("esx01.lab: could not reboot", "NotAuthenticated", "the session ended: run again", STAYS),
)
NEVER = Fault(
    "reboot never returns",
    strike("RebootHost_Task", "never_returns"),
    ("esx01.lab: could not reboot: it went down and did not return within 3 s", "check its console", STAYS),
    mend=link("connected"),
    variables={"esxi_host_reboot_timeout": 3},
)
STILL_AWAY = Fault(
    "host unreachable at the start",
    lambda _vcenter: None,
    ("esx01.lab: could not", "vCenter shows it as notResponding", "bring it back and run again"),
    mend=link("connected"),
)
TASK = Fault(
    "task fails",
    strike("ExitMaintenanceMode_Task", "task_fails", fault="HostConfigFault", message="Not today."),
    ("esx01.lab: could not leave maintenance mode", "HostConfigFault: Not today", STAYS),
)
# Nothing is mended between the last reboot and the run after it.
CHAIN = (FULL, PRIVILEGE, DEAF, DROPPED, LOST, EXPIRED, NEVER, STILL_AWAY, TASK)
# One of each phase: a write, the way to the reboot, the reboot, and the start of the next run.
SHORT_CHAIN = (DEAF, LOST, NEVER, STILL_AWAY)
SILENT = Fault(
    "host unreachable after the reboot",
    strike("RefreshServices", fault="HostCommunication", count=-1),
    ("esx01.lab: could not wait for its services after the reboot: its management agent does not answer", STAYS),
    variables={"esxi_host_reboot_timeout": 4},
)
# The first call is the rehearsal.
REFUSED = Fault(
    "VIB refused",
    strike("esxcli software vib install", fault="HostConfigFault", message="The VIB conflicts.", skip=1),
    ("esx01.lab: could not install", "The VIB conflicts", STAYS),
    at="EnterMaintenanceMode_Task",
)
BLOCKED = Fault(
    "maintenance blocked by a VM",
    lambda _vcenter: None,
    ("after 1 s it still runs solver (", "owner carol", "move or power off these"),
    out=False,
    mend=lambda vcenter: power_off(vcenter, "solver"),
    variables={"esxi_host_maintenance_timeout": 1},
)


UNTOUCHED = Fault(LOST.name, LOST.do, LOST.words, out=False, at=LOST.at, mend=LOST.mend)


@pytest.mark.parametrize("chain", [SHORT_CHAIN, pytest.param(CHAIN, marks=pytest.mark.slow)], ids=["short", "whole"])
def test_successive_faults_cost_only_one_reboot(
    start: Start, ansible_for: AnsibleFor, chain: tuple[Fault, ...]
) -> None:
    vcenter = start(text=automated("name: esx01.lab"))
    bench = Bench(vcenter, ansible_for(vcenter))
    if FULL not in chain:
        FULL.mend(vcenter)
    for fault in chain:
        bench.suffer(fault)
        if fault is not NEVER:
            fault.mend(vcenter)
    bench.finish()


@pytest.mark.slow
@pytest.mark.parametrize("fault", [PRIVILEGE, DEAF, REFUSED, DROPPED, UNTOUCHED, EXPIRED, NEVER, SILENT, TASK], ids=str)
def test_single_fault_is_reported_and_next_run_finishes(start: Start, ansible_for: AnsibleFor, fault: Fault) -> None:
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 2'))
    bench = Bench(vcenter, ansible_for(vcenter), {"vibs": [DRIVER]} if fault is REFUSED else None)
    bench.suffer(fault)
    fault.mend(vcenter)
    bench.finish("esx01.lab", "esx02.lab")


@pytest.mark.slow
@pytest.mark.parametrize("fault", [FULL, BLOCKED], ids=str)
def test_host_that_cannot_be_emptied_stays_in_service(start: Start, ansible_for: AnsibleFor, fault: Fault) -> None:
    count = 1 if fault is FULL else 2
    vcenter = start(text=automated(f'name: "esx%02d.lab", count: {count}'))
    bench = Bench(vcenter, ansible_for(vcenter))
    bench.suffer(fault)
    if fault is FULL:
        assert "EnterMaintenanceMode_Task" not in {write["method"] for write in bench.writes}
    fault.mend(vcenter)
    bench.finish(*(f"esx{number:02d}.lab" for number in range(1, count + 1)))
