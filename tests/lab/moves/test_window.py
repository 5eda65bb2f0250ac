"""playbooks/hosts.yml around real Open MPI: the vGPU manager of five hosts is upgraded while four workers train."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import Failed
from tests.integration.ansible import Outcome
from tests.integration.killing import has_started, kill_all, wait_for
from tests.integration.rolling import times
from tests.integration.test_vmotion import TAGGED
from tests.lab.conftest import laboratory
from tests.lab.moves.test_rolling import tcp
from tests.lab.places import Place, ansible_login, desired
from tests.lab.rolling import RUN, train
from tests.lab.trial import WORKERS, equip, together

pytestmark = pytest.mark.slow
LONG = 3600
HOSTS = [f"esx{number:02}.lab" for number in range(1, 6)]
ARCHIVE = "[shared] NVD-AIE-800_{}-1OEM.800.1.0.20613240_1.zip"
DEPOT = """
  - paths: [/vmfs/volumes/shared/NVD-AIE-800_{version}-1OEM.800.1.0.20613240_1.zip]
    vibs:
      - name: NVD-AIE_ESXi_8.0.0_Driver
        version: {version}-1OEM.800.1.0.20613240
        vendor: NVIDIA
        acceptance_level: VMwareAccepted
        component: NVD-AIE-800
"""
# Each test upgrades what the test before it has installed.
VERSIONS = ("550.127.05", "550.144.02", "550.163.10", "550.200.01", "550.230.01")
DEPOTS = "depots:" + "".join(DEPOT.format(version=version) for version in VERSIONS)
KILLED = (
    "EnterMaintenanceMode_Task",
    "RelocateVM_Task",
    "esxcli software vib install",
    "RebootHost_Task",
    "ExitMaintenanceMode_Task",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Four workers with Open MPI on five hosts."""
    with laboratory(tmp_path_factory.mktemp("window"), TAGGED + DEPOTS, "window") as made:
        built = made.ansible.module("worker_vm", **desired(made))
        assert built.rc == 0, built.out
        equip(made)
        made.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": 2})
        yield made


class Upgrade:
    """The playbook hosts on a place whose workers train."""

    def __init__(self, place: Place, folder: Path, version: str, inventory: Path) -> None:
        self.place, self.folder, self.version, self.inventory = place, folder, version, inventory
        self.running: subprocess.Popen[str] | None = None

    def variables(self) -> dict[str, Any]:
        vib = {"name": "NVD-AIE_ESXi_8.0.0_Driver", "version": self.version, "source": ARCHIVE.format(self.version)}
        return {
            "under_training": True,
            "esxi_host_profile": {"vibs": [vib]},
            "esxi_host_moved_by": "module",
            "esxi_host_evidence_dir": str(self.folder / "evidence"),
            "training_name": RUN.rpartition("/")[2],
            "vmotion_test_dir": str(self.folder / "tests"),
            "vmotion_test_warmup_steps": 5,
            "vmotion_test_limits": {"max_gap_s": 30, "resume_deadline_s": 60},
        }

    def command(self, **more: Any) -> list[str]:
        given = json.dumps({**self.variables(), **more})
        return ["playbooks/hosts.yml", "-i", str(self.inventory), "-e", given]

    def run(self, *arguments: str, **more: Any) -> Outcome:
        return self.place.ansible.playbook(*self.command(**more), *arguments, timeout=LONG)

    def begin(self) -> subprocess.Popen[str]:
        self.running = self.place.ansible.start(*self.command())
        return self.running

    def kept(self, name: str) -> Any:
        """A file of the one test of this folder."""
        (folder,) = (self.folder / "tests").iterdir()
        return json.loads((folder / name).read_text())

    def check(self) -> None:
        """Each host was rebooted once and has the version, no more than one at a time, and the job went on."""
        writes = self.place.lab.control.writes()
        assert dict(times(writes, "RebootHost_Task")) == dict.fromkeys(HOSTS, 1)
        assert self.place.lab.control.violations() == []
        verdict, changes = self.kept("verdict.json"), self.kept("window.json")
        assert (verdict["verdict"], verdict["moved"], verdict["unproven"]) == ("continuous", "all", [])
        assert sorted(change["host"] for change in changes) == HOSTS
        last = {move["worker"]: move["target"] for move in self.kept("timeline.json")["moves"]}
        at = {worker: self.place.facts_of(number)["host"] for number, worker in enumerate(WORKERS, 1)}
        assert {worker: at[worker] for worker in last} == last
        info = self.place.ansible.module("esxi_info", cluster="gpu", gather=["vib"]).result["hosts"]
        vibs = [vib for host in info for vib in host["vibs"]["running"]]
        found = [vib["version"] for vib in vibs if vib["name"].startswith("NVD-AIE")]
        assert len(found) == len(HOSTS) and all(version.startswith(self.version) for version in found)


