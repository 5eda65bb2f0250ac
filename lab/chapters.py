"""The chapters of the demo on nodes, virtual machines and Kubernetes, with the expected result of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.person import lose_rdma_nic, power_off
from lab.simulator import Centre


@dataclass(frozen=True)
class Chapter:
    """One run of a playbook, which must end well, and whether it writes to vCenter."""

    title: str
    playbook: str
    arguments: tuple[str, ...] = ()
    writes: bool = True
    harm: tuple[str, Callable[[Centre], None]] | None = None
    in_guests: bool = False
    needs_horovod: bool = False  # which may still be compiled
    is_teardown: bool = False  # left out if the data centre is to be kept
    asks_guests: bool = False  # without guests, it needs the option unreachable_is_idle


def _harmed(off: str, bare: str) -> tuple[str, Callable[[Centre], None]]:
    """Return a description of unplanned changes and the function that makes them."""

    def harm(vcenter: Centre) -> None:
        power_off(vcenter, off)
        lose_rdma_nic(vcenter, bare)

    return f"An administrator powers off {off} and removes the PVRDMA adapter from {bare}.", harm


def _swept(sizes: Sequence[int], step_seconds: float = 0.5, steps: int = 20) -> str:
    sweep = {"training_sweep_nodes": list(sizes), "training_sweep_repeats": 1}
    return json.dumps({**sweep, "training_steps": steps, "lab_step_seconds": step_seconds})


# The run of the folder during which the hosts are changed; it trains until it is stopped.
RUN = ("-e", "training_name=spirals", "-e", "{runs}")
FOLDER = {
    "training_folder": "lab/training/spirals",
    "training_command": "python train.py --epochs 100000 --pace 0.2",
    "training_follow": False,
}
# Steps of each rank before the first change and after each move. Many more pass while a host is changed.
UPGRADE = {
    "under_training": True,
    "lab_vgpu_manager": "550.127.06",
    "vmotion_test_warmup_steps": 10,
    "vmotion_test_steps": 10,
}


HOSTS = (
    Chapter(
        "Preview all changes, from bare hosts to workers (--check --diff)", "site.yml", ("--check", "--diff"), False
    ),
    Chapter("Apply the changes: network, hosts (one at a time in maintenance mode), workers", "site.yml"),
    Chapter("Run the same playbook again: nothing changes", "site.yml", writes=False, asks_guests=True),
)
WINDOW = (
    Chapter(
        "Start training with a folder of your own, on all four workers",
        "train.yml",
        (*RUN, "-e", json.dumps(FOLDER)),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Upgrade the vGPU manager and reboot all five hosts while the job trains, and evaluate the job",
        "hosts.yml",
        ("-e", json.dumps(UPGRADE), "-e", "{moves}"),
        in_guests=True,
    ),
    Chapter("Stop the training run, and get its outputs", "stop.yml", RUN, writes=False, in_guests=True),
)
TRIAL = (
    Chapter(
        "Migrate every worker to another host during training, and evaluate the result",
        "vmotion_test.yml",
        ("-e", "{moves}"),
        in_guests=True,
    ),
)
REPORT = Chapter(
    "Write a report page with all results", "report.yml", ("-e", "{runs}", "-e", "{report}"), False, in_guests=True
)
REPAIR = Chapter(
    "Repair the drift, with permission to shut down a worker",
    "workers.yml",
    ("-e", "power_cycle=true"),
    asks_guests=True,
)
TEARDOWN = (
    Chapter("List the objects that the teardown would remove", "teardown.yml", writes=False, is_teardown=True),
    Chapter(
        "Remove the workers, and restore the hosts",
        "teardown.yml",
        ("-e", "confirm=true", "-e", "{evidence}"),
        is_teardown=True,
        asks_guests=True,
    ),
)
# Virtual machines get no Horovod: their image contains OpenMPI without the headers that Horovod needs.
MPI_ALONE = ("--skip-tags", "horovod", "-e", json.dumps({"openmpi_packages": [{"name": "openmpi-bin"}]}))


def _drift(off: str, bare: str) -> Chapter:
    return Chapter(
        "Detect drift after unplanned changes (--check --diff)",
        "workers.yml",
        ("--check", "--diff"),
        writes=False,
        harm=_harmed(off, bare),
    )


GUESTS = Chapter(
    "Configure the guests: OpenMPI, Horovod, and an allreduce over all four",
    "guests.yml",
    ("-e", "stack=lab-cpu"),
    writes=False,
    in_guests=True,
    needs_horovod=True,
)
# The same in two runs, the first of which needs no Horovod.
GUESTS_MEANWHILE = (
    Chapter(
        "Configure the guests: OpenMPI on all four, while Horovod is still being compiled",
        "guests.yml",
        (*GUESTS.arguments, "--tags", "node,openmpi"),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Configure the guests: Horovod, and an allreduce over all four",
        "guests.yml",
        (*GUESTS.arguments, "--tags", "horovod,versions,stack"),
        writes=False,
        in_guests=True,
        needs_horovod=True,
    ),
)
# Drift comes before the guests, because Horovod is compiled meanwhile.
NODES = (
    *HOSTS,
    _drift("worker02", "worker03"),
    REPAIR,
    GUESTS,
    Chapter(
        "Train on one, two and four workers (steps are paced: this shows function, not scaling)",
        "scaling.yml",
        ("-e", "{runs}", "-e", _swept((1, 2, 4), 0.25, steps=12)),
        writes=False,
        in_guests=True,
    ),
    *WINDOW,
    REPORT,
    *TEARDOWN,
)
MACHINES = (
    *HOSTS,
    Chapter(
        "Configure the guests: RDMA devices and OpenMPI, tested between all guests",
        "guests.yml",
        ("-e", "stack=lab-cpu", *MPI_ALONE),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Train on two workers over TCP and over RDMA (Soft-RoCE: this shows function, not speed)",
        "scaling.yml",
        ("-e", "{runs}", "-e", _swept((2,))),
        writes=False,
        in_guests=True,
    ),
    *TRIAL,
    REPORT,
    _drift("worker01", "worker02"),
    REPAIR,
    *TEARDOWN,
)
KUBERNETES = (
    *HOSTS,
    Chapter(
        "Configure the guests: users, names, limits; the training stack comes with the pods",
        "guests.yml",
        ("-e", "stack=lab-cpu", "--tags", "node,stack"),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Prepare the workers, which joined a Kubernetes cluster at boot, for training",
        "kubernetes.yml",
        ("-e", "mpi_operator_install=false"),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Train on one, two and four workers, as MPIJobs with one pod per worker (steps are paced)",
        "scaling.yml",
        ("-e", "{runs}", "-e", _swept((1, 2, 4))),
        writes=False,
        in_guests=True,
    ),
    *TRIAL,
    REPORT,
    _drift("worker02", "worker03"),
    REPAIR,
    *TEARDOWN,
)
# No worker can move, and there is no spare host. The run trains without Horovod, which need not be compiled.
TIED_RUN = ("-e", "training_name=regression", "-e", "{runs}")
RESTARTED = {
    "training_folder": "lab/training",
    "training_command": "python restartable.py --resume {resume}",
    "training_follow": False,
}
RESTART = {
    "under_training": True,
    "lab_kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 4}}],
    "max_out_of_service": 2,
    "vmotion_test_steps": 60,
}
TIED = (
    HOSTS[1],
    Chapter(
        "Configure the guests: OpenMPI on all four",
        "guests.yml",
        ("-e", "stack=lab-cpu", "--tags", "node,openmpi"),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Start training on all four workers, with a program that saves checkpoints",
        "train.yml",
        (*TIED_RUN, "-e", json.dumps(RESTARTED)),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Preview a change of all four hosts: no worker can move, so the job would restart (--check)",
        "hosts.yml",
        ("-e", json.dumps({**RESTART, "window_by": "auto"}), "-e", "{moves}", *TIED_RUN, "--check"),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Stop the job at a checkpoint, reboot the hosts, two at once, start the job again, and evaluate it",
        "hosts.yml",
        ("-e", json.dumps({**RESTART, "window_by": "auto"}), "-e", "{moves}", *TIED_RUN),
        in_guests=True,
    ),
    Chapter("Stop the training run, and get its outputs", "stop.yml", TIED_RUN, writes=False, in_guests=True),
    REPORT,
    TEARDOWN[1],
)


def meanwhile(shown: Sequence[Chapter]) -> list[Chapter]:
    """Return the chapters for a demo during which Horovod is compiled."""
    return [part for chapter in shown for part in (GUESTS_MEANWHILE if chapter is GUESTS else (chapter,))]
