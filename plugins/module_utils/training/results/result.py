"""The result of one training run: its rate, its curve, the check of its transport, and its faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..output.log import Figures
from ..transport import proof
from ..transport.node_transport import slowest
from ..transport.rdma_counters import counters, least_sent

Fields = Mapping[str, Any]
MOST_OF_A_NAME = 120


def result(run: Fields, job: Fields, printed: Figures) -> dict[str, Any]:
    """Return the result of a run in the form that role training stores.

    ``run`` contains the settings and the readings of the run, ``job`` is that of training_info, and ``printed`` has the
    figures in its output.
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
        "images_per_sec": _rate(summaries, printed["total"], curve),
        "seconds_per_epoch": max(_known(summaries, "seconds_per_epoch"), default=None),
        "loss": pace.get("loss"),
        "steps": pace.get("step"),
        "steps_by": pace.get("steps_by") or "",
        "not_finite": pace.get("not_finite") or "",
        "stack": run["stack"],
        "curve": curve.get("points", []),
        "built": run["built"],
        "job": job,
        "records": run["records"],
        "proof": _proof(run, job, printed, summaries),
        "parameters": parameters(summaries),
    }


def parameters(summaries: Iterable[Fields]) -> list[str]:
    """Return the different checksums of the parameters with which the ranks ended."""
    return sorted({str(each["parameters_sha256"]) for each in summaries if each.get("parameters_sha256")})


def faults(
    run_result: Fields, summaries: Iterable[Fields], run_dir: str, *, prove: bool, fail_on_nan: bool, apart: str = ""
) -> list[str]:
    """Return the reasons why a run does not count, in sentences; a run on one node has no transport to check."""
    checksums = parameters(summaries)
    transport, why = run_result["proof"]["transport"], run_result["proof"]["why"]
    reasons = []
    if fail_on_nan and run_result["not_finite"]:
        reasons.append(f"The training job {run_dir} finished, {run_result['not_finite']}.")
    if apart:
        reasons.append(f"The training job {run_dir} finished, but {apart}.")
    if len(checksums) > 1:
        reasons.append(f"The ranks of {run_dir} ended with different parameters: {', '.join(checksums)}.")
    if prove and not run_result["proof"]["ok"] and run_result["nodes"] > 1:
        reasons.append(f"The training job {run_dir} was set to {run_result['transport']} and used {transport}: {why}.")
    return reasons


def summary(run_result: Fields) -> str:
    rate, checked = run_result["images_per_sec"], run_result["proof"]
    pace = _steps_made(run_result) if rate is None else f"{float(rate):.1f} images/s"
    ranks = f"{run_result['gpus']} ranks of {run_result['nodes']} nodes"
    finished = f"finished, {run_result['not_finite']}: " if run_result["not_finite"] else ""
    loss = ", without a loss," if run_result["steps_by"] and run_result["loss"] is None else ""
    return f"{finished}{pace}{loss} on {ranks} by {checked['transport']}: {checked['why']}"


def _steps_made(run_result: Fields) -> str:
    """Return the steps of a program that reports no images, with their rate if the curve contains it."""
    points, steps = run_result["curve"], run_result["steps"]
    if not steps:
        return "no step records"
    made, seconds = (points[-1][key] - points[0][key] if points else 0 for key in ("step", "seconds"))
    source = f" of the {run_result['steps_by']}" if run_result["steps_by"] else ""
    return f"{steps} steps{source}" + (f" at {made / seconds:.1f} steps/s" if seconds > 0 else "")


def unique(summaries: Iterable[Fields]) -> list[Fields]:
    """Return each summary once: nodes that share a folder contain the same files."""
    different: list[Fields] = []
    for each in summaries:
        if each not in different:
            different.append(each)
    return different


def _rate(summaries: Sequence[Fields], total: float | None, curve: Fields) -> float | None:
    """Return the images/s of all ranks: from their summaries, else from a benchmark's output, else from the records."""
    rates = _known(summaries, "images_per_sec")
    if rates:
        return sum(rates)
    return total or curve.get("images_per_sec")


def _network(summaries: Iterable[Fields]) -> str | None:
    """Return the name of the network that the training program reports, with printable characters only."""
    names = ("".join(filter(str.isprintable, str(each["network"]))) for each in summaries if each.get("network"))
    return next((name[:MOST_OF_A_NAME] for name in names if name.strip()), None)


def _known(summaries: Iterable[Fields], key: str) -> list[float]:
    return [float(each[key]) for each in summaries if each.get(key)]


def _proof(run: Fields, job: Fields, printed: Figures, summaries: Sequence[Fields]) -> proof.TransportProof:
    gradients = max([float(run["gradient_bytes"]), *_known(summaries, "gradient_bytes")])
    return proof.judge(
        str(run["transport"]),
        printed,
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
