# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The result of one training run: its rate, its curve, the proof of its transport, and its faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .log import parse
from .transport import proof
from .transport.node_transport import slowest
from .transport.rdma_counters import counters, least_sent

Facts = Mapping[str, Any]
MOST_OF_A_NAME = 120


def result(run: Facts, job: Facts, output: str) -> dict[str, Any]:
    """The result of a run, as role training keeps it.

    ``run`` has the options of training_result_info, ``job`` is that of training_job_info, ``output`` is what the job
    wrote.
    """
    summaries, pace, curve = unique(run["summaries"]), run["pace"], run["curve"]
    nodes = len(run["nodes"])
    return {
        "name": run["name"],
        "asked": run["asked"],
        "network": _network(summaries),
        "nodes": nodes,
        "gpus": nodes * int(run["ranks_per_node"]),
        "transport": run["transport"],
        **slowest(run["cards"]),
        "images_per_sec": _rate(summaries, output, curve),
        "seconds_per_epoch": max(_known(summaries, "seconds_per_epoch"), default=None),
        "loss": pace.get("loss"),
        "steps": pace.get("step"),
        "stack": run["stack"],
        "curve": curve.get("points", []),
        "built": run["built"],
        "job": job,
        "records": run["records"],
        "proof": _proof(run, job, output, summaries),
    }


def faults(found: Facts, summaries: Iterable[Facts], run_dir: str, prove: bool) -> list[str]:
    """The reasons why a run does not count, in sentences; one node has no transport to prove."""
    checksums = sorted({str(one["parameters_sha256"]) for one in summaries if one.get("parameters_sha256")})
    transport, why = found["proof"]["transport"], found["proof"]["why"]
    said = []
    if len(checksums) > 1:
        said.append(f"The ranks of {run_dir} ended with different parameters: {', '.join(checksums)}.")
    if prove and not found["proof"]["ok"] and found["nodes"] > 1:
        said.append(f"The training job {run_dir} was set to {found['transport']} and used {transport}: {why}.")
    return said


def summary(found: Facts) -> str:
    """The result in one sentence."""
    rate = found["images_per_sec"]
    pace = "an unknown rate" if rate is None else f"{float(rate):.1f} images/s"
    proven = found["proof"]
    return f"{pace} on {found['gpus']} ranks of {found['nodes']} nodes by {proven['transport']}: {proven['why']}"


def unique(summaries: Iterable[Facts]) -> list[Facts]:
    """Each summary once: nodes that share a folder all find the same files in it."""
    found: list[Facts] = []
    for one in summaries:
        if one not in found:
            found.append(one)
    return found


def _rate(summaries: Sequence[Facts], output: str, curve: Facts) -> float | None:
    """Images per second of all ranks: by their summaries, else as a benchmark printed it, else by the records."""
    rates = _known(summaries, "images_per_sec")
    if rates:
        return sum(rates)
    # Every rank prints the same total.
    total: float | None = max(parse(output).totals.values(), default=None)
    return total or curve.get("images_per_sec")


def _network(summaries: Iterable[Facts]) -> str | None:
    """What a program of its own says that it trains: a guest's words, of which a terminal gets what can be printed."""
    said = ("".join(filter(str.isprintable, str(one["network"]))) for one in summaries if one.get("network"))
    return next((text[:MOST_OF_A_NAME] for text in said if text.strip()), None)


def _known(summaries: Iterable[Facts], key: str) -> list[float]:
    return [float(one[key]) for one in summaries if one.get(key)]


def _proof(run: Facts, job: Facts, output: str, summaries: Sequence[Facts]) -> dict[str, Any]:
    gradients = max([float(run["gradient_bytes"]), *_known(summaries, "gradient_bytes")])
    return proof.judge(
        str(run["transport"]),
        output,
        esxi_hosts=run["esxi_hosts"],
        counters=counters(
            {**dict.fromkeys(run["nodes"], ()), **run["rdma_before"]},
            run["rdma_after"],
            esxi_hosts=run["esxi_hosts"],
            esxi_before=run["esxi_before"],
            esxi_after=run["esxi_after"],
            neighbours=run["neighbours"],
        ),
        sent_bytes=least_sent(gradients, int(run["pace"].get("step") or 0), len(run["nodes"])),
        mpi_arguments=job.get("mpirun_command") or (),
    )