class Window(Upgrade):
    """The upgrade around a job of Open MPI."""

    def __init__(self, place: Place, folder: Path, version: str) -> None:
        here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        workers = {f"worker0{number}": {"ansible_host": place.address(number)} for number in place.numbers}
        groups = {
            "clusters": {"hosts": {"gpu": here}},
            "workers": {"hosts": workers, "vars": ansible_login(place.lab.key)},
        }
        super().__init__(place, folder, version, folder / "inventory.yml")
        self.inventory.write_text(json.dumps({"all": {"children": groups}}))
        together(lambda number: place.inside(number, f"rm -rf {RUN}"))
        train(place, self.inventory, tcp(place))
        place.lab.control.clear()

    def end(self) -> None:
        """Stop the job, and a playbook that a failed test has left."""
        if self.running and self.running.poll() is None:
            kill_all(self.running)
        for number in self.place.numbers:
            self.place.inside(number, "pkill -9 mpirun; pkill -9 orted; pkill -9 -f [t]rain.py; true", check=False)


@pytest.fixture
def window(place: Place, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Window]:
    """A job, and a version that no test has installed before."""
    installed: list[str] = place.ansible.environment.setdefault("WINDOW_VERSIONS", "").split()
    version = VERSIONS[len(installed) % len(VERSIONS)]
    place.ansible.environment["WINDOW_VERSIONS"] = " ".join([*installed, version])
    made = Window(place, tmp_path, version)
    yield made
    made.end()


def test_upgrades_every_host_while_the_job_trains(window: Window) -> None:
    shown = window.run("--check")
    assert shown.rc == 0 and window.place.lab.control.writes() == [], shown.out[-4000:]
    assert all(worker in shown.out for worker in WORKERS)
    done = window.run()
    assert done.rc == 0, done.out[-6000:]
    window.check()
    window.place.lab.control.clear()
    again = window.run()
    assert again.rc == 0 and window.place.lab.control.writes() == [], again.out[-4000:]


@pytest.mark.parametrize("method", KILLED)
def test_a_run_that_is_killed_goes_on(window: Window, method: str) -> None:
    running = window.begin()
    # The second time, so that one host is finished already.
    reached = has_started(window.place.lab.control, method, 2)
    wait_for(lambda: reached() or running.poll() is not None, LONG)
    assert running.poll() is None, running.communicate()[0][-4000:]
    kill_all(running)
    done = window.run()
    assert done.rc == 0, done.out[-6000:]
    window.check()


def test_dead_rank_stops_window_before_next_host(window: Window) -> None:
    running = window.begin()
    reached = has_started(window.place.lab.control, "RebootHost_Task", 2)
    wait_for(lambda: reached() or running.poll() is not None, LONG)
    window.place.inside(2, "pkill -9 -f [t]rain.py")
    out = running.communicate(timeout=LONG)[0]
    assert running.returncode != 0 and "broken" in out, out[-4000:]
    writes = window.place.lab.control.writes()
    assert len(dict(times(writes, "RebootHost_Task"))) <= 3
    assert times(writes, "EnterMaintenanceMode_Task") == times(writes, "ExitMaintenanceMode_Task"), "it serves again"


def moved_by_others(place: Place, number: int) -> bool:
    """Move a worker to the free host; a host that leaves maintenance mode may not accept it yet."""
    with contextlib.suppress(Failed, IndexError):
        place.move(number, place.free_hosts()[0])
        return True
    return False


def test_a_worker_that_others_move_meanwhile(window: Window) -> None:
    running = window.begin()
    reached = has_started(window.place.lab.control, "ExitMaintenanceMode_Task", 1)
    wait_for(lambda: reached() or running.poll() is not None, LONG)
    wait_for(lambda: moved_by_others(window.place, 4) or running.poll() is not None, LONG)
    out = running.communicate(timeout=LONG)[0]
    assert (window.folder / "tests").is_dir(), out[-4000:]
    verdict = window.kept("verdict.json")
    assert verdict["verdict"] == "continuous", out[-4000:]
    moves = window.kept("timeline.json")["moves"]
    assert any(move["external"] and move["worker"] == "worker04" for move in moves), out[-4000:]
