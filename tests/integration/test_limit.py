"""--limit to one of two clusters: the other is neither written to nor changed, and keeps what both need."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import world
from lab.simulator import DATACENTRES, ROOT, Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Outcome, Start
from tests.integration.sites import DRIVER

HOT = "vgpu.hotmigrate.enabled"
VALUES = re.compile(r"value = '(.*)'")
CLUSTERS = {"one": "1", "two": "2"}


@pytest.fixture
def vcenter(start: Start) -> Simulator:
    """Two clusters of two hosts each, which share their GPUs already."""
    lab = yaml.safe_load((DATACENTRES / "lab.yml").read_text())
    lab["clusters"] = [
        {"name": name, "hosts": [{"name": f"esx{number}%d.lab", "count": 2}], "ha": {"enabled": False}}
        for name, number in CLUSTERS.items()
    ]
    lab["host_defaults"].update(graphics={"default": "sharedDirect"}, vibs=[DRIVER])
    return start(text=yaml.safe_dump(lab))


def hosts_of(name: str) -> list[str]:
    return [f"esx{CLUSTERS[name]}{place}.lab" for place in (1, 2)]


def cluster(name: str) -> dict[str, Any]:
    """Return what the inventory says of one cluster: a network, a tag for PVRDMA and its own worker."""
    hosts = {host: f"10.216.{CLUSTERS[name]}.{place}" for place, host in enumerate(hosts_of(name), start=1)}
    adapter = {"port_group": f"{name}-vmk", "device": "vmk1", "network": "10.216.0.0/16", "addresses": hosts}
    return {
        "esxi_host_profile": {"pvrdma": {"vmk": "vmk1"}},
        "fabric_switch": f"rdma-{name}",
        "fabric_port_groups": [{"name": f"{name}-vmk"}, {"name": f"{name}-vm"}],
        "fabric_adapters": [{**adapter, "services": []}],
        "worker_vms": [{"name": f"worker-{name}", "rdma_nics": [{"portgroup": f"{name}-vm"}]}],
    }


def defaults() -> dict[str, Any]:
    """The workers of the lab, without addresses."""
    lab = yaml.safe_load((ROOT / "inventories" / "lab" / "group_vars" / "clusters.yml").read_text())
    return {key: value for key, value in lab["worker_defaults"].items() if key not in ("rdma_nics", "guest")}


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Both clusters in one inventory, both with the same option for all of vCenter."""
    shared = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "fabric_vcenter_options": {HOT: True},
        "fabric_allow_shared_settings": True,
        "worker_defaults": defaults(),
        "worker_wait_for_address": False,
    }
    path = tmp_path / "inventory.yml"
    path.write_text(yaml.safe_dump({"clusters": {"vars": shared, "hosts": {name: cluster(name) for name in CLUSTERS}}}))
    return path


class Both:
    """Runs of playbooks on one of the two clusters."""

    def __init__(self, vcenter: Simulator, ansible: Ansible, inventory: Path) -> None:
        self.vcenter, self.ansible, self.inventory = vcenter, ansible, inventory
        self.evidence = ansible.folder / "evidence"
        ansible.environment["DML_EVIDENCE_DIR"] = str(self.evidence)

    def run(self, playbook: str, name: str, **variables: Any) -> Outcome:
        """One run with --limit; afterwards the server's log holds only the writes of this run."""
        self.vcenter.clear()
        given = ("-i", str(self.inventory), "--limit", name, "-e", json.dumps(variables))
        outcome = self.ansible.playbook(f"playbooks/{playbook}.yml", *given)
        assert outcome.rc == 0, outcome.out
        return outcome

    def build(self, name: str) -> None:
        """Network and workers of one cluster without the time that a playbook takes."""
        expected = cluster(name)
        switch, groups, adapters = (expected[f"fabric_{key}"] for key in ("switch", "port_groups", "adapters"))
        workers = {"defaults": defaults(), "workers": expected["worker_vms"], "wait_for_address": False}
        for done in (
            self.ansible.module("rdma_fabric", cluster=name, switch=switch, port_groups=groups, adapters=adapters),
            self.ansible.module("worker_vm", cluster=name, **workers),
        ):
            assert done.rc == 0, done.msg

    def named(self) -> set[str]:
        """Return what the writes of the last run name."""
        return {write["name"] for write in self.vcenter.writes()}

    def hot(self) -> bool:
        """Return whether vCenter moves machines with vGPUs while they run."""
        read = self.ansible.module("cluster_info", cluster="one").result["cluster"]
        return bool(read["options"][HOT])


@pytest.fixture
def both(vcenter: Simulator, ansible_for: AnsibleFor, inventory: Path) -> Both:
    return Both(vcenter, ansible_for(vcenter), inventory)


def parts(name: str) -> set[str]:
    """Return what belongs to one cluster."""
    return {name, *hosts_of(name), f"rdma-{name}", f"{name}-vmk", f"{name}-vm", f"worker-{name}"}


def about(name: str, differences: dict[str, Any]) -> list[str]:
    """Which of the differences are about something that belongs to a cluster."""
    return [key for key in differences if parts(name) & set(key.replace(": ", " ").split())]


def left(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return what is not as before, but for attributes that the other cluster uses and that are empty here."""
    changed = world.differences(before, after)
    return [key for key, (_was, text) in changed.items() if set(VALUES.findall(str(text))) != {""}]


def test_limited_run_builds_only_its_clusters_network(both: Both) -> None:
    both.build("one")
    first = world.state(both.vcenter)
    both.run("fabric", "two")
    changed = world.differences(first, world.state(both.vcenter))
    assert both.named() & parts("one") == set() and {"rdma-two", *hosts_of("two")} <= both.named()
    assert about("one", changed) == [] and len(about("two", changed)) > 0


@pytest.mark.slow
def test_limited_runs_build_and_remove_each_cluster_separately(both: Both) -> None:
    bare = world.state(both.vcenter)
    both.run("fabric", "one")
    both.build("one")
    first = world.state(both.vcenter)
    both.run("site", "two")
    changed = world.differences(first, world.state(both.vcenter))
    assert both.named() & parts("one") == set() and {"worker-two", *hosts_of("two")} <= both.named()
    assert about("one", changed) == [] and len(about("two", changed)) > 0
    (evidence,) = both.evidence.glob("two-2*.json")
    both.run("teardown", "two", confirm=True, unreachable_is_idle=True, rollback_evidence=str(evidence))
    assert both.named() & parts("one") == set()
    assert both.hot() and left(first, world.state(both.vcenter)) == []
    both.run("teardown", "one", confirm=True, unreachable_is_idle=True)
    assert world.differences(bare, world.state(both.vcenter)) == {}
