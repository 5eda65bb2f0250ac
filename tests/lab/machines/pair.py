"""Two workers that are virtual machines with Soft-RoCE: how they are made, and how a job on them uses RDMA."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lab.nodes.network import AUTO
from lab.running import Desired, Lab
from lab.simulator import ROOT
from plugins.module_utils.training.transport.job_settings import Hca, MpirunSettings, TransportNode, settings
from tests.integration.ansible import Ansible
from tests.lab.places import Place, desired, output_lines, text_of
from tests.lab.rolling import inventory, moved, train
from tests.lab.trial import Trial, hand_over

NUMBERS = (1, 2)
# Under emulation on two processors that have much else to do everything takes its time; with KVM nothing waits for it.
PATIENCE = float(os.environ.get("MACHINES_PATIENCE", "20"))
BOOT_SECONDS = 90 * PATIENCE
RDMA_NETWORK = "10.216.1.0/24"
HCAS = ROOT / "roles" / "training" / "files" / "dml_hcas.py"
LIMITS = "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/70-dml-rdma.conf"


@contextlib.contextmanager
def pair(folder: Path, centre: str, name: str = "pair", proxy: bool = False, **more: Any) -> Iterator[Place]:
    """Two workers of a data centre, made by worker_vm; ``more`` is of the lab."""
    (folder / "datacentre.yml").write_text(centre)
    lab = Lab(name)
    lab.down()
    lab.up(Desired(folder / "datacentre.yml", AUTO, proxy=proxy, machines=True, **more))
    try:
        place = Place(lab, Ansible(lab.environment, folder), NUMBERS, int(3 * PATIENCE))
        built = place.ansible.module("worker_vm", **desired(place, NUMBERS, BOOT_SECONDS))
        assert built.rc == 0, built.out
        hand_over(place, 30 * PATIENCE)
        # As the role rdma does it for the training user.
        for number in NUMBERS:
            place.inside(number, LIMITS, seconds=30 * PATIENCE)
        yield place
    finally:
        lab.down()


def devices(place: Place, number: int) -> list[dict[str, Any]]:
    """The RDMA devices of a worker, as the role training reads them."""
    output = place.inside(number, f"python3 - <<'E'\n{HCAS.read_text()}\nE", seconds=30 * PATIENCE)
    return list(json.loads(output.stdout))


def rdma_settings(place: Place) -> MpirunSettings:
    """The environment and the words of mpirun with which a job uses the RDMA devices that are found."""
    found = {number: devices(place, number) for number in place.numbers}
    nodes: list[TransportNode] = [
        {
            "name": f"worker0{number}",
            "hcas": [Hca(name=one["name"], driver=one["driver"], gid_index=one["gid_index"]) for one in cards],
        }
        for number, cards in found.items()
    ]
    return settings("rdma", nodes, None, network=RDMA_NETWORK)


def rdma(place: Place, *more: str) -> list[str]:
    """The same as arguments of mpirun only, with ``more`` for the environment."""
    found = rdma_settings(place)
    environment = {**found["environment"], **dict(one.split("=", 1) for one in more)}
    return [*found["mpirun_arguments"], *(f"-x {name}={value}" for name, value in environment.items())]


@contextlib.contextmanager
def job(place: Place, folder: Path, speech: Sequence[str] = (), pause: float = 0.2, **more: Any) -> Iterator[Trial]:
    """A training on both workers that is warm; without a pause between steps something is always on its way."""
    trial = Trial(place, folder, PATIENCE)
    try:
        trial.start("--seconds", pause, speech=speech, **more)
        yield trial
    finally:
        trial.end()


def moved_over_rdma(
    place: Place, folder: Path, rounds: int = 1, started: Callable[[], None] = lambda: None, **more: Any
) -> None:
    """A job over RDMA goes on while the playbook migrates both workers; ``more`` is of the job."""
    where, before = inventory(place, folder), _sent(place)
    place.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": 1})
    limits = {"max_gap_s": 60 + PATIENCE, "resume_deadline_s": 60 + PATIENCE}
    slow = {"vmotion_test_steps": 10, "vmotion_test_look_timeout": int(30 * PATIENCE)}
    try:
        train(place, where, rdma_settings(place), **more)
        started()
        evidence, verdict = moved(place, where, vmotion_test_limits=limits, vmotion_test_rounds=rounds, **slow)
    except AssertionError as error:
        error.add_note(conditions(place))
        raise
    finally:
        place.inside(1, "pkill -9 mpirun; pkill -9 -f [t]rain.py; true", check=False, seconds=30 * PATIENCE)
    workers = [f"worker0{number}" for number in place.numbers]
    assert sorted(one["worker"] for one in verdict["moves"]) == sorted(workers * rounds)
    looks = json.loads((evidence / "transport.json").read_text())["of_moves"]
    reported = [move[when] for move in looks for when in ("before", "after")]
    assert reported == [dict.fromkeys(workers, "rdma")] * 2 * len(workers) * rounds
    assert all(after - earlier > 20 * 65536 * 4 for earlier, after in zip(before, _sent(place)))


def _sent(place: Place) -> list[int]:
    """The bytes that each worker's RDMA device has sent."""
    return [devices(place, number)[0]["sent_bytes"] for number in place.numbers]


def move_both(place: Place, trial: Trial) -> None:
    """Migrate both workers of a job, one after the other; each must come to another host."""
    place.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": 1})
    sources = trial.at()
    moves = [trial.move(number, place.free_hosts()[0]) for number in (2, 1)]
    assert all(move["ok"] for move in moves), moves
    assert all(trial.at()[name] != host for name, host in sources.items())


def transports_of(trial: Trial) -> set[str]:
    """Return the transport of the ranks before and after the moves of a job."""
    return {reported for look in trial.transports for each in look.values() for reported in each.values()}


# The state of a job that stands still, in its guest: processes and where they wait, RDMA counters, the kernel's log.
CONDITION = """
date +%s.%N; cat /proc/uptime /proc/loadavg
ps -eo pid,stat,wchan:32,etimes,time,args --sort=-time | grep -v '\\]$' | head -15
cd /sys/class/infiniband; for one in */ports/*/state */ports/*/hw_counters/*; do echo $one $(cat $one); done
sudo -n dmesg | tail -20
"""


def conditions(place: Place) -> str:
    """Return what each guest knows of a job that stands still, now and once more later."""
    reported = []
    for _look in range(2):
        for number in place.numbers:
            seen = place.inside(number, CONDITION, check=False, seconds=30 * PATIENCE)
            reported.append(f"worker0{number}: {seen.stdout}{seen.stderr}")
    return "\n".join(reported)


def traces(lab: Lab) -> dict[str, list[str]]:
    """Everything of one lab of machines that this machine shows; other labs may come and go beside it."""
    lines = [line for path in Path("/proc").glob("[0-9]*/cmdline") for line in [text_of(path)] if line]
    mounts = [line for path in Path("/proc").glob("[0-9]*/mountinfo") for line in text_of(path).splitlines()]
    links = output_lines("ip", "-oneline", "link")
    return {
        "processes": [line for line in lines if lab.lab in line or str(lab.folder) in line],
        "links": [line for line in links if lab.lab in line],
        "namespaces": [line for line in output_lines("ip", "netns") if lab.lab in line],
        "mounts": [line for line in mounts if str(lab.folder) in line],
        "folder": [str(path) for path in lab.folder.rglob("*")],
    }
