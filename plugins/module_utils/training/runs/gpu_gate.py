"""Whether the GPUs of a run's nodes are healthy before it starts; a spare node takes the place of a sick one; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.findings import WARN, FindingRecord, stops
from ...durable.calls import on_all
from ...errors import Refused
from ..running import busy
from .any_job import INFO
from .controller_site import TrainingCalls
from .training_run import KUBERNETES, SLURM, Node, TrainingRun

STOP, IGNORE = "stop", "ignore"
Findings = Sequence[FindingRecord]


def replacements(calls: TrainingCalls, run: TrainingRun, spares: Mapping[str, Node]) -> dict[str, str]:
    """Return the spare that takes the place of each sick node; raise Refused if a sick node has none.

    A run that has started already uses its GPUs and is only followed.
    """
    if run.o["gpu_health"] == IGNORE or _is_running(calls, run):
        return {}
    sick = _stops(_shown(calls, run, read(calls, run, run.nodes)))
    if not sick or run.o["gpu_health"] != STOP:
        return {}
    healthy = _healthy(calls, run, spares) if len(spares) >= len(sick) else []
    if len(healthy) < len(sick):
        raise _refused(run, sick, len(spares))
    taken = dict(zip(sick, healthy))
    for node, spare in taken.items():
        calls.show(f"{spare} takes the place of {where(run, node)}: {_texts(sick[node])}")
    return taken


def require_healthy(calls: TrainingCalls, run: TrainingRun) -> None:
    """Raise Refused if a GPU of the run's nodes is sick, as before another attempt, which has no spare nodes."""
    if run.o["gpu_health"] == STOP:
        sick = _stops(_shown(calls, run, read(calls, run, run.nodes)))
        if sick:
            raise _refused(run, sick, 0)


def read(calls: TrainingCalls, run: TrainingRun, nodes: Mapping[str, Node]) -> list[FindingRecord]:
    return list(read_nodes(calls, run, nodes)["findings"])


def read_nodes(calls: TrainingCalls, run: TrainingRun, nodes: Mapping[str, Node]) -> dict[str, Any]:
    """Return the findings on the GPUs of nodes, and the state of each node."""
    o = run.o
    # A pod and an image have their own interpreter and their own NCCL.
    is_inside = o["backend"] == KUBERNETES or bool(o["image"])
    return calls.nodes.read_gpus(
        [{"name": name, "reach": node["reach"]} for name, node in nodes.items()],
        python="" if is_inside else o["python"],
        # In Slurm, other jobs use the GPUs until this one starts.
        idle=not o["share_nodes"] and o["backend"] != SLURM,
        xid_seconds=float(o["gpu_xid_seconds"]),
        gdr=o["gdr"] if o["nccl"] and o["transport"] == "rdma" else "",
    )


def where(run: TrainingRun, node: str) -> str:
    """Return a node with its ranks and its host."""
    number, each = list(run.nodes).index(node), int(run.o["ranks_per_node"])
    ranks = f"rank {number}" if each == 1 else f"ranks {number * each} to {number * each + each - 1}"
    host = (run.o["esxi_hosts"] or {}).get(node)
    return f"{node} ({ranks}{f', on {host}' if host else ''})"


def _is_running(calls: TrainingCalls, run: TrainingRun) -> bool:
    if not run.o["name"]:
        return False
    # Without other options, a small program answers.
    found = on_all(calls, run.nodes, INFO, {})
    return any(busy.selected(result["jobs"], run.name, "") for result in found.values())


def _healthy(calls: TrainingCalls, run: TrainingRun, spares: Mapping[str, Node]) -> list[str]:
    sick = _stops(read(calls, run, spares))
    return [name for name in spares if name not in sick]


def _shown(calls: TrainingCalls, run: TrainingRun, findings: Findings) -> Findings:
    for finding in findings:
        is_shown = finding["severity"] == WARN or (finding["severity"] == STOP and run.o["gpu_health"] != STOP)
        if is_shown:
            calls.show(str(finding["text"]))
    return findings


def _stops(findings: Findings) -> dict[str, list[FindingRecord]]:
    """Return the findings that stop a run, by node."""
    sick: dict[str, list[FindingRecord]] = {}
    for finding in stops(findings):
        sick.setdefault(str(finding["object"]), []).append(finding)
    return sick


def _texts(findings: Findings) -> str:
    return " ".join(str(finding["text"]).partition(": ")[2] for finding in findings)


def _refused(run: TrainingRun, sick: Mapping[str, Findings], spares: int) -> Refused:
    each = " ".join(f"{where(run, node)}: {_texts(findings)}" for node, findings in sick.items())
    spare = f"too few of the {spares} spare nodes are healthy" if spares else "no other node of the play is spare"
    remedy = "follow these sentences, let training_nodes leave out a node, or set training_gpu_health=warn"
    return Refused(f"the training run {run.name}", "start on its GPUs", f"{each} ({spare})", remedy)
