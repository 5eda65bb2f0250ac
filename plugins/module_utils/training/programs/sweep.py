"""Program: measure training with each number of nodes and transport; continue where an earlier command ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...durable.calls import required
from ...durable.program import Program
from ..runs.training_options import Options
from ..runs.training_run import TrainingFailed, TrainingRun, request_of
from .follow import TrainingSite
from .train import train

USABLE = ("running", "finished")
Point = Mapping[str, Any]


def sweep(p: Program, site: TrainingSite, o: Options, run_of: Callable[[Point], TrainingRun]) -> None:
    """Perform the runs of a measurement that have no good result yet; results on the controller are its journal."""
    p.ensure(lambda: require_good_network(site, o))
    plan = p.ensure(lambda: remaining(site, o))
    p.say(plan["summary"])
    for point in plan["left"]:
        run = run_of(point)
        state = p.ensure(site.job_of(run).look)
        if point["again"] or (state.get("job") or {}).get("state") not in USABLE:
            p.once(("forget", run.name), site.job_of(run).forget)
        train(p, site, run)


def remaining(site: TrainingSite, o: Options) -> dict[str, Any]:
    """Return the runs that are left as ``left``, and a sentence about them as ``summary``."""
    measured = {
        "name": o["sweep_name"],
        "nodes": o["nodes"],
        "sizes": [int(size) for size in o["sweep_nodes"]],
        "transports": o["sweep_transports"],
        "repeats": int(o["sweep_repeats"]),
    }
    results = {"path": o["results"], "state": "directory", "mode": "0700"}
    required(site.calls.here("ansible.builtin.file", results))
    return site.calls.runs.remaining(measured=measured, results=o["results"], requested=request_of(o), prove=o["prove"])


def require_good_network(site: TrainingSite, o: Options) -> None:
    """Refuse to measure a network with findings: the scaling would measure them."""
    found = site.calls.runs.network_findings(o["fabric_results"], o["nodes"], o["fabric_recent"])
    if found and not o["fabric_accepted"]:
        raise TrainingFailed(
            f"The network between the nodes has findings, so the scaling would measure them: {' '.join(found)} Correct "
            "them and run the playbook dml.vsphere.fabric_check again, or accept them with "
            "-e training_fabric_accepted=true."
        )
