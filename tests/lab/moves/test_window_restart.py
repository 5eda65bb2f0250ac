"""playbooks/hosts.yml on a full cluster: guests shut down and boot while their hosts reboot, and the job goes on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import ROOT
from tests.integration.ansible import Outcome
from tests.integration.rolling import times
from tests.integration.test_vmotion import TAGGED
from tests.lab.benchmark import BUILD_SECONDS
from tests.lab.conftest import laboratory
from tests.lab.places import USER, Place, ansible_login, desired, until
from tests.lab.trial import NUMBERS, give, together

pytestmark = pytest.mark.slow
HOSTS = [f"esx{number:02}.lab" for number in range(1, 5)]
BOOTED = "cut -d' ' -f22 /proc/1/stat"
FILES, LIBRARY = ROOT / "lab/training", ROOT / "roles/training/files"
RESTARTABLE = {"training_folder": str(FILES), "training_command": "python restartable.py --resume {resume}"}
PROGRAMS = [
    *(FILES / name for name in ("restartable.py", "train.py", "mpi.py")),
    *(LIBRARY / name for name in ("dml_records.py", "dml_options.py")),
]
# The script finds the newest checkpoint, whether it is started by its user or again by Slurm.
SCRIPT = f"""#!/bin/sh
cd /home/{USER}/job
export DML_RECORDS=/home/{USER}/records-$SLURM_JOB_ID
newest=$(ls -t outputs/*.ckpt 2>/dev/null | head -n 1)
echo "${{newest:-new}}" >> output
# Each rank reads the checkpoint that rank 0 wrote on the first node.
srun --ntasks-per-node=1 mkdir -p outputs
[ -z "$newest" ] || sbcast --force "$newest" "/home/{USER}/job/$newest"
exec mpirun -x DML_RECORDS --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 --bind-to none \\
  python3 restartable.py --resume "$newest"
"""


class FullCluster:
    """As many workers as hosts, of which none can move, and the playbooks for them."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place, self.folder, self.inventory = place, folder, folder / "inventory.yml"
        here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        login = {**ansible_login(place.lab.key), "ansible_remote_tmp": "~/.ansible/tmp"}
        workers = {f"worker0{number}": {"ansible_host": place.address(number)} for number in place.numbers}
        groups = {"clusters": {"hosts": {"gpu": here}}, "workers": {"hosts": workers, "vars": login}}
        self.changes, self.off = 0, list[int]()
        self.inventory.write_text(json.dumps({"all": {"children": groups}}))

    def play(self, name: str, *arguments: str, **variables: Any) -> Outcome:
        """Run a playbook to its end."""
        words = ("-i", str(self.inventory), *arguments, "-e", json.dumps(variables))
        return self.place.ansible.playbook(f"playbooks/{name}.yml", *words, timeout=BUILD_SECONDS)

    def install(self, tags: str, **variables: Any) -> None:
        """Install parts of a stack on all workers."""
        guests = self.play("guests", "--tags", tags, node_time_sync="host", **variables)
        assert guests.rc == 0, guests.out[-4000:]

    def train(
        self, folder: Path, *arguments: str, program: Mapping[str, str] = RESTARTABLE, **more: Any
    ) -> dict[str, Any]:
        """Start a run that saves checkpoints, and return the variables that name it."""
        python = {"training_python": "/usr/bin/python3", "training_steps_by": "script"}
        name = {"training_name": folder.name, "training_results": str(folder / "results"), **python, **more}
        started = self.play("train", *arguments, **name, **program, training_follow=False)
        assert started.rc == 0, started.out[-4000:]
        return name

    def change(self, folder: Path, stopped: Sequence[int] = (), **more: Any) -> Outcome:
        """Change all hosts around the job, whose guests must boot meanwhile: those of these workers, by default all."""
        control, before = self.place.lab.control, self.boots()
        stopped, hosts = stopped or self.place.numbers, HOSTS[: len(self.place.numbers)]
        control.clear()
        done = self.window(folder, **more)
        assert done.rc == 0, done.out[-6000:]
        assert dict(times(control.writes(), "RebootHost_Task")) == dict.fromkeys(hosts, 1)
        assert [write["method"] for write in control.writes()].count("ShutdownGuest") == len(stopped)
        after = self.boots()
        assert {number for number in before if before[number] != after[number]} == set(stopped), (
            "these nodes have booted"
        )
        return done

    def window(self, folder: Path, **more: Any) -> Outcome:
        """Run the playbook that changes all hosts around the job."""
        self.changes += 1
        option = {"name": "nmlx5_core", "options": {"max_vfs": self.changes}}
        given = {
            "under_training": True,
            "window_by": "restart",
            "max_out_of_service": 2,
            "window_checkpoint_wait": 300,
            "vmotion_test_dir": str(folder / "tests"),
            "esxi_host_evidence_dir": str(folder / "evidence"),
            "esxi_host_profile": {"kernel_modules": [option]},
        }
        return self.play("hosts", **{**given, **more})

    def boots(self) -> dict[int, str]:
        """Return when the systemd of each node that runs started."""
        running = [number for number in self.place.numbers if number not in self.off]
        return {number: self.place.inside(number, BOOTED).stdout for number in running}


@contextmanager
def full_cluster(
    folder: Path, name: str, numbers: Sequence[int] = NUMBERS, shares: Sequence[str] = ()
) -> Iterator[FullCluster]:
    """A host for each worker, and Slurm on the workers."""
    centre = TAGGED.replace("count: 5", f"count: {len(numbers)}")
    with laboratory(folder, centre, name, shares=shares) as place:
        built = place.ansible.module("worker_vm", **desired(place, numbers))
        assert built.rc == 0, built.out
        made = FullCluster(replace(place, numbers=numbers), folder)
        made.install("node,openmpi,slurm", stack="lab-cpu", guest_slurm=True)
        yield made


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullCluster]:
    with full_cluster(tmp_path_factory.mktemp("full"), "full") as made:
        yield made


def verdict_of(folder: Path) -> str:
    """Return the verdict of the only window of a folder."""
    (kept,) = (folder / "tests").glob("*/restart.json")
    return str(json.loads(kept.read_text())["verdict"]["verdict"])


def test_job_resumes_after_its_guests_have_shut_down(full: FullCluster, tmp_path: Path) -> None:
    run = full.train(tmp_path)

    done = full.change(tmp_path, **run)

    assert f"{tmp_path.name}-2: resumed" in " ".join(done.out.split()), done.out[-6000:]
    assert verdict_of(tmp_path) == "resumed"
    stopped = full.play("stop", **run)
    assert stopped.rc == 0, stopped.out[-4000:]


def test_run_in_slurm_resumes_and_its_nodes_were_reserved(full: FullCluster, tmp_path: Path) -> None:
    run = full.train(tmp_path, training_backend="slurm")

    done = full.change(tmp_path, **run)

    assert verdict_of(tmp_path) == "resumed", done.out[-6000:]
    check_reservation(full)
    stopped = full.play("stop", **run)
    assert stopped.rc == 0, stopped.out[-4000:]


def check_reservation(full: FullCluster) -> None:
    """Slurm made one reservation of the window, and has it no more."""
    log = full.place.inside(1, "sudo grep -h 'reservation' /var/log/slurm/slurmctld.log").stdout
    assert "dml-gpu" in log and full.place.inside(1, "scontrol show reservation").stdout.startswith("No reserv"), log


def written(full: FullCluster) -> list[str]:
    """Return the checkpoint with which each start of the job's script began."""
    return full.place.inside(1, "cat job/output").stdout.split()


def hand_over(place: Place, number: int) -> None:
    """Give a worker the program of the job."""
    for program in PROGRAMS:
        give(place, number, program, folder="job")


def test_other_job_in_slurm_is_held_and_released(full: FullCluster, tmp_path: Path) -> None:
    together(partial(hand_over, full.place))
    full.place.inside(1, f"cat > job/job.sh <<'E'\n{SCRIPT}E")
    submit = "sbatch --parsable --requeue --exclusive --nodes=4 --ntasks-per-node=1 job/job.sh"
    number = full.place.inside(1, submit).stdout.strip()
    saved = "ls job/outputs/*.ckpt"
    until(lambda: full.place.inside(1, saved, check=False).returncode == 0, "the job saves a checkpoint", 300)
    slurm = {"job": int(number), "login": "worker01"}

    done = full.change(tmp_path, maintenance_job={"slurm": slurm, "checkpoints": f"/home/{USER}/job/outputs"})

    shown = full.place.inside(1, f"scontrol show job {number}").stdout
    assert "JobState=RUNNING" in shown and "Restarts=1" in shown, done.out[-6000:]
    until(lambda: len(written(full)) == 2, "the batch script runs again", 60)
    log = written(full)
    assert log[0] == "new" and log[1].endswith(".ckpt"), log
    check_reservation(full)
    full.place.inside(1, f"scancel {number}")


def test_one_job_moves_and_the_other_restarts(full: FullCluster, tmp_path: Path) -> None:
    """The last worker is off from here on, so that its host is free for that of the job that moves."""
    moves, restarts = tmp_path / "moves", tmp_path / "restarts"
    for folder in (moves, restarts):
        folder.mkdir()
    full.train(moves, "--limit", "worker03")
    run = full.train(restarts, "--limit", "worker01,worker02")
    free = full.place.facts_of(4)["host"]
    last = {"name": "worker04", "power": "off", "reserve_memory": False}
    off = full.place.ansible.module("worker_vm", cluster="gpu", one_per_host=False, power_cycle=True, workers=[last])
    assert off.rc == 0, off.out
    full.off = [4]

    done = full.change(restarts, stopped=(1, 2), accept_other_jobs=True, vmotion_test_steps=5, **run)

    assert verdict_of(restarts) == "resumed" and full.place.facts_of(3)["host"] == free, done.out[-6000:]
    (others,) = (restarts / "tests").glob("*/other_jobs.json")
    assert [job["verdict"] for job in json.loads(others.read_text())] == ["continuous"], done.out[-6000:]
