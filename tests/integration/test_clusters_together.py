"""Several clusters of one inventory: a job over two clusters, a window with a spare host elsewhere, two vCenters."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import Simulator
from tests.integration.ansible import BIN, PYTHON, Ansible, AnsibleFor, Outcome, Start
from tests.integration.releases import NEWEST
from tests.integration.test_hosts_under_training import Window
from tests.integration.test_vmotion import TAGGED
from tests.integration.test_vmotion_test import WORKERS, Trial
from tests.integration.training import Nodes
from tests.integration.workers import DEFAULTS, host, move, worker

pytestmark = pytest.mark.release(NEWEST)

ONE = '{name: gpu, hosts: [{name: "esx%02d.lab", count: 5}]}'
SPARE = {"cluster": "more", "hosts": ["more01.lab"], "return_home": True}
HERE = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON}


def datacentre(gpu: int, more: int, modes: tuple[str, str] = ("", "")) -> str:
    """Return a data centre with the clusters gpu and more, whose hosts have the name of their cluster."""
    clusters = [
        f'{{name: {name}, evc: "{mode}", hosts: [{{name: "{name}%02d.lab", count: {count}}}]}}'
        for name, count, mode in zip(("gpu", "more"), (gpu, more), modes)
        if count
    ]
    return TAGGED.replace(ONE, "\n  - ".join(clusters))


def build(ansible: Ansible, cluster: str, *numbers: int) -> None:
    """Build workers on the hosts of a cluster."""
    workers = [worker(number) for number in numbers]
    done = ansible.module("worker_vm", cluster=cluster, defaults=DEFAULTS, workers=workers, address_timeout=20)
    assert done.rc == 0, done.out


@pytest.fixture
def make(start: Start, ansible_for: AnsibleFor, tmp_path: Path) -> Iterator[Callable[..., Trial]]:
    """Make workers in two clusters, and nodes with their names."""
    made: list[Trial] = []

    def begin(text: str, **workers: tuple[int, ...]) -> Trial:
        vcenter = start("", text=text)
        ansible = ansible_for(vcenter)
        for cluster, numbers in workers.items():
            build(ansible, cluster, *numbers)
        vcenter.clear()
        made.append(Trial(vcenter, ansible, Nodes(ansible, tmp_path), tmp_path))
        return made[0]

    yield begin
    made[0].nodes.stop()


def of_both(window: Window) -> Window:
    """Add the second cluster to the inventory of a window."""
    content = json.loads(window.inventory.read_text())
    clusters = content["all"]["children"]["clusters"]["hosts"]
    clusters["more"] = clusters["gpu"]
    window.inventory.write_text(json.dumps(content))
    return window


def test_refuses_a_window_in_two_clusters_of_a_job(make: Callable[..., Trial]) -> None:
    trial = make(datacentre(2, 2), gpu=(1,), more=(2,))
    window = of_both(Window(trial))

    refused = window.run("--check")

    text = " ".join(refused.out.split())
    assert refused.rc != 0 and "--limit gpu,workers, then --limit more,workers" in text, refused.out
    assert trial.vcenter.writes() == []


@pytest.mark.slow
def test_window_of_one_cluster_keeps_a_job_of_two(make: Callable[..., Trial]) -> None:
    trial = make(datacentre(2, 2), gpu=(1,), more=(2,))
    window = of_both(Window(trial))

    done = window.run("--limit", "gpu,workers")

    assert done.rc == 0, done.out
    assert sorted(window.booted()) == ["gpu01.lab", "gpu02.lab"] and trial.moved() == WORKERS[:1]
    assert json.loads(trial.kept("verdict.json"))["verdict"] == "continuous"


def test_finds_moves_of_guests_in_other_clusters(make: Callable[..., Trial]) -> None:
    trial = make(datacentre(2, 2), gpu=(1,), more=(2,))
    move(trial.vcenter, WORKERS[1], "more02.lab")

    guests = ["WORKER02.lab", "worker01", "a-laptop"]
    found = trial.ansible.module("vmotion_info", cluster="gpu", since=0.0, guests=guests).result

    assert [(one["worker"], one["target"]) for one in found["moves"]] == [("WORKER02.lab", "more02.lab")]
    assert sorted(found["places"]) == ["WORKER02.lab", "worker01"]


@pytest.mark.slow
def test_window_borrows_a_host_of_another_cluster(make: Callable[..., Trial]) -> None:
    trial = make(datacentre(2, 2), gpu=(1, 2))
    window = Window(trial)

    full = window.run("--check")
    shown = window.run("--check", window_spare=SPARE)
    assert full.rc != 0 and "no other host has room" in " ".join(full.out.split()), full.out
    assert shown.rc == 0 and "at the end: worker01: more01.lab -> gpu02.lab" in shown.out, shown.out
    assert trial.vcenter.writes() == []

    done = window.run(window_spare=SPARE)

    assert done.rc == 0, done.out
    assert sorted(window.booted()) == ["gpu01.lab", "gpu02.lab"]
    assert trial.moved() == ["worker01", "worker02", "worker01"]
    assert [host(trial.vcenter, name) for name in WORKERS[:2]] == ["gpu02.lab", "gpu01.lab"]
    verdict = json.loads(trial.kept("verdict.json"))
    assert (verdict["verdict"], verdict["moved"], verdict["unproven"]) == ("continuous", "all", [])
    for cluster in ("gpu", "more"):
        freed = trial.ansible.module("cluster_lock", check=True, cluster=cluster, state="free", run="a test")
        assert freed.rc == 0 and not freed.changed


@pytest.fixture
def workers(start: Start, ansible_for: AnsibleFor, request: pytest.FixtureRequest) -> tuple[Simulator, Ansible]:
    """Two workers that fill the cluster gpu, beside the cluster more."""
    vcenter = start("", text=datacentre(2, 2, getattr(request, "param", ("", ""))))
    ansible = ansible_for(vcenter)
    build(ansible, "gpu", 1, 2)
    vcenter.clear()
    return vcenter, ansible


def go(ansible: Ansible, target: str = "more01.lab", check: bool = False, **more: Any) -> Any:
    return ansible.module("vmotion", check=check, **{"cluster": "gpu", "worker": "worker01", "target": target, **more})


SPARE_HOST = {"cluster": "more", "hosts": ["more01.lab"]}


@pytest.mark.parametrize(
    ("spare", "words"),
    [
        ({"cluster": "gpu"}, "it is the cluster of the workers itself"),
        ({"cluster": "more", "hosts": ["more09.lab"]}, "its hosts are more01.lab, more02.lab"),
        ({"cluster": "less"}, "find one cluster named 'less'"),
        (None, "cluster gpu has gpu01.lab, gpu02.lab"),
    ],
)
def test_refuses_spare_hosts_that_do_not_exist(workers: Any, spare: Any, words: str) -> None:
    vcenter, ansible = workers

    refused = go(ansible, spare=spare)

    assert refused.rc == 1 and words in refused.msg and vcenter.writes() == [], refused.out


@pytest.mark.parametrize("workers", [("intel-icelake", "intel-skylake")], indirect=True)
def test_cpu_features_keep_a_worker_in_its_cluster(workers: Any) -> None:
    vcenter, ansible = workers

    refused = go(ansible, spare=SPARE_HOST)

    assert refused.rc == 1 and "vCenter would refuse the move" in refused.msg, refused.out
    assert vcenter.writes() == []


def test_worker_in_another_cluster_moves_back(workers: Any) -> None:
    vcenter, ansible = workers
    assert go(ansible, spare=SPARE_HOST).rc == 0
    plan = {"cluster": "gpu", "empty_hosts": ["gpu02.lab"]}

    lost = ansible.module("vmotion_plan", **plan)
    known = ansible.module("vmotion_plan", **plan, spare=SPARE_HOST)
    stays = ansible.module("vmotion_plan", **plan, spare={**SPARE_HOST, "return_home": False})

    assert "it runs on more01.lab, and cluster gpu has no such host" in lost.msg, lost.out
    assert [(move["worker"], move["target"]) for move in known.result["moves"]] == [("worker02", "gpu01.lab")]
    assert [(move["worker"], move["target"]) for move in known.result["returns"]] == [("worker01", "gpu02.lab")]
    assert stays.result["returns"] == []
    back = {"cluster": "gpu", "defaults": DEFAULTS, "workers": [worker(1), worker(2)], "address_timeout": 20}
    assert ansible.module("worker_vm", **back, allow_moves=True).rc == 0
    assert host(vcenter, "worker01") == "gpu01.lab"


class TwoServers:
    """An inventory with the cluster gpu of one vCenter and the cluster more of another one."""

    def __init__(self, servers: Mapping[str, Simulator], folder: Path) -> None:
        self.servers, self.folder = servers, folder / "inventory"
        self.ansible = Ansible({}, folder)
        self.folder.mkdir()
        clusters = {}
        for number, (cluster, server) in enumerate(servers.items(), start=1):
            login = {f"vsphere_{name}": value for name, value in server.connection.items()}
            source = {"plugin": "dml.vsphere.workers", **server.connection}
            (self.folder / f"{cluster}.workers.yml").write_text(yaml.safe_dump(source))
            built = {"worker_defaults": DEFAULTS, "worker_vms": [worker(number)], "worker_address_timeout": 20}
            clusters[cluster] = {**HERE, **login, **built}
        content = {"all": {"children": {"clusters": {"hosts": clusters}}}}
        (self.folder / "hosts.yml").write_text(yaml.safe_dump(content))

    def workers(self) -> Outcome:
        return self.ansible.playbook("playbooks/workers.yml", "-i", str(self.folder))

    def listed(self) -> subprocess.CompletedProcess[str]:
        return self.ansible.run([str(BIN / "ansible-inventory"), "-i", str(self.folder), "--list"])


@pytest.mark.slow
def test_one_inventory_manages_two_vcenters(start: Start, tmp_path: Path) -> None:
    both = TwoServers({"gpu": start("", text=datacentre(1, 0)), "more": start("", text=datacentre(0, 2))}, tmp_path)

    built = both.workers()

    assert built.rc == 0, built.out
    for server in both.servers.values():
        assert [write["method"] for write in server.writes()].count("CloneVM_Task") == 1
        server.clear()
    again = both.workers()
    assert again.rc == 0 and not any(again.changes.values()), again.out
    assert [server.writes() for server in both.servers.values()] == [[], []]
    hosts = json.loads(both.listed().stdout)["_meta"]["hostvars"]
    found = {name: hosts[name]["vm_cluster"]["__ansible_unsafe"] for name in WORKERS[:2]}
    assert found == {"worker01": "gpu", "worker02": "more"}

    build(Ansible(both.servers["more"].environment, tmp_path), "more", 1)
    refused = both.listed()
    text = " ".join(refused.stdout.split())
    assert refused.returncode == 4 and "The clusters gpu and more have workers named worker01" in text, text
