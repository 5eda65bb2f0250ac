"""The check of a training image: its versions on a node, and a run with one rank on each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import mpi_checks

Found = Mapping[str, Any]
FRAMEWORKS, ALONE = ("tensorflow", "pytorch"), "pytorch_ddp"


def facts(found: Found, desired: Found) -> dict[str, Any]:
    """Return the framework, the versions by part and the NCCL that the image reports."""
    reported, requested = _reported(found), desired["versions"]
    framework = next((name for name in FRAMEWORKS if reported.get(name)), requested.get("framework", ""))
    versions = {
        "Python": reported.get("python"),
        framework: reported.get(framework),
        "horovod": reported.get("horovod"),
    }
    linked = _linked(found)
    return {
        # PyTorch also trains without Horovod, with a separate benchmark.
        "framework": ALONE if framework == "pytorch" and not reported.get("horovod") else framework,
        "nccl": reported.get("nccl") or "",
        "uses_nccl": bool(requested.get("uses_nccl")) or any(rank.get("backend") == "nccl" for rank in _ranks(found)),
        "versions": {name: version for name, version in {**versions, "OpenMPI": linked}.items() if name and version},
    }


def misfits(found: Found, desired: Found) -> list[str]:
    """Return a sentence for each missing program, wrong version and fault of the run."""
    run = found["versions"]
    if run.get("rc", 1) != 0:
        text = (run.get("stderr") or run.get("msg") or "no output").strip()
        return [f"A command in the image failed: {text[-mpi_checks.LONGEST :]}."]
    reported = _reported(found)
    lacking = [
        f"The image has no {name}, without which mpirun cannot reach other nodes." for name in reported["missing"]
    ]
    return [*lacking, *reported["faults"], *_versions(reported, desired["versions"]), *_run(found, desired)]


def _reported(found: Found) -> Mapping[str, Any]:
    lines = mpi_checks.records(found["versions"].get("stdout") or "", "versions")
    return lines[0] if lines else {"missing": [], "faults": ["The image reports no versions."]}


def _versions(reported: Found, requested: Found) -> Iterator[str]:
    """Yield a sentence for each wrong or missing version; the desired Python is a version series."""
    framework = requested.get("framework", "")
    desired = {
        "horovod": requested.get("horovod"),
        framework: requested.get("framework_version"),
        "python": requested.get("python"),
    }
    for name, version in desired.items():
        there = str(reported.get(name) or "")
        if version and mpi_checks.released(there, version) != version and not there.startswith(f"{version}."):
            yield f"The image has {name} {there}, not {version}." if there else f"The image lacks {name} {version}."


def _run(found: Found, desired: Found) -> Iterator[str]:
    """Yield a sentence for each fault of the run with one rank on each node."""
    run, count = found["run"], len(desired["nodes"])
    if run.get("rc", 1) != 0:
        text = (run.get("stderr") or run.get("msg") or "mpirun did not run").strip()
        yield f"The run in the image over all nodes failed: {text[-mpi_checks.LONGEST :]}."
        return
    ranks = _ranks(found)
    first = 1 if mpi_checks.sums(run) else 0  # ranks add up from 1 in an allreduce, from 0 with MPI only
    right = sum(range(first, count + first))
    nodes: Sequence[str] = sorted(str(rank["node"]) for rank in ranks)
    if len(set(nodes)) != count or any(rank["sum"] != right for rank in ranks):
        there = ", ".join(nodes) or "no node"
        yield f"Each of {count} nodes must run a rank in the image that reaches all others; ranks ran on {there}."


def _ranks(found: Found) -> list[dict[str, Any]]:
    return mpi_checks.sums(found["run"]) or mpi_checks.records(found["run"].get("stdout") or "", "hello")


def _linked(found: Found) -> str:
    """Return the OpenMPI to which the ranks are linked; empty if they do not report it."""
    matches = [mpi_checks.LIBRARY.search(str(one.get("library", ""))) for one in _ranks(found)]
    return next((one.group() for one in matches if one), "")
