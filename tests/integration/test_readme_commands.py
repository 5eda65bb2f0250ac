# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The README's commands, in their order, on a site with RDMA whose inventory discover wrote."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest
import yaml

from lab.simulator import DATACENTRES, ROOT, Simulator
from tests.integration.ansible import Ansible, Outcome
from tests.integration.test_discovery import decide_all

README = (ROOT / "README.md").read_text()
COMMANDS = [shlex.split(line)[1:] for line in re.findall(r"^ansible-playbook .*$", README, re.MULTILINE)]
DISCOVER, *ON_SITE = COMMANDS
# The commands from the first to the one that builds the workers.
BUILDING, WITH_WORKERS = ON_SITE[:6], ON_SITE[6:]
WORKERS_FILE = README.split("```yaml\n")[2].split("```")[0]
WORKERS = ["worker01", "worker02"]


class Reader:
    """Runs commands of the README in one folder."""

    def __init__(self, vcenter: Simulator, ansible: Ansible) -> None:
        self.vcenter, self.ansible, self.folder = vcenter, ansible, ansible.folder
        ansible.environment["DML_EVIDENCE_DIR"] = str(self.folder / "evidence")

    def run(self, words: list[str], *more: str) -> Outcome:
        """Run a command; its writes are the only ones in the log of the server afterwards."""
        self.vcenter.clear()
        paths = {"hosts.yml", "workers.yml"}
        words = [str(self.folder / word) if word in paths else word for word in words]
        words = [re.sub(r"^dml\.vsphere\.(\w+)$", r"playbooks/\1.yml", word) for word in words]
        words = [word.replace("esx01.example.com", "esx01.lab") for word in words]
        return self.ansible.playbook(*words, *more)

    def decide(self) -> None:
        """Discover the site and accept all proposals."""
        path = self.folder / "hosts.yml"
        done = self.run([*DISCOVER, "-e", f"discover_file={path}"])
        assert done.rc == 0, done.out
        decide_all(path)

    def written(self) -> set[str]:
        return {write["method"] for write in self.vcenter.writes()}


@pytest.fixture
def reader(start: Callable[..., Simulator], ansible_for: Callable[[Simulator], Ansible]) -> Reader:
    site = yaml.safe_load((DATACENTRES / "lab.yml").read_text())
    site["clusters"][0]["hosts"] = [{"name": "esx%02d.lab", "count": 3}]
    site["host_defaults"].update(reboot_seconds=0.2, vmotion_seconds=0.2)
    vcenter = start(text=yaml.safe_dump(site))
    return Reader(vcenter, ansible_for(vcenter))


def test_the_commands_of_the_readme_work_in_their_order(reader: Reader) -> None:
    reader.decide()

    for number, command in enumerate(BUILDING):
        done = reader.run(command)
        assert done.rc == 0, (command, done.out)
        assert bool(reader.written()) is (number >= 3), "the first three commands do not write"

    (reader.folder / "workers.yml").write_text(WORKERS_FILE)
    # No guest runs on the simulated hosts, so Ansible only lists the hosts of these commands.
    for command in WITH_WORKERS:
        listed = reader.run(command, "--list-hosts")
        assert listed.rc == 0 and all(f"      {name}\n" in listed.out for name in WORKERS), listed.out


def test_site_with_guests_refuses_an_inventory_without_workers_before_the_first_write(reader: Reader) -> None:
    reader.decide()
    (command,) = [words for words in WITH_WORKERS if "guests=true" in words]
    given = {word: index for index, word in enumerate(command)}
    without_workers = command[: given["workers.yml"] - 1] + command[given["workers.yml"] + 1 :]

    done = reader.run(without_workers)

    assert done.rc != 0 and reader.written() == set(), done.out
    assert "a file workers.yml with the line 'plugin: dml.vsphere.workers'" in " ".join(done.out.split()), done.out
