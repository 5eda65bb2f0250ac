"""A job that a user names by its number in Slurm gets its workers, its user, its records and the ways to its nodes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from plugins.module_utils.errors import CollectionError
from plugins.plugin_utils import slurm_place, trial_site

LOADER = DataLoader()
ACTION: Any = SimpleNamespace(_loader=LOADER, _templar=Templar(LOADER, variables={}))
ANSWERS = {
    "squeue": "4711|RUNNING|None|{user}|n1|n[1-2]\n",
    "scontrol": "   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0",
    "sinfo": "n1|n1|192.0.2.1|allocated|none\nn2|n2|192.0.2.2|allocated|none\n",
}


class Hosts(dict[str, Any]):
    """The variables of hosts, as Ansible has them."""

    def raw_get(self, name: str) -> Any:
        return self[name]


class Nodes:
    """The modules on the login node and on the launcher."""

    calls: ClassVar[list[tuple[str, str]]] = []
    owner = "anna"

    def __init__(self, _action: Any, _task_vars: Any, user: str = "") -> None:
        self.user = user

    def as_user(self, user: str) -> Nodes:
        return Nodes(None, None, user)

    def on(self, host: str, module: str, options: Any) -> dict[str, Any]:
        self.calls.append((host, self.user))
        if module == "ansible.builtin.command":
            return {"stdout": ANSWERS[options["argv"][0]].format(user=self.owner)}
        return {"job": {"state": "running", "records": "/home/anna/records"}}


def placed(monkeypatch: pytest.MonkeyPatch, owner: str, **job: Any) -> dict[str, Any]:
    monkeypatch.setattr(slurm_place, "NodeModules", Nodes)
    monkeypatch.setattr(Nodes, "owner", owner)
    monkeypatch.setattr(Nodes, "calls", [])
    hosts = Hosts(
        {
            f"worker0{number}": {
                "inventory_hostname": f"worker0{number}",
                "ansible_host": f"192.0.2.{number}",
                "ansible_user": "ubuntu",
            }
            for number in (1, 2)
        }
    )
    variables = {"hostvars": hosts, "groups": {"workers": list(hosts)}}
    return slurm_place.with_place(ACTION, variables, {"run_dir": "", "records": "", "nodes": [], **job})


def test_place_of_a_job_follows_from_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    job = placed(monkeypatch, "anna", slurm={"job": 4711, "reservation": False})

    assert (job["launcher"], job["user"], job["records"]) == ("worker01", "anna", "/home/anna/records")
    assert job["slurm"] == {
        "job": "4711",
        "login": "worker01",
        "restarts": 2,
        "reservation": False,
        "nodes": ["n1", "n2"],
        "names": {"n1": "worker01", "n2": "worker02"},
    }
    assert job["nodes"][1] == {
        "name": "worker02",
        "reach": ["ssh", "-oBatchMode=yes", "ubuntu@192.0.2.2", "sudo", "-n", "-u", "anna"],
    }
    assert Nodes.calls == [("worker01", "")] * 3 + [("worker01", "anna")]


def test_own_job_needs_no_other_user(monkeypatch: pytest.MonkeyPatch) -> None:
    job = placed(monkeypatch, "ubuntu", slurm={"job": 4711}, records="/mine")

    assert (job["user"], job["run_dir"], job["nodes"][0]["reach"][-1]) == ("", "/mine", "ubuntu@192.0.2.1")


def test_job_with_known_nodes_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"run_dir": "/mine", "records": "", "nodes": [{"name": "w1"}], "slurm": {"job": 4711}}

    assert placed(monkeypatch, "anna", **given) == given and Nodes.calls == []


def test_reads_a_job_on_launcher_and_login_node(tmp_path: Path) -> None:
    modules = mock.Mock()
    modules.load.return_value, modules.version = {}, "1.0"
    modules.on.return_value = {"job": {"state": "running"}, "stdout": ANSWERS["squeue"].format(user="anna")}
    named = {"launcher": "worker01", "user": "anna", "run_dir": "/r", "records": "/r", "kubernetes": {}}

    site = trial_site.TrialSite(modules, "gpu", tmp_path, "")
    trial_site.job_of(site, {**named, "slurm": {"job": 4711, "login": "n9"}}).look()

    places = {call.args[:3] for call in modules.on.call_args_list}
    assert places == {("worker01", "anna", "dml.vsphere.training_info"), ("n9", "", "ansible.builtin.command")}


def test_refuses_a_login_node_outside_the_inventory(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CollectionError, match=r"its login node login9 is not a host of the inventory; set login"):
        placed(monkeypatch, "anna", slurm={"job": 4711, "login": "login9"})
