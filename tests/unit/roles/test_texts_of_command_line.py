"""Options of guests that a command line gives, such as ``-e guest_containers=false``, are texts, and mean it."""

from __future__ import annotations

import pytest
import yaml

from plugins.module_utils.guests import docker
from tests.rendering import ROLES, rendered, task_of, truth, value, variables

PLAYBOOK = ROLES.parent / "playbooks" / "guests.yml"
SWITCHES = [("false", False), ("no", False), ("true", True), (False, False), (True, True)]
(PLAY,) = yaml.safe_load(PLAYBOOK.read_text())


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
    check = task_of("repositories", file, "Check that each repository")["dml.vsphere.node_check"]
    assert rendered(check["desired"]["only"], repositories_only=given) is holds


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


@pytest.mark.parametrize("given", ["ntp1.lab, ntp2.lab", "ntp1.lab,ntp2.lab", ["ntp1.lab", "ntp2.lab"]])
def test_time_servers_are_whole_names_in_text(given: object) -> None:
    block = task_of("node", "time.yml", "Write the time servers")["ansible.builtin.blockinfile"]["block"]

    lines = rendered(block, node_time_servers=given).splitlines()
    assert [line.strip() for line in lines if line.strip()] == ["server ntp1.lab iburst", "server ntp2.lab iburst"]
