"""The checks of OpenMPI, Horovod and PyTorch: a run with one rank on each node, and the faults in its output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..core.json_values import JsonObject
from . import node_settings, software_packages, stun_timers

LONGEST = 800  # characters from the end of mpirun's output, where the reason is
LIBRARY = re.compile(r"(?<=Open MPI v)[^ ,]+")
PARAMETER = re.compile(r":param:([a-z0-9_]+):value:(.*)$", re.MULTILINE)
NUMBER = re.compile(r"(?<!\d)\d+[.][\d.]+[a-z0-9]*")
NETWORK = re.compile(r"NCCL INFO .*via (NET/[A-Za-z]+)")
# The names of the frameworks in the package index.
DISTRIBUTIONS = {"tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"), "pytorch": ("torch",)}


def records(output: str, word: str) -> list[dict[str, Any]]:
    """Return the JSON that ranks wrote after a word; lines of several ranks may be joined."""
    return [json.loads(text) for text in re.findall(word + r" (\{[^{}]*\})", output)]


def openmpi_facts(found: JsonObject) -> dict[str, Any]:
    """Return the OpenMPI versions to which ranks are linked, and the version that ``mpirun`` reports."""
    linked = [LIBRARY.search(rank["library"]) for rank in records(_output(found["run"]), "hello")]
    reported = NUMBER.search(found.get("version") or "")
    return {
        "version": next((match.group() for match in linked if match), ""),
        "linked": list(dict.fromkeys(match.group() if match else "" for match in linked)),
        "reported": reported.group() if reported else "",
    }


def openmpi_misfits(found: JsonObject, desired: JsonObject) -> list[str]:
    """Return a sentence for each timer that is too short, and for each fault of the run over all nodes."""
    mca = dict(PARAMETER.findall(found.get("timers") or ""))
    return stun_timers.risks({"mca": mca}, float(desired["stun_seconds"])) + _openmpi_run(found, desired)


def _openmpi_run(found: JsonObject, desired: JsonObject) -> list[str]:
    failed = _failure(found["run"], "The run of mpirun over all nodes failed")
    if failed:
        return failed
    ranks, count = records(_output(found["run"]), "hello"), len(desired["nodes"])
    linked, sentences = openmpi_facts(found)["linked"], []
    if linked != [str(desired["version"])]:
        names = " and ".join(linked) or "nothing"
        sentences.append(f"The ranks are linked to OpenMPI {names}, not {desired['version']}.")
    sums = {rank["sum"] for rank in ranks}
    nodes = sorted(rank["node"] for rank in ranks)
    if len(ranks) != count or len(set(nodes)) != count or sums != {count * (count - 1) // 2}:
        there = ", ".join(nodes) or "no node"
        sentences.append(f"Each of {count} nodes must run a rank that reaches all others; ranks ran on {there}.")
    return sentences


def horovod_facts(found: JsonObject, desired: JsonObject) -> dict[str, object]:
    """Return the sum over all nodes, the versions of the ranks, and the network that NCCL used."""
    return {**_rank_facts(found), "nccl": networks(found["run"]), "versions": _versions(found, desired["framework"])}


def horovod_misfits(found: JsonObject, desired: JsonObject) -> list[str]:
    """Return a sentence for each package of another version, and for each fault of the allreduce."""
    own = {"name": "horovod", "version": desired["version"]}
    there = software_packages.pip_list(found["packages"])
    sentences = software_packages.python_misfits(there, [*desired["packages"], own])
    return sentences + _allreduce(found, desired, {"horovod": desired["version"], "mpi": True})


def pytorch_facts(found: JsonObject, _desired: Mapping[str, object]) -> dict[str, object]:
    """Return the sum over all nodes, the versions of the ranks, PyTorch's NCCL, and the network that it used."""
    first = next(iter(sums(found["run"])), {})
    return {
        **_rank_facts(found),
        "nccl": first.get("nccl") or "",
        "networks": networks(found["run"]),
        "versions": _versions(found, "pytorch"),
    }


def pytorch_misfits(found: JsonObject, desired: JsonObject) -> list[str]:
    """Return a sentence for each package of another version, and for each fault of the allreduce."""
    requested = {**desired, "framework_version": desired["version"], "nccl": desired["backend"] == "nccl"}
    sentences = software_packages.python_misfits(software_packages.pip_list(found["packages"]), desired["packages"])
    return sentences + _allreduce(found, requested, {"backend": desired["backend"]})


def sums(run: JsonObject) -> list[dict[str, Any]]:
    """Return the records that the ranks of an allreduce wrote."""
    return records(_output(run), "allreduce")


def networks(run: JsonObject) -> list[str]:
    """Return the networks through which NCCL reached other nodes, from its log."""
    return sorted(set(NETWORK.findall(_output(run) + (run.get("stderr") or ""))))


def released(there: object, desired: object) -> str:
    """Return a version without PyTorch's build suffix after the plus sign, unless ``desired`` has one."""
    return str(there) if "+" in str(desired) else str(there).partition("+")[0]


def _rank_facts(found: JsonObject) -> dict[str, object]:
    first = next(iter(sums(found["run"])), {})
    return {"framework_version": first.get("framework", ""), "python": first.get("python", ""), "sum": first.get("sum")}


def _versions(found: JsonObject, framework: str) -> dict[str, str]:
    """Return the versions of the framework, of Horovod if it is installed, and of Python."""
    names = {*DISTRIBUTIONS[framework], "horovod"}
    there = {
        one["name"]: one["version"] for one in software_packages.pip_list(found["packages"]) if one["name"] in names
    }
    return {**there, "Python": (found.get("python") or "").split(" ")[-1].strip()}


def _allreduce(found: JsonObject, desired: JsonObject, own: JsonObject) -> list[str]:
    """Return the faults of an allreduce; ``own`` are further fields that each rank must report."""
    failed = _failure(found["run"], "The allreduce over all nodes failed")
    if failed:
        return failed
    count, sentences = len(desired["nodes"]), []
    # The fields that are the same for all ranks.
    rank = {"framework": desired["framework_version"], "size": count, "sum": count * (count + 1) / 2, **own}
    ranks = sums(found["run"])
    for record in ranks:
        there = {**record, "framework": released(record["framework"], desired["framework_version"])}
        sentences += node_settings.misfits(there, rank)
    if desired["nccl"] and count > 1 and not networks(found["run"]):
        sentences.append("NCCL was not used: it reports no network to the other nodes.")
    nodes = sorted(record["node"] for record in ranks)
    if len(set(nodes)) != count:
        sentences.append(f"All {count} nodes must take part; ranks ran on {', '.join(nodes) or 'no node'}.")
    return list(dict.fromkeys(sentences))


def _failure(run: JsonObject, opening: str) -> list[str]:
    """Return a sentence with the end of ``mpirun``'s output, if it failed or did not run."""
    if run.get("rc", 1) == 0:
        return []
    text = (run.get("stderr") or run.get("msg") or "mpirun did not run").strip()
    return [f"{opening}: {text[-LONGEST:]}."]


def _output(run: JsonObject) -> str:
    return run.get("stdout") or ""
