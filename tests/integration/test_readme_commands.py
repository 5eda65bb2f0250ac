"""The commands of the README and of the guide, in their order, from the tarball, on a site with RDMA."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from lab.simulator import DATACENTRES, Simulator
from tests.integration.ansible import Start
from tests.integration.installed import PLACES, run
from tests.integration.test_discovery import decide_all

# No guest runs on the simulated hosts, so Ansible only lists the hosts of these commands.
ON_GUESTS = ("guests", "train", "vmotion_test", "scaling")
WORKERS = ["worker01", "worker02"]


class Reader:
    """Runs commands of a page in a folder that has nothing else, with the installed collection."""

    def __init__(self, vcenter: Simulator, elsewhere: Path, folder: Path) -> None:
        self.vcenter, self.folder = vcenter, folder
        self._installed = elsewhere / "collections" / "ansible_collections" / "dml" / "vsphere"
        places = {name: str(elsewhere / path) for name, path in PLACES.items()}
        self._environment = {**vcenter.environment, **places, "HOME": str(folder)}
        folder.mkdir()

    def page(self, name: str) -> str:
        return (self._installed / name).read_text()

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as it is; its writes are the only ones in the log of the server afterwards."""
        self.vcenter.clear()
        return run(self.folder, "bash", "-c", command, **self._environment)

    def works(self, command: str) -> str:
        done = self.run(command)
        assert done.returncode == 0, (command, done.stdout)
        return done.stdout

    def lists_workers(self, command: str) -> None:
        listed = self.works(f"{command} --list-hosts")
        assert all(f"      {name}\n" in listed for name in WORKERS), listed

    def written(self) -> set[str]:
        return {write["method"] for write in self.vcenter.writes()}


@pytest.fixture
def reader(start: Start, elsewhere: Path, tmp_path: Path) -> Reader:
    site = yaml.safe_load((DATACENTRES / "lab.yml").read_text())
    site["clusters"][0]["hosts"] = [{"name": "esx%02d.example.com", "count": 3}]
    site["host_defaults"].update(reboot_seconds=0.2, vmotion_seconds=0.2)
    return Reader(start(text=yaml.safe_dump(site)), elsewhere, tmp_path / "user")


def commands(page: str) -> list[str]:
    return re.findall(r"^ansible-playbook .*$", page, re.MULTILINE)


def playbook(command: str) -> str:
    return re.findall(r"dml\.vsphere\.(\w+)", command)[0]


def refuses_guests_without_workers(reader: Reader, on_site: list[str]) -> None:
    (command,) = [each for each in on_site if "guests=true" in each]

    done = reader.run(command.replace(" -i workers.yml", ""))

    assert done.returncode != 0 and reader.written() == set(), done.stdout
    message = "a file workers.yml with the line 'plugin: dml.vsphere.workers'"
    assert message in " ".join(done.stdout.split()), done.stdout


def test_readme_commands_work_in_their_order(reader: Reader) -> None:
    page = reader.page("README.md")
    discover, *on_site = commands(page)
    reader.works(discover)
    decide_all(reader.folder / "hosts.yml")
    refuses_guests_without_workers(reader, on_site)

    # The commands from the first to the one that builds the workers.
    for number, command in enumerate(on_site[:6]):
        reader.works(command)
        assert bool(reader.written()) is (number >= 3), "the first three commands do not write"
    (reader.folder / "workers.yml").write_text(page.split("```yaml\n")[2].split("```")[0])
    for command in on_site[6:]:
        reader.lists_workers(command)


def write_files(page: str, folder: Path) -> None:
    """Write the files that the guide shows beside the inventory."""
    for path, text in zip(("workers.yml", "group_vars/workers.yml"), page.split("```yaml\n")[1:]):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text.partition("```")[0])


def on_this_site(command: str, folder: Path) -> str:
    """Return a command of the guide without its placeholders; no VM runs here, and later the guests do not answer."""
    command = re.sub(r" -e '\{\"acceptance_vms[^']*'", "", command)
    evidence = sorted((folder / "evidence").glob("*Z.json"), key=lambda path: path.stat().st_mtime)
    first = str(evidence[0].relative_to(folder)) if evidence else ""
    idle = " -e unreachable_is_idle=true" if (folder / "inventories" / "mine" / "workers.yml").exists() else ""
    return command.replace(" [--check --diff]", "").replace("=FILE", f"={first}") + idle


@pytest.mark.slow
def test_guide_commands_work_in_their_order(reader: Reader) -> None:
    page, mine = reader.page("docs/cluster.md"), reader.folder / "inventories" / "mine"
    written: dict[str, set[str]] = {}

    for line in commands(page):
        name = playbook(line)
        if name in ON_GUESTS or "under_training" in line:
            write_files(page, mine)
            reader.lists_workers(line.replace(" [--check --diff]", ""))
        elif name != "report":
            reader.works(on_this_site(line, reader.folder))
            written[line] = reader.written()
        if name == "discover":
            decide_all(mine / "hosts.yml")
    assert "CloneVM_Task" in set().union(*written.values())
    assert "Destroy_Task" in list(written.values())[-1] and list(written.values())[-2] == set()
