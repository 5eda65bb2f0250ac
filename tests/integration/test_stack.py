"""The lookup of stacks as a playbook calls it: by name, by path, completed, and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT
from tests.integration.ansible import Ansible, Outcome
from tests.integration.installed import once

STACKS = ROOT / "stacks"
SHIPPED = sorted(path.stem for path in STACKS.glob("*.yml"))
SUM = "0123456789abcdef" * 4
GIVEN = {"bases.licensed": "https://licensed.example.org/nvidia", "gpu_driver.source.sha256": SUM}
# This machine as the only guest; a user of it may not become root.
HERE = ("-i", "localhost,", "-c", "local", "-e", "guests=localhost", "-e", "ansible_become=false")
Answers = dict[str, Any]


def own(folder: Path, name: str, **changes: Any) -> str:
    """A user's file, made from the stack of the lab."""
    stack = yaml.safe_load((STACKS / "lab-cpu.yml").read_text())
    for part, change in changes.items():
        stack[part] = {**stack[part], **change}
    path = folder / f"{name}.yml"
    path.write_text(yaml.safe_dump(stack))
    return str(path)


def cases(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return what is looked up, and with which options."""
    return {
        "named": ("lab-cpu", {"bases": {"python": "https://mirror.example.org/python"}}),
        "by path": (own(folder, "ours"), {}),
        "whole": ("t4-2019", {"inputs": GIVEN, "host_driver": "535.129.03", "platform": "ubuntu-22.04", "gpu": "T4"}),
        "incomplete": ("t4-2019", {"incomplete": True}),
        "unestablished": (own(folder, "unsure", framework={"name": "pytorch", "version": "1.11.0"}), {}),
        "containers": ("t4-2019", {"inputs": GIVEN, "parts": ["container"]}),
        "no containers": ("lab-cpu", {"parts": ["container"]}),
        "nobody": ("lab-gpu", {}),
        "no file": (str(folder / "none.yml"), {}),
        "without inputs": ("t4-2019", {}),
        "bad input": ("t4-2019", {"inputs": {**GIVEN, "gpu_driver.source.sha256": "abc"}}),
        "unasked": ("lab-cpu", {"inputs": {"openmpi.version": "5.0.8"}}),
        "host": ("t4-2019", {"inputs": GIVEN, "host_driver": "525.85.07"}),
        "node": ("lab-cpu", {"platform": "ubuntu-24.04"}),
        "misspelt": (own(folder, "misspelt", openmpi={"verison": "4.1.4"}), {}),
        "misfit": (own(folder, "misfit", framework={"version": "2.16.1"}), {}),
    }


@pytest.fixture(scope="module")
def answers() -> Answers:
    """Return what each lookup gave, or why it failed, in one play for all processes of the tests."""
    return dict(json.loads((once("stacks", look_up) / "answers.json").read_text()))


def look_up(folder: Path) -> None:
    """Write what each lookup gives, or why it fails."""
    block = []
    for name, (term, options) in cases(folder).items():
        requested = (
            f"lookup('dml.vsphere.stack', {term!r}{''.join(f', {key}={value!r}' for key, value in options.items())})"
        )
        keep = f"{{{{ kept | combine({{{name!r}: %s}}) }}}}"
        block.append(
            {
                "block": [{"ansible.builtin.set_fact": {"kept": keep % requested}}],
                "rescue": [{"ansible.builtin.set_fact": {"kept": keep % "ansible_failed_result.msg"}}],
            }
        )
    write = {
        "ansible.builtin.copy": {
            "dest": str(folder / "answers.json"),
            "content": "{{ kept | to_json }}",
            "mode": "0600",
        }
    }
    play = {"hosts": "localhost", "gather_facts": False, "vars": {"kept": {}}, "tasks": [*block, write]}
    (folder / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False))
    done = Ansible({}, folder).playbook(folder / "play.yml", "-i", "localhost,", "-c", "local")
    assert done.rc == 0, done.out


def test_finds_stack_by_name_and_mirror_by_base(answers: Answers) -> None:
    stack = answers["named"]
    assert stack["openmpi"]["version"] == "4.1.4"
    assert stack["horovod"]["source"]["url"] == "https://mirror.example.org/python/horovod-0.28.1.tar.gz"
    assert (stack["missing_inputs"], stack["not_established"]) == ([], [])
    assert set(stack["roles"]["debian-12"]) == {"repositories", "openmpi", "horovod"}
    assert stack["roles"]["debian-12"]["horovod"]["horovod_index"] == "https://mirror.example.org/python"


def test_finds_a_users_stack_file_by_path(answers: Answers) -> None:
    assert answers["by path"]["platforms"] == {
        "debian-12": {"distribution": "Debian", "version": "12", "glibc": "2.36"}
    }
    assert "url" not in answers["by path"]["horovod"]["source"]


def test_inputs_complete_a_stack(answers: Answers) -> None:
    driver = answers["whole"]["gpu_driver"]["source"]
    assert driver["url"] == "https://licensed.example.org/nvidia/NVIDIA-Linux-x86_64-535.309.01-grid.run"
    assert driver["sha256"] == SUM


def test_incomplete_stack_may_be_inspected(answers: Answers) -> None:
    assert answers["incomplete"]["missing_inputs"] == ["bases.licensed", "gpu_driver.source.sha256"]
    assert len(answers["unestablished"]["not_established"]) == 2


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("nobody", "There is no stack 'lab-gpu'"),
        ("nobody", f"Use one of {', '.join(SHIPPED)}, or a path."),
        ("no file", "none.yml does not exist."),
        ("without inputs", "has inputs without a value: bases.licensed gpu_driver.source.sha256"),
        ("bad input", "gpu_driver.source.sha256 is 'abc', which is not a SHA-256"),
        ("containers", "has inputs without a value: container.digest"),
        ("no containers", "The stack lab-cpu lacks requested parts: It has no 'container'."),
        ("unasked", "The stack lab-cpu has no input 'openmpi.version'; it has no inputs."),
        ("host", "The guest driver 535.309.01 is newer than the vGPU manager 525.85.07"),
        ("node", "The stack is for debian-12 and the node has ubuntu-24.04."),
        ("misspelt", "openmpi has the unknown key 'verison': did you mean 'version'?"),
        ("misfit", "Horovod 0.28.1 with TensorFlow 2.16.1 does not work."),
    ],
)
def test_refusal_names_the_reason(answers: Answers, case: str, words: str) -> None:
    assert words in " ".join(str(answers[case]).split())


@pytest.mark.slow
def test_adds_site_repositories_to_those_of_the_stack(tmp_path: Path) -> None:
    keys = {"nvidia": {"base": "vendor", "path": "key.asc", "fingerprint": "AB" * 20}}
    cuda = {"name": "cuda", "base": "vendor", "path": "cuda/", "suite": "/", "keys": ["nvidia"]}
    path = own(tmp_path, "ours", bases={"vendor": "https://vendor.example.org"})
    stack = {**yaml.safe_load(Path(path).read_text()), "keys": keys, "repositories": {"debian-12": [cuda]}}
    Path(path).write_text(yaml.safe_dump(stack))
    site = {
        "stack": path,
        "guest_platforms": ["debian-12"],
        "guest_repositories": [{"name": "site", "url": "https://site.example.org/", "keys": ["site"]}],
        "guest_repository_keys": {"site": {"keyring": "/usr/share/keyrings/site.gpg"}},
        "repositories_manager": "apt",
    }
    options = [*HERE, "--check", "--tags", "repositories"]
    looked = Ansible({}, tmp_path).playbook(ROOT / "playbooks" / "guests.yml", *options, "-e", json.dumps(site))
    assert looked.rc == 0, looked.out
    _before, _name, writes = looked.out.partition("TASK [dml.vsphere.repositories : Write the repository files]")
    written = writes.partition("TASK [")[0]
    assert "(item=cuda)" in written
    assert "(item=site)" in written


def test_guests_playbook_refuses_an_old_python_before_ansible(tmp_path: Path) -> None:
    # As that of Ubuntu 18.04, CentOS 7 and Rocky 8, which no module of Ansible runs on.
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = -c ] && echo python 3.6 $0 || exit 1\n')
    old.chmod(0o755)
    options = [*HERE, "-e", f"ansible_python_interpreter={old}"]
    refused = Ansible({}, tmp_path).playbook(
        ROOT / "playbooks" / "guests.yml", *options, "-e", "stack=lab-cpu", "--check"
    )
    assert refused.rc != 0
    message = " ".join(refused.out.split())
    assert "localhost cannot be prepared: its Python is 3.6, and 3." in message
    assert "run an old stack in a container" in message
    assert "Traceback" not in message and "MODULE FAILURE" not in message


def test_guests_playbook_refuses_a_misfit_before_roles(tmp_path: Path) -> None:
    path = own(tmp_path, "misfit", framework={"version": "2.16.1"})
    options = [*HERE, "--check", "--tags", "versions"]
    ansible = Ansible({}, tmp_path)
    refused = ansible.playbook(ROOT / "playbooks" / "guests.yml", *options, "-e", f"stack={path}")
    assert refused.rc != 0
    assert "Horovod 0.28.1 with TensorFlow 2.16.1 does not work." in " ".join(refused.out.split())
    assert "TASK [Set the variables of all roles from the stack]" not in refused.out
    # The machine of the test may run any system.
    options += ["-e", json.dumps({"guest_platforms": ["debian-12"]})]
    taken = ansible.playbook(ROOT / "playbooks" / "guests.yml", *options, "-e", "stack=lab-cpu")
    assert taken.rc == 0, taken.out
    assert "(item=openmpi_version)" in taken.out


def test_guests_playbook_refuses_different_versions_on_nodes(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("[workers]\nn1\nn2\n[all:vars]\nansible_connection=local\nansible_become=false\n")
    proof = {"dml_openmpi": {"proven": True, "versions": {"OpenMPI": "4.1.4"}}}
    other = {"dml_openmpi": {"proven": True, "versions": {"OpenMPI": "4.1.5"}}}
    # The jobs of other tests run on this machine too.
    site = {"stack": "lab-cpu", "guest_platforms": ["debian-12"], "continued_runs": ".*"}

    def end(*proofs: object) -> Outcome:
        given = json.dumps({**site, "guest_proofs": proofs})
        options = ["-i", str(tmp_path / "hosts"), "--tags", "versions", "-e", given]
        return Ansible({}, tmp_path).playbook(ROOT / "playbooks" / "guests.yml", *options)

    same = end(proof, proof)
    assert same.rc == 0, same.out
    assert "n2    4.1.4" in same.out
    different = end(proof, other)
    assert different.rc != 0
    assert "OpenMPI is 4.1.4 on n1 and 4.1.5 on n2." in " ".join(different.out.split())
