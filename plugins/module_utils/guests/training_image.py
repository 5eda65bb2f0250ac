# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The proof of a training image: the versions in it on a node, and a run with one rank in it on each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import mpi_checks

Found = Mapping[str, Any]
FRAMEWORKS, ALONE = ("tensorflow", "pytorch"), "pytorch_ddp"


def facts(found: Found, wanted: Found) -> dict[str, Any]:
    """The framework of the image, its versions by part, and the NCCL that is used, as the image reports them."""
    said, asked = _said(found), wanted["versions"]
    framework = next((name for name in FRAMEWORKS if said.get(name)), asked.get("framework", ""))
    versions = {"Python": said.get("python"), framework: said.get(framework), "horovod": said.get("horovod")}
    linked = _linked(found)
    return {
        # PyTorch trains without Horovod too, by a benchmark of its own.
        "framework": ALONE if framework == "pytorch" and not said.get("horovod") else framework,
        "nccl": said.get("nccl") or "",
        "uses_nccl": bool(asked.get("uses_nccl")) or any(one.get("backend") == "nccl" for one in _ranks(found)),
        "versions": {name: version for name, version in {**versions, "OpenMPI": linked}.items() if name and version},
    }


def misfits(found: Found, wanted: Found) -> list[str]:
    """A sentence for what the image lacks, for each version that is another one, and for what is wrong with the run."""
    run = found["versions"]
    if run.get("rc", 1) != 0:
        text = (run.get("stderr") or run.get("msg") or "nothing was said").strip()
        return [f"A command in the image failed: {text[-mpi_checks.LONGEST :]}."]
    said = _said(found)
    lacking = [f"The image has no {name}, without which mpirun reaches no other node." for name in said["missing"]]
    return [*lacking, *said["faults"], *_versions(said, wanted["versions"]), *_run(found, wanted)]


def _said(found: Found) -> Mapping[str, Any]:
    lines = mpi_checks.records(found["versions"].get("stdout") or "", "versions")
    return lines[0] if lines else {"missing": [], "faults": ["The image reports no versions."]}


def _versions(said: Found, asked: Found) -> Iterator[str]:
    """A sentence for each version that is not the wanted one; the wanted Python is a series."""
    framework = asked.get("framework", "")
    wanted = {"horovod": asked.get("horovod"), framework: asked.get("framework_version"), "python": asked.get("python")}
    for name, version in wanted.items():
        there = str(said.get(name) or "")
        if version and mpi_checks.released(there, version) != version and not there.startswith(f"{version}."):
            yield f"The image has {name} {there or 'nowhere'}, not {version}."


def _run(found: Found, wanted: Found) -> Iterator[str]:
    """A sentence for what is wrong with the run of one rank on each node."""
    run, count = found["run"], len(wanted["nodes"])
    if run.get("rc", 1) != 0:
        text = (run.get("stderr") or run.get("msg") or "mpirun did not run").strip()
        yield f"The run in the image over all nodes failed: {text[-mpi_checks.LONGEST :]}."
        return
    ranks = _ranks(found)
    first = 1 if mpi_checks.sums(run) else 0  # in an allreduce ranks add up from 1, by MPI alone from 0
    right = sum(range(first, count + first))
    nodes: Sequence[str] = sorted(str(one["node"]) for one in ranks)
    if len(set(nodes)) != count or any(one["sum"] != right for one in ranks):
        there = ", ".join(nodes) or "no node"
        yield f"Each of {count} nodes must run a rank in the image that reaches all others; ranks ran on {there}."


def _ranks(found: Found) -> list[dict[str, Any]]:
    return mpi_checks.sums(found["run"]) or mpi_checks.records(found["run"].get("stdout") or "", "hello")


def _linked(found: Found) -> str:
    """The OpenMPI to which the ranks are linked, where they tell."""
    seen = [mpi_checks.LIBRARY.search(str(one.get("library", ""))) for one in _ranks(found)]
    return next((one.group() for one in seen if one), "")
