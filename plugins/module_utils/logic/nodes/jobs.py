# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The proofs of OpenMPI and Horovod: a run with one rank on each node, and what is wrong with its output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import packages, settings, stun

LONGEST = 800  # of the output of mpirun, its end: there the reason is
LIBRARY = re.compile(r"(?<=Open MPI v)[^ ,]+")
PARAMETER = re.compile(r":param:([a-z0-9_]+):value:(.*)$", re.MULTILINE)
NUMBER = re.compile(r"\d+[.][\d.]+[a-z0-9]*")
NETWORK = re.compile(r"NCCL INFO .*via (NET/[A-Za-z]+)")
# The names of the frameworks in the package index.
DISTRIBUTIONS = {"tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"), "pytorch": ("torch",)}


def records(output: str, word: str) -> list[dict[str, Any]]:
    """The JSON that ranks wrote behind a word; lines of several ranks may be joined."""
    return [json.loads(text) for text in re.findall(word + r" (\{[^{}]*\})", output)]


def openmpi_facts(found: Mapping[str, Any]) -> dict[str, Any]:
    """The versions to which ranks are linked, and the version that ``mpirun`` reports."""
    linked = [LIBRARY.search(rank["library"]) for rank in records(_output(found["run"]), "hello")]
    reported = NUMBER.search(found.get("version") or "")
    return {
        "version": next((one.group() for one in linked if one), ""),
        "linked": list(dict.fromkeys(one.group() if one else "" for one in linked)),
        "reported": reported.group() if reported else "",
    }


def openmpi_misfits(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """A sentence for each timer that is too short, and for what is wrong with the run over all nodes."""
    mca = dict(PARAMETER.findall(found.get("timers") or ""))
    return stun.risks({"mca": mca}, float(wanted["stun_seconds"])) + _openmpi_run(found, wanted)


def _openmpi_run(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    failed = _failure(found["run"], "The run of mpirun over all nodes failed")
    if failed:
        return failed
    ranks, count = records(_output(found["run"]), "hello"), len(wanted["nodes"])
    linked, sentences = openmpi_facts(found)["linked"], []
    if linked != [str(wanted["version"])]:
        names = " and ".join(linked) or "nothing"
        sentences.append(f"The ranks are linked to OpenMPI {names}, not {wanted['version']}.")
    sums = {rank["sum"] for rank in ranks}
    nodes = sorted(rank["node"] for rank in ranks)
    if len(ranks) != count or len(set(nodes)) != count or sums != {count * (count - 1) // 2}:
        there = ", ".join(nodes) or "no node"
        sentences.append(f"Each of {count} nodes must run a rank that reaches all others; ranks ran on {there}.")
    return sentences


def horovod_facts(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The sum over all nodes, the versions that took part, and the network that NCCL used."""
    sums = records(_output(found["run"]), "allreduce")
    names = {*DISTRIBUTIONS[wanted["framework"]], "horovod"}
    listed = packages.listed(found["packages"])
    text = _output(found["run"]) + (found["run"].get("stderr") or "")
    return {
        "framework_version": sums[0]["framework"] if sums else "",
        "python": sums[0]["python"] if sums else "",
        "sum": sums[0]["sum"] if sums else None,
        "nccl": sorted(set(NETWORK.findall(text))),
        "versions": {
            **{one["name"]: one["version"] for one in listed if one["name"] in names},
            "Python": (found.get("python") or "").split(" ")[-1].strip(),
        },
    }


def horovod_misfits(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """A sentence for each package of another version, and for what is wrong with the allreduce over all nodes."""
    own = {"name": "horovod", "version": wanted["version"]}
    there = packages.listed(found["packages"])
    return packages.python_misfits(there, [*wanted["packages"], own]) + _horovod_run(found, wanted)


def _horovod_run(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    failed = _failure(found["run"], "The allreduce over all nodes failed")
    if failed:
        return failed
    sums, count, sentences = records(_output(found["run"]), "allreduce"), len(wanted["nodes"]), []
    for one in sums:
        sentences += settings.misfits(one, _horovod_rank(wanted, count))
    if wanted["nccl"] and count > 1 and not horovod_facts(found, wanted)["nccl"]:
        sentences.append("NCCL was not used: it reports no network to the other nodes.")
    nodes = sorted(one["node"] for one in sums)
    if len(set(nodes)) != count:
        sentences.append(f"All {count} nodes must take part; ranks ran on {', '.join(nodes) or 'no node'}.")
    return _once(sentences)


def _horovod_rank(wanted: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The line that every rank must write, as far as it is the same for all ranks."""
    return {
        "horovod": wanted["version"],
        "framework": wanted["framework_version"],
        "size": count,
        "sum": count * (count + 1) / 2,
        "mpi": True,
    }


def _failure(run: Mapping[str, Any], opening: str) -> list[str]:
    """The end of what ``mpirun`` wrote, where it failed or did not run."""
    if run.get("rc", 1) == 0:
        return []
    text = (run.get("stderr") or run.get("msg") or "mpirun did not run").strip()
    return [f"{opening}: {text[-LONGEST:]}."]


def _output(run: Mapping[str, Any]) -> str:
    return run.get("stdout") or ""


def _once(sentences: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(sentences))
