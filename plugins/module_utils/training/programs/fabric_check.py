"""Program: measure the bandwidth between all pairs of nodes in rounds of disjoint pairs, and judge it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ...durable.calls import Result, required
from ...durable.program import Program
from ...errors import Refused
from ...guests import gpudirect
from ..pairs import pair_rounds
from ..runs import any_job, gpu_gate, node_setup, rank_words, run_files
from ..runs.training_options import Options
from ..runs.training_run import MPI, Prepared, TrainingFailed, TrainingRun
from .follow import TrainingSite

PROGRAM = "dml_pairs.py"
# Seconds for the start of mpirun, in addition to the time of the measurements.
START_SECONDS = 60.0


def compared(p: Program, site: TrainingSite, run_of: Callable[[str], TrainingRun]) -> Result:
    """Measure, or measure with and without GPUDirect RDMA if the nodes support it; ``run_of`` gets its use."""
    run = run_of("")
    level = p.ensure(lambda: level_to_compare(site, run))
    if not level:
        return fabric_check(p, site, run)
    without = fabric_check(p, site, run_of(gpudirect.OFF))
    with_it = fabric_check(p, site, run_of(level))
    sentence = gpudirect.difference(_usual(with_it), _usual(without), level)
    p.say(sentence)
    error = " ".join(text for text in (without["error"], with_it["error"]) if text)
    return {**with_it, "lines": [*with_it["lines"], sentence], "error": error}


def level_to_compare(site: TrainingSite, run: TrainingRun) -> str:
    """Return the level of GPUDirect RDMA for a second measurement; empty if a node does not support it."""
    o = run.o
    if not o["nccl"] or o["transport"] != "rdma" or o["gdr"] == gpudirect.OFF:
        return ""
    prepared = node_setup.prepare(site.calls, run, site.library)
    drivers = {hca.get("driver") for hcas in prepared.hcas.values() for hca in hcas}
    if not drivers or not drivers <= set(gpudirect.CAPABLE):
        return ""
    nodes = gpu_gate.read_nodes(site.calls, run, run.nodes)["nodes"]
    is_supported = all(node.get("gpudirect") for node in nodes.values())
    return (gpudirect.LEVELS[-1] if o["gdr"] == gpudirect.AUTO else str(o["gdr"])) if is_supported else ""


def _usual(measured: Mapping[str, Any]) -> float | None:
    usual = (measured.get("result") or {}).get("usual_gbits")
    return float(usual) if usual else None


def fabric_check(p: Program, site: TrainingSite, run: TrainingRun) -> Result:
    """Start the measurement, wait for its end, stop what is left of it, and return the written result."""
    prepared = p.ensure(lambda: node_setup.prepare(site.calls, run, site.library))
    pairs = pairs_of(run, prepared)
    p.say(planned(run, pairs))
    options = job_options(run, prepared, pairs)
    with p.held(
        f"the measurement {run.name}",
        lambda: required(site.calls.on(run.launcher, any_job.JOB, options)),
        site.job_of(run).stop,
    ):
        measured = _wait_for_end(p, site, run, pairs)
        # A measurement that died in its first round has no file.
        records = p.ensure(lambda: run_files.text_on(site.calls, run.launcher, f"{run.dir}/pairs.jsonl"))
    return p.ensure(lambda: _written(site, run, pairs, records, measured))


def require_pairs(o: Options) -> None:
    """Refuse a measurement without a pair, and one that mpirun does not start."""
    if len(o["nodes"]) < 2 or o["backend"] != MPI:
        cause = f"training_nodes is {', '.join(o['nodes'])} and the backend is {o['backend']}"
        remedy = "choose two or more nodes and the backend mpi"
        raise Refused("the workers", "measure the bandwidth between them", cause, remedy)


def pairs_of(run: TrainingRun, prepared: Prepared) -> pair_rounds.PairPlan:
    """Return the rounds in which all pairs of nodes are measured."""
    return pair_rounds.plan(run.ranks_of_nodes(prepared), run.o["transport"], run.o["network"])


def planned(run: TrainingRun, pairs: pair_rounds.PairPlan) -> str:
    nodes, library = len(run.nodes), "NCCL" if run.o["nccl"] else "MPI"
    return (
        f"{run.name}: {nodes * (nodes - 1) // 2} pairs of {nodes} nodes in {pairs['count']} rounds by "
        f"{run.o['transport']}, with {library}"
    )


def job_options(run: TrainingRun, prepared: Prepared, pairs: pair_rounds.PairPlan) -> dict[str, object]:
    o, nodes = run.o, run.ranks_of_nodes(prepared)
    settings, script = rank_words.transport_settings(o, nodes), f"{o['dir']}/{PROGRAM}"
    measure = {
        "rounds": pairs["rounds"],
        "nodes": list(run.nodes),
        "devices": pairs["devices"],
        "library": "libmpi.so.40" if o["image"] else o["fabric_library"],
        "seconds": o["fabric_seconds"],
        "stall": o["fabric_stall"],
        "repeats": o["fabric_repeats"],
        "bytes": o["fabric_bytes"],
        "sysfs": o["sysfs"],
        "nccl": o["nccl"],
    }
    python = o["python"] if o["nccl"] or o["image"] else o["remote_python"]
    return {
        "run_dir": run.dir,
        "command": [*rank_words.lock_words(o), python, script, json.dumps(measure)],
        "hosts": [{"name": node["name"], "slots": 1} for node in nodes],
        "environment": {**settings["environment"], "PYTHONPATH": o["dir"], "DML_RUN_BY": run.requested_by},
        "secret_environment": o["environment"],
        "script": script,
        "mpirun_arguments": [*settings["mpirun_arguments"], *o["mpirun_arguments"]],
        **any_job.launch_options(o),
    }


def _wait_for_end(p: Program, site: TrainingSite, run: TrainingRun, pairs: pair_rounds.PairPlan) -> dict[str, object]:
    """Return the job when it has ended; one that does not end in time is stopped."""
    o, answers = run.o, list[Result]()
    each = int(o["fabric_repeats"]) * 2 * float(o["fabric_seconds"]) + float(o["fabric_stall"])
    seconds = START_SECONDS + pairs["count"] * each

    def has_ended() -> bool:
        answers.append(site.job_of(run).look())
        return str((answers[-1].get("job") or {}).get("state", "running")) != "running"

    if not p.wait(has_ended, seconds):
        reason = str(answers[-1].get("msg") or "it is running").strip()
        raise TrainingFailed(
            f"The measurement {run.dir} on {run.launcher} did not end in {seconds:.0f} s and is stopped ({reason}). If "
            "its output.log is empty, mpirun did not reach all nodes: look for a firewall or different MTUs between "
            "them."
        )
    return dict(answers[-1]["job"])


def _written(
    site: TrainingSite, run: TrainingRun, pairs: pair_rounds.PairPlan, records: str, job: Mapping[str, object]
) -> Result:
    """Write the result, show it, and return it."""
    o = run.o
    result = site.calls.files.write_pairs(
        o["fabric_results"],
        records,
        job,
        name=run.name,
        nodes=list(run.nodes),
        transport=o["transport"],
        nccl=o["nccl"],
        devices=dict(zip(run.nodes, pairs["devices"])),
        least=o["fabric_least"],
        expected=o["fabric_expected"],
    )
    for line in result["lines"]:
        site.calls.show(str(line))
    return result
