"""A worker on which root adds variables of the collection to its facts ends the run, also without our ansible.cfg."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lab.simulator import ROOT
from tests.integration.ansible import Ansible, Outcome

# It takes the place of Python on the worker: any module answers with the facts of a node and more.
INTERPRETER = """#!/bin/sh
case "$1" in -*) exec python3 "$@" ;; esac
cat >/dev/null
echo '{answer}'
"""
# In the place of training_reach, a command of the controller.
PLANTED = {
    "training_reach": ["sh", "-c", "touch {folder}/owned; #"],
    "training_node": {"address": "w1", "reach": ["touch", "{folder}/owned"], "kubernetes": "w1", "interface": ""},
    "vsphere_hostname": "127.0.0.1",
}
OF_NODE = {"ansible_nodename": "w1", "ansible_local": {}, "ansible_python_version": "3.11"}
ROLE = [{"hosts": "workers", "gather_facts": False, "roles": ["dml.vsphere.training"]}]


def run(folder: Path, playbook: Path | str, *arguments: str) -> Outcome:
    """Run a playbook on a worker that plants facts, with the configuration of an installation."""
    answer = json.dumps({"changed": False, "jobs": [], "node": "w1", "ansible_facts": {**OF_NODE, **PLANTED}})
    python = folder / "python3"
    python.write_text(INTERPRETER.replace("{answer}", answer.replace("{folder}", str(folder))))
    python.chmod(0o755)
    worker = {"ansible_connection": "local", "ansible_python_interpreter": str(python)}
    groups = {"workers": {"hosts": {"w1": worker}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    ansible = Ansible({}, folder)
    (folder / "none.cfg").touch()
    ansible.environment["ANSIBLE_CONFIG"] = str(folder / "none.cfg")
    return ansible.playbook(playbook, "-i", str(folder / "hosts.yml"), *arguments)


SELDOM = ("runs", "stop", "observe", "fabric_check", "kubernetes")


@pytest.mark.parametrize(
    "playbook", ["train", "guests", "own", *(pytest.param(name, marks=pytest.mark.slow) for name in SELDOM)]
)
def test_run_refuses_facts_named_like_variables(tmp_path: Path, playbook: str) -> None:
    own = tmp_path / "own.yml"
    own.write_text(yaml.safe_dump(ROLE))
    extra = ["-e", "training_name=one", "-e", "interrupt_training=true", "-e", f"training_results={tmp_path}"]
    given = {"stop": extra[:2], "guests": extra[2:4], "observe": []}.get(playbook, extra[4:])

    ran = run(tmp_path, own if playbook == "own" else ROOT / "playbooks" / f"{playbook}.yml", *given)

    assert ran.rc != 0
    assert "w1: could not use its facts: they are named like variables of this collection: training_" in ran.out
    assert not (tmp_path / "owned").exists()


# Facts are set as Ansible sets those of any module, and read as for a task.
READ = """
import sys
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.vars.manager import VariableManager
init_plugin_loader()
from ansible_collections.dml.vsphere.plugins.plugin_utils import facts
loader = DataLoader()
inventory = InventoryManager(loader, sources="w1,")
variables = VariableManager(loader, inventory)
variables.set_host_facts("w1", {"training_reach": ["evil"], "ansible_nodename": "w1"})
def read():
    return variables.get_vars(host=inventory.get_host("w1"))
assert read()["training_reach"] == ["evil"], "no setting of Ansible is read"
facts.keep_out_of_variables()
assert "training_reach" not in read()
assert read()["ansible_facts"]["nodename"] == "w1"
"""


def test_facts_never_become_variables_of_the_playbooks(tmp_path: Path) -> None:
    (tmp_path / "ansible.cfg").write_text("[defaults]\ninject_facts_as_vars = true\n")
    environment = {**Ansible({}, tmp_path).environment, "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg")}
    done = subprocess.run([sys.executable, "-c", READ], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_shipped_configuration_keeps_facts_out_of_variables() -> None:
    assert "inject_facts_as_vars = false" in (ROOT / "ansible.cfg").read_text()
