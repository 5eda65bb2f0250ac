# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The chapters of the demo, on nodes, on virtual machines and on Kubernetes: what is run, and what it promises."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.person import lose_rdma_nic, power_off
from lab.simulator import Centre


@dataclass(frozen=True)
class Chapter:
    """One run of a playbook, and what must be true of the server's log of writes afterwards."""

    title: str
    playbook: str
    arguments: tuple[str, ...] = ()
    writes: bool = True
    fails: bool = False
    harm: tuple[str, Callable[[Centre], None]] | None = None
    in_guests: bool = False


def _harmed(off: str, bare: str) -> tuple[str, Callable[[Centre], None]]:
    """A careless person, in words and in deed."""

    def harm(vcenter: Centre) -> None:
        power_off(vcenter, off)
        lose_rdma_nic(vcenter, bare)

    return f"Somebody switches {off} off and takes the PVRDMA card out of {bare}.", harm


def _swept(sizes: Sequence[int]) -> str:
    return json.dumps({"training_sweep_nodes": list(sizes), "training_sweep_repeats": 1})


HOSTS = (
    Chapter(
        "What would be done, from bare hosts to workers? (--check --diff)", "site.yml", ("--check", "--diff"), False
    ),
    Chapter("Do it: network, hosts one out of service at a time, workers", "site.yml"),
    Chapter("The same again: nothing is left to do", "site.yml", writes=False),
)
TRIAL = (
    Chapter(
        "Move every worker to another host while they train, and judge",
        "vmotion_test.yml",
        ("-e", "{moves}"),
        in_guests=True,
    ),
    Chapter(
        "Show it: one page with all of that", "report.yml", ("-e", "{runs}", "-e", "{report}"), False, in_guests=True
    ),
)
REPAIR = (
    Chapter("Repair it, with the permission to shut a worker down", "workers.yml", ("-e", "power_cycle=true")),
    Chapter("Take it away? Not without a confirmation", "teardown.yml", writes=False, fails=True),
    Chapter("Take it away, and set the hosts back", "teardown.yml", ("-e", "confirm=true", "-e", "{evidence}")),
)
# A machine gets no Horovod, and has the OpenMPI of its image without the headers that Horovod needs.
MPI_ALONE = ("--skip-tags", "horovod", "-e", json.dumps({"openmpi_packages": [{"name": "openmpi-bin"}]}))


def _drift(off: str, bare: str) -> Chapter:
    return Chapter(
        "Somebody is careless: what is not as described? (--check --diff)",
        "workers.yml",
        ("--check", "--diff"),
        writes=False,
        harm=_harmed(off, bare),
    )


NODES = (
    *HOSTS,
    Chapter(
        "Into the guests: OpenMPI, Horovod, and an allreduce over all four",
        "guests.yml",
        ("-e", "stack=lab-cpu"),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Train on one, two and four workers (steps are paced: this shows that it works, not how it scales)",
        "scaling.yml",
        ("-e", "{runs}", "-e", _swept((1, 2, 4))),
        writes=False,
        in_guests=True,
    ),
    *TRIAL,
    _drift("worker02", "worker03"),
    *REPAIR,
)
MACHINES = (
    *HOSTS,
    Chapter(
        "Into the guests: RDMA devices and OpenMPI, proven from each to the other",
        "guests.yml",
        ("-e", "stack=lab-cpu", *MPI_ALONE),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Train on two workers by TCP and by RDMA (Soft-RoCE: this shows that it works, not how fast)",
        "scaling.yml",
        ("-e", "{runs}", "-e", _swept((2,))),
        writes=False,
        in_guests=True,
    ),
    *TRIAL,
    _drift("worker01", "worker02"),
    *REPAIR,
)
KUBERNETES = (
    *HOSTS,
    Chapter(
        "Into the guests: users, names, limits; nothing to train with, which pods bring along",
        "guests.yml",
        ("-e", "stack=lab-cpu", "--tags", "node,stack"),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "The workers are nodes of a Kubernetes since they booted: prepare them for training there",
        "kubernetes.yml",
        ("-e", "mpi_operator_install=false"),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Train on one, two and four workers, as MPIJobs with a pod on each (steps are paced)",
        "scaling.yml",
        ("-e", "{runs}", "-e", _swept((1, 2, 4))),
        writes=False,
        in_guests=True,
    ),
    *TRIAL,
    _drift("worker02", "worker03"),
    *REPAIR,
)
