"""Workers move under a job in Slurm that the collection did not submit; it continues, or breaks as Slurm ends it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ansible import Outcome
from tests.integration.killing import kill_all
from tests.integration.rolling import times
from tests.integration.test_vmotion import TAGGED
from tests.lab.benchmark import BUILD_SECONDS
from tests.lab.conftest import laboratory
from tests.lab.places import USER, Place, ansible_login, desired, until
from tests.lab.trial import WORKERS, equip

pytestmark = pytest.mark.slow
FOLDER = f"/home/{USER}"
SCRIPT = f"""#!/bin/sh
export DML_RECORDS={FOLDER}/records-$SLURM_JOB_ID PYTHONPATH={FOLDER}
srun --ntasks-per-node=1 mkdir -p $DML_RECORDS
exec mpirun -x DML_RECORDS -x PYTHONPATH --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 --bind-to none \\
  python3 {FOLDER}/train.py --seconds 0.1
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Four workers with Slurm on five hosts."""
    folder = tmp_path_factory.mktemp("slurm")
    with laboratory(folder, TAGGED, "slurm-moves") as made:
        built = made.ansible.module("worker_vm", **desired(made))
        assert built.rc == 0, built.out
        equip(made)
        options = {"stack": "lab-cpu", "guest_slurm": True, "node_time_sync": "host"}
        words = ("-i", str(inventory(made, folder)), "--tags", "node,openmpi,slurm", "-e", json.dumps(options))
        guests = made.ansible.playbook("playbooks/guests.yml", *words, timeout=BUILD_SECONDS)
        assert guests.rc == 0, guests.out[-4000:]
        yield made


def inventory(place: Place, folder: Path) -> Path:
    """The cluster and its workers, which Slurm has under the same names."""
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    workers = {f"worker0{number}": {"ansible_host": place.address(number)} for number in place.numbers}
    groups = {"clusters": {"hosts": {"gpu": here}}, "workers": {"hosts": workers, "vars": ansible_login(place.lab.key)}}
    path = folder / "inventory.yml"
    path.write_text(json.dumps({"all": {"children": groups}}))
    return path


def submitted(place: Place, *options: str) -> str:
    """Submit a job on all workers as a user does, and return its number when it runs."""
    place.inside(1, f"cat > job.sh <<'E'\n{SCRIPT}E")
    number = place.inside(
        1, f"sbatch --parsable --exclusive --nodes=4 --ntasks-per-node=1 {' '.join(options)} job.sh"
    ).stdout.strip()
    until(lambda: state(place, number) == "RUNNING", f"job {number} runs", 120)
    return number


def state(place: Place, number: str) -> str:
    """Return the state of a job in Slurm."""
    return place.inside(1, f"squeue --noheader --states=all --jobs={number} --format=%T").stdout.strip()


def moved(place: Place, folder: Path, number: str, **more: Any) -> tuple[Outcome, dict[str, Any]]:
    """Run the playbook on a job by its number, and return the verdict."""
    given = {"vmotion_test_slurm": {"job": int(number), "login": "worker01"}, "vmotion_test_warmup_steps": 5, **more}
    given["vmotion_test_dir"] = str(folder / "tests")
    words = ("-i", str(inventory(place, folder)), "-e", json.dumps(given))
    done = place.ansible.playbook("playbooks/vmotion_test.yml", *words, timeout=BUILD_SECONDS)
    verdicts = list((folder / "tests").glob("*/verdict.json"))
    assert len(verdicts) == 1, done.out[-4000:]
    return done, json.loads(verdicts[0].read_text())


def test_job_by_its_number_continues_while_all_workers_move(place: Place, tmp_path: Path) -> None:
    place.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": 5})
    number = submitted(place)

    done, verdict = moved(place, tmp_path, number, vmotion_test_limits={"max_gap_s": 60, "resume_deadline_s": 120})

    assert done.rc == 0, done.out[-4000:]
    assert (verdict["verdict"], verdict["moved"], verdict["unproven"]) == ("continuous", "all", [])
    assert len(verdict["moves"]) == len(WORKERS)
    assert state(place, number) == "RUNNING"
    place.inside(1, f"scancel {number}")


def window_around(place: Place, folder: Path, number: str) -> tuple[str, ...]:
    """Return the command of a window around a job, in which each host reboots."""
    option = {"name": "nmlx5_core", "options": {"max_vfs": 4}}
    given = {
        "under_training": True,
        "maintenance_job": {"slurm": {"job": int(number), "login": "worker01"}},
        "esxi_host_profile": {"kernel_modules": [option]},
        "esxi_host_evidence_dir": str(folder / "evidence"),
        "vmotion_test_dir": str(folder / "tests"),
        "vmotion_test_warmup_steps": 5,
        "vmotion_test_limits": {"max_gap_s": 60, "resume_deadline_s": 120},
    }
    return ("playbooks/hosts.yml", "-i", str(inventory(place, folder)), "-e", json.dumps(given))


def test_killed_window_continues_and_ends_its_reservation(place: Place, tmp_path: Path) -> None:
    place.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": 2})
    number, control = submitted(place), place.lab.control
    words = window_around(place, tmp_path, number)
    control.clear()
    killed = place.ansible.start(*words)
    until(lambda: bool(times(control.writes(), "RebootHost_Task")), "a host reboots", BUILD_SECONDS)
    kill_all(killed)
    kept = place.inside(1, "scontrol show reservation").stdout

    done = place.ansible.playbook(*words, timeout=BUILD_SECONDS)

    assert "ReservationName=dml-gpu" in kept and "Flags=MAINT,IGNORE_JOBS" in kept, kept
    assert done.rc == 0, done.out[-4000:]
    (folder,) = (tmp_path / "tests").glob("*/verdict.json")
    assert json.loads(folder.read_text())["verdict"] == "continuous"
    assert set(times(control.writes(), "RebootHost_Task").values()) == {1}
    assert place.inside(1, "scontrol show reservation").stdout.startswith("No reserv")
    assert state(place, number) == "RUNNING"
    place.inside(1, f"scancel {number}")


def test_node_that_slurm_marks_down_breaks_the_job(place: Place, tmp_path: Path) -> None:
    for worker in place.numbers:
        place.inside(worker, "sudo sed -i 's/^SlurmdTimeout=.*/SlurmdTimeout=10/' /etc/slurm/slurm.conf")
    place.inside(1, "sudo scontrol reconfigure")
    place.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": 60})
    number = submitted(place, "--no-requeue")
    limits = {"max_gap_s": 120, "resume_deadline_s": 120}
    given = {"vmotion_test_limits": limits, "vmotion_test_workers": ["worker03"], "vmotion_test_canary": ""}

    refused = place.ansible.playbook(
        "playbooks/vmotion_test.yml",
        *("-i", str(inventory(place, tmp_path)), "-e"),
        json.dumps(
            {**given, "vmotion_test_slurm": {"job": int(number)}, "vmotion_test_dir": str(tmp_path / "refused")}
        ),
        timeout=BUILD_SECONDS,
    )
    done, verdict = moved(place, tmp_path, number, vmotion_test_accept=["slurm"], **given)

    assert refused.rc != 0 and "Slurm's SlurmdTimeout is 10 s, and a stun needs" in refused.out, refused.out[-4000:]
    assert done.rc != 0 and verdict["verdict"] == "broken", done.out[-4000:]
    details = " ".join(str(breach["detail"]) for breach in verdict["breaches"])
    assert "NODE_FAIL" in details or "DOWN" in details, details
