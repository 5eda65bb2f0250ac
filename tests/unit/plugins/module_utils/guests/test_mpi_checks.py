"""The checks of OpenMPI, Horovod and PyTorch, with output of mpirun on two nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plugins.module_utils.guests import mpi_checks

NODES = ["n1", "n2"]
LIBRARY = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022"
# The output of ompi_info --parsable.
TIMERS = "".join(
    f"mca:oob:tcp:param:oob_tcp_keepalive_{name}:value:{value}\nmca:oob:tcp:param:oob_tcp_keepalive_{name}:source:file\n"
    for name, value in (("time", 300), ("intvl", 20), ("probes", 9))
)
MPI = {"version": "4.1.4", "nodes": NODES, "stun_seconds": 100}
HOROVOD = {
    "version": "0.28.1",
    "packages": [{"name": "tensorflow-cpu", "version": "2.15.1", "sha256": "ab"}],
    "framework": "tensorflow",
    "framework_version": "2.15.1",
    "nodes": NODES,
    "nccl": False,
}
LISTED = [
    {"name": "horovod", "version": "0.28.1"},
    {"name": "tensorflow-cpu", "version": "2.15.1"},
    {"name": "pip", "version": "23.0"},
]
# torch.__version__ of the wheel in the package index, whose file is called 2.13.0.
BUILD = "2.13.0+cu130"
PYTORCH = {
    "version": "2.13.0",
    "packages": [{"name": "torch", "version": "2.13.0", "sha256": "ab"}],
    "backend": "gloo",
    "nodes": NODES,
}
TORCH = [{"name": "torch", "version": "2.13.0"}, {"name": "pip", "version": "23.0"}]
NCCL = "n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"


def run(word: str, *ranks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the result of mpirun whose ranks wrote one line each; two of them share a line."""
    lines = "".join(f"{word} {json.dumps(rank, sort_keys=True)}" for rank in ranks)
    return {"rc": 0, "stdout": lines + "\n", "stderr": "", **changes}


def hello(rank: int, **changes: Any) -> dict[str, Any]:
    return {"rank": rank, "size": 2, "sum": 1, "node": NODES[rank], "library": LIBRARY, **changes}


def summed(rank: int, **changes: Any) -> dict[str, Any]:
    result = {"horovod": "0.28.1", "framework": "2.15.1", "python": "3.11.2", "mpi": True}
    return {"rank": rank, "size": 2, "sum": 3.0, "node": NODES[rank], **result, **changes}


def mpi(*ranks: dict[str, Any], timers: str = TIMERS, **changes: Any) -> dict[str, Any]:
    message = "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/"
    return {"timers": timers, "version": message, "run": run("hello", *ranks, **changes)}


def horovod(*ranks: dict[str, Any], listed: Any = None, **changes: Any) -> dict[str, Any]:
    return {
        "packages": json.dumps(LISTED if listed is None else listed),
        "python": "Python 3.11.2",
        "run": run("allreduce", *ranks, **changes),
    }


def pytorch(*ranks: dict[str, Any], listed: Any = None, **changes: Any) -> dict[str, Any]:
    return horovod(*ranks, listed=TORCH if listed is None else listed, **changes)


def added(rank: int, **changes: Any) -> dict[str, Any]:
    """Return the line of a rank of PyTorch without Horovod."""
    result = {"framework": BUILD, "python": "3.11.2", "backend": "gloo", "nccl": ""}
    return {"rank": rank, "size": 2, "sum": 3.0, "node": NODES[rank], **result, **changes}


def test_facts_of_openmpi_are_read() -> None:
    assert mpi_checks.openmpi_facts(mpi(hello(0), hello(1))) == {
        "version": "4.1.4",
        "linked": ["4.1.4"],
        "reported": "4.1.4",
    }
    assert mpi_checks.openmpi_facts({"run": {"rc": 1}}) == {"version": "", "linked": [], "reported": ""}


@pytest.mark.parametrize(
    ("found", "sentences"),
    [
        (mpi(hello(0), hello(1)), []),
        (
            mpi(rc=1, stderr="ssh: connect to host n2 port 22"),
            ["The run of mpirun over all nodes failed: ssh: connect to host n2 port 22."],
        ),
        (mpi(rc=1), ["The run of mpirun over all nodes failed: mpirun did not run."]),
        (mpi(rc=1, stderr="x" * 900), ["The run of mpirun over all nodes failed: " + "x" * 800 + "."]),
        (
            mpi(hello(0), hello(1, library=LIBRARY.replace("4.1.4", "4.1.5"))),
            ["The ranks are linked to OpenMPI 4.1.4 and 4.1.5, not 4.1.4."],
        ),
        (
            mpi(hello(0), hello(1, node="n1")),
            ["Each of 2 nodes must run a rank that reaches all others; ranks ran on n1, n1."],
        ),
        (
            mpi(hello(0, sum=0), hello(1)),
            ["Each of 2 nodes must run a rank that reaches all others; ranks ran on n1, n2."],
        ),
        (
            mpi(),
            [
                "The ranks are linked to OpenMPI nothing, not 4.1.4.",
                "Each of 2 nodes must run a rank that reaches all others; ranks ran on no node.",
            ],
        ),
    ],
)
def test_misfits_of_openmpi_are_named(found: dict[str, Any], sentences: list[str]) -> None:
    assert mpi_checks.openmpi_misfits(found, MPI) == sentences


