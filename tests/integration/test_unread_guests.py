"""running_jobs: playbooks that stop workers refuse running guests whose training jobs cannot be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.person import power_off
from lab.simulator import ROOT
from tests.integration.ansible import PYTHON, AnsibleFor, Outcome, Start
from tests.integration.releases import NEWEST
from tests.integration.sites import Site, datacentre, worker
from tests.integration.workers import switch

pytestmark = pytest.mark.release(NEWEST)

CLUSTERS = ("-i", str(ROOT / "inventories" / "lab" / "hosts.yml"))
# Nothing listens on this port.
UNREACHABLE = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_connection": "ssh"}
BROKEN = {"ansible_connection": "local", "ansible_python_interpreter": "/nonexistent/python3"}
READABLE = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON}
SWITCH = "run again with unreachable_is_idle=true"
SMALLER = {"worker_vms": [worker(number, memory_mb=16384) for number in (1, 2)], "power_cycle": True}


class Guests(Site):
    """Two running workers, in an inventory that connects to each in a given way."""

    def ask(self, playbook: str, *workers: dict[str, Any], tags: str = "all", **variables: Any) -> Outcome:
        """Run a playbook with the first workers of the cluster in the inventory."""
        self.vcenter.clear()
        hosts = {
            f"worker{number:02}": {**READABLE, "ansible_become": False, **way} for number, way in enumerate(workers, 1)
        }
        path = self.ansible.folder / "workers.yml"
        path.write_text(json.dumps({"all": {"children": {"workers": {"hosts": hosts}}}}))
        # The jobs of other tests run on this machine too.
        given = json.dumps({**self.variables, "continued_runs": ".*", **variables})
        options = ("-i", str(path), "--tags", tags, "-e", given)
        return self.ansible.playbook(f"playbooks/{playbook}.yml", *CLUSTERS, *options)

    def refused(self, playbook: str, *workers: dict[str, Any], tags: str = "all", **variables: Any) -> str:
        """Return the output of a playbook that must end before its first write."""
        outcome = self.ask(playbook, *workers, tags=tags, **variables)
        text = " ".join(outcome.out.split())
        assert outcome.rc == 2 and self.vcenter.writes() == [], outcome.out
        assert "gpu: could not make sure that no training job is stopped" in text and SWITCH in text, outcome.out
        return text


@pytest.fixture
def guests(start: Start, ansible_for: AnsibleFor) -> Guests:
    vcenter = start(text=datacentre())
    site = Guests(vcenter, ansible_for(vcenter))
    site.build(workers=2)
    # A guest that was powered on recently may boot.
    vcenter.let_pass(3600)
    return site


def test_workers_playbook_keeps_guests_with_unreadable_jobs_running(guests: Guests) -> None:
    for host in ("esx01.lab", "esx02.lab"):
        guests.vcenter.set_host(host, gpu_load={"0000:3b:00.0": {"utilisation": [97]}})
    text = guests.refused("workers", READABLE, BROKEN, **SMALLER)
    assert "worker02 with a GPU of its host at 97% (" in text and "/nonexistent/python3" in text, text

    power_off(guests.vcenter, "worker02")
    done = guests.ask("workers", READABLE, UNREACHABLE, **SMALLER)
    assert done.rc == 0 and ("ShutdownGuest", "worker01") in guests.written(), done.out


def test_site_reads_the_jobs_on_its_workers(guests: Guests) -> None:
    text = guests.refused("site", UNREACHABLE, READABLE, **SMALLER, tags="workers")
    assert "cannot be read: worker01 (" in text, text


def test_teardown_deletes_no_guest_with_unreadable_jobs(guests: Guests) -> None:
    text = guests.refused("teardown", UNREACHABLE, confirm=True)
    assert "cannot be read: worker01 (" in text, text
    assert "worker02 (no host in the group workers of the inventory has its name or its address)" in text, text


@pytest.mark.slow
def test_hosts_change_only_if_running_jobs_are_known(guests: Guests) -> None:
    profile = {"advanced_options": {"Net.TcpipHeapSize": 16}}
    text = guests.refused("hosts", READABLE, UNREACHABLE, esxi_host_profile=profile)
    assert "cannot be read: worker02 (" in text, text

    for name in ("worker01", "worker02"):
        switch(guests.vcenter, name, on=False)
    done = guests.ask("hosts", UNREACHABLE, UNREACHABLE, esxi_host_profile=profile)
    assert done.rc == 0, done.out

    (evidence,) = guests.evidence.glob("gpu-*Z.json")
    for name in ("worker01", "worker02"):
        switch(guests.vcenter, name, on=True)
    guests.vcenter.let_pass(3600)
    text = guests.refused("rollback", READABLE, UNREACHABLE, rollback_evidence=str(evidence))
    assert "cannot be read: worker02 (" in text, text
