"""Options of guests that a command line gives, such as ``-e guest_containers=false``, are texts, and mean it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from plugins.module_utils.guests import docker
from tests.rendering import ROLES, rendered, truth, value, variables

PLAYBOOK = ROLES.parent / "playbooks" / "guests.yml"
SWITCHES = [("false", False), ("no", False), ("true", True), (False, False), (True, True)]
(PLAY,) = yaml.safe_load(PLAYBOOK.read_text())


def task_of(role: str, file: str, module: str) -> dict[str, Any]:
    """Return the arguments of the task of a role that runs a module."""
    tasks = yaml.safe_load((ROLES / role / "tasks" / file).read_text())
    (found,) = [task[module] for task in tasks if module in task]
    arguments: dict[str, Any] = found
    return arguments


@pytest.mark.parametrize(("given", "holds"), SWITCHES)
def test_guests_get_containers_and_image_when_requested(given: object, holds: bool) -> None:
    parts = rendered(PLAY["vars"]["guest_parts"], guest_containers=given, guest_image=given)
    assert parts == (["container", "image"] if holds else [])


@pytest.mark.parametrize(("given", "holds"), SWITCHES)
def test_guests_get_rdma_when_requested(given: object, holds: bool) -> None:
    (task,) = [task for task in PLAY["tasks"] if task["name"] == "Configure the RDMA device"]
    result = rendered("{{ " + task["when"] + " }}", rdma_expected=given)
    assert result is holds


@pytest.mark.parametrize(("given", "holds"), SWITCHES)
@pytest.mark.parametrize("file", ["prove_apt.yml", "prove_dnf.yml"])
def test_other_repositories_are_refused_when_requested(file: str, given: object, holds: bool) -> None:
    desired = task_of("repositories", file, "dml.vsphere.node_check")["desired"]
    assert rendered(desired["only"], repositories_only=given) is holds


@pytest.mark.parametrize(("given", "holds"), SWITCHES)
def test_docker_runs_nvidia_by_default_when_requested(given: object, holds: bool) -> None:
    desired = value("container_runtime", "__container_runtime_wanted", container_runtime_nvidia_default=given)
    assert ("default-runtime" in docker.own_settings(desired)) is holds


@pytest.mark.parametrize(("given", "lines"), [(8, 1), ("8", 1), (0, 0), ("0", 0)])
def test_huge_pages_are_written_when_requested(given: object, lines: int) -> None:
    known = {**variables("node"), "ansible_managed": "", "node_hugepages": given}
    text = str(rendered((ROLES / "node" / "templates" / "sysctl.j2").read_text(), **known))
    assert text.count("vm.nr_hugepages = 8") == lines
    assert truth("'vm.nr_hugepages' in __node_wanted_sysctls", **known) is bool(lines)