def test_names_an_openmpi_timer_that_is_too_short() -> None:
    hasty = TIMERS.replace(":value:300", ":value:5").replace(":value:20", ":value:1")
    (sentence,) = mpi_checks.openmpi_misfits(mpi(hello(0), hello(1), timers=hasty), MPI)
    assert sentence.startswith("OpenMPI's oob_tcp_keepalive_* gives up on a silent node after 14 s")


def test_facts_of_horovod_are_read() -> None:
    facts = mpi_checks.horovod_facts(horovod(summed(0), summed(1), stderr=NCCL), HOROVOD)
    assert facts == {
        "framework_version": "2.15.1",
        "python": "3.11.2",
        "sum": 3.0,
        "nccl": ["NET/Socket"],
        "versions": {"horovod": "0.28.1", "tensorflow-cpu": "2.15.1", "Python": "3.11.2"},
    }


@pytest.mark.parametrize(
    ("found", "desired", "sentences"),
    [
        (horovod(summed(0), summed(1)), HOROVOD, []),
        (horovod(summed(0), summed(1), stderr=NCCL), {**HOROVOD, "nccl": True}, []),
        (
            horovod(summed(0), summed(1)),
            {**HOROVOD, "nccl": True},
            ["NCCL was not used: it reports no network to the other nodes."],
        ),
        (horovod(rc=1, stderr="no slots"), HOROVOD, ["The allreduce over all nodes failed: no slots."]),
        (horovod(summed(0, sum=4.0), summed(1, sum=4.0)), HOROVOD, ["sum is 4.0, not 3.0."]),
        (horovod(summed(0, mpi=False), summed(1)), HOROVOD, ["mpi is False, not True."]),
        (horovod(summed(0)), HOROVOD, ["All 2 nodes must take part; ranks ran on n1."]),
        (
            horovod(summed(0), summed(1), listed=LISTED[1:]),
            HOROVOD,
            ["The Python package horovod is missing, not 0.28.1."],
        ),
    ],
)
def test_misfits_of_horovod_are_named(found: dict[str, Any], desired: dict[str, Any], sentences: list[str]) -> None:
    assert mpi_checks.horovod_misfits(found, desired) == sentences


def test_a_single_node_needs_no_network_of_nccl() -> None:
    alone = {**HOROVOD, "nodes": ["n1"], "nccl": True}
    assert mpi_checks.horovod_misfits(horovod(summed(0, size=1, sum=1.0)), alone) == []


@pytest.mark.parametrize(
    ("reported", "expected", "sentences"),
    [
        ("2.13.0+cu130", "2.13.0", []),
        ("2.13.0", "2.13.0", []),
        ("1.10.2+cu113", "1.10.2+cu113", []),
        ("2.13.1+cu130", "2.13.0", ["framework is 2.13.1, not 2.13.0."]),
        ("2.13.0+cu126", "2.13.0+cu130", ["framework is 2.13.0+cu126, not 2.13.0+cu130."]),
    ],
)
def test_horovod_accepts_a_build_of_a_pytorch_release(reported: str, expected: str, sentences: list[str]) -> None:
    """The check of each stack with PyTorch failed because of the build suffix of its wheel."""
    listed = [*LISTED[:1], {"name": "torch", "version": "2.13.0"}]
    requested = {**HOROVOD, "framework": "pytorch", "framework_version": expected, "packages": []}
    found = horovod(summed(0, framework=reported), summed(1, framework=reported), listed=listed)
    assert mpi_checks.horovod_misfits(found, requested) == sentences


def test_facts_of_pytorch_are_read() -> None:
    found = pytorch(added(0, nccl="2.29.7", backend="nccl"), added(1, nccl="2.29.7", backend="nccl"), stderr=NCCL)
    assert mpi_checks.pytorch_facts(found, PYTORCH) == {
        "framework_version": BUILD,
        "python": "3.11.2",
        "sum": 3.0,
        "nccl": "2.29.7",
        "networks": ["NET/Socket"],
        "versions": {"torch": "2.13.0", "Python": "3.11.2"},
    }
    nothing = mpi_checks.pytorch_facts(pytorch(rc=1), PYTORCH)
    assert (nothing["framework_version"], nothing["sum"], nothing["nccl"]) == ("", None, "")


@pytest.mark.parametrize(
    ("found", "backend", "sentences"),
    [
        (pytorch(added(0), added(1)), "gloo", []),
        (
            pytorch(added(0), added(1)),
            "nccl",
            ["backend is gloo, not nccl.", "NCCL was not used: it reports no network to the other nodes."],
        ),
        (pytorch(added(0, backend="nccl"), added(1, backend="nccl"), stderr=NCCL), "nccl", []),
        (pytorch(rc=1, stderr="no slots"), "gloo", ["The allreduce over all nodes failed: no slots."]),
        (pytorch(added(0, sum=2.0), added(1)), "gloo", ["sum is 2.0, not 3.0."]),
        (pytorch(added(0)), "gloo", ["All 2 nodes must take part; ranks ran on n1."]),
        (pytorch(added(0), added(1), listed=[]), "gloo", ["The Python package torch is missing, not 2.13.0."]),
    ],
)
def test_misfits_of_pytorch_are_named(found: dict[str, Any], backend: str, sentences: list[str]) -> None:
    assert mpi_checks.pytorch_misfits(found, {**PYTORCH, "backend": backend}) == sentences
