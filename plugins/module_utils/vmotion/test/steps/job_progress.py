# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: wait until every rank of the job has completed further training steps; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....kubernetes.state import ranks_of_pods
from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step
from ..trial_state import Entry, TrialState

# A job reports its first step within the first of these times, or soon if it has run for longer.
FIRST_STEP_SECONDS, SOON_SECONDS = 600.0, 30.0


def _wait(controller: Controller, steps: int, since: float, timeout: float, may_fail: bool = False) -> ModuleCall:
    options = {"records": controller.records, "steps": steps, "since": since, "timeout": timeout}
    return ModuleCall("training_wait", options, may_fail=may_fail)


def _warm(state: TrialState, controller: Controller) -> ModuleCall:
    """Return the call that waits for the first steps; a job that has run for long without a step has none to report."""
    call = _wait(controller, max(state.settings["warmup_steps"], 1), 0.0, state.settings["warm_timeout"])
    age = controller.now - ((state.job or {}).get("started") or controller.now)
    return replace(call, options={**call.options, "first": max(FIRST_STEP_SECONDS - age, SOON_SECONDS)})


def _warm_entry(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Return the ranks by worker. On Kubernetes, a rank reports its pod, and its worker is the node of the pod."""
    ranks = {key: result[key] for key in ("ranks", "hosts", "step")}
    pods_of_job = (state.job or {}).get("pods")
    if pods_of_job is None:
        return [("warm", ranks)]
    names = state.settings["kubernetes"].get("names") or {}
    pods = ranks_of_pods(result["hosts"], pods_of_job, names)
    placed = {rank for pod in pods.values() for rank in pod["ranks"]}
    # Ranks outside the reported pods may run on any worker: they are kept, so that no worker counts as idle.
    elsewhere = {host: list(those) for host, those in result["hosts"].items() if not placed.issuperset(those)}
    return [("warm", {**ranks, "hosts": {**elsewhere, **_ranks_by_worker(pods)}, "pods": pods})]


def _ranks_by_worker(pods: Mapping[str, Any]) -> dict[str, list[int]]:
    workers: dict[str, list[int]] = {}
    for pod in pods.values():
        workers[pod["worker"]] = sorted([*workers.get(pod["worker"], []), *pod["ranks"]])
    return workers


def in_rank_order(warm: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the pods of an entry ``warm`` in the order of their ranks; none if the job has no pods."""
    return sorted((warm.get("pods") or {}).items(), key=lambda pod: list(pod[1]["ranks"]))


def rank_list(ranks: Sequence[int]) -> str:
    """Return ranks in words."""
    return f"rank{'' if len(ranks) == 1 else 's'} {', '.join(map(str, ranks))}"


def _is_warm(state: TrialState, entry: Entry) -> None:
    state.warm = dict(entry)


def _warm_messages(entry: Entry, _state: TrialState) -> list[str]:
    return [f"{rank_list(pod['ranks'])} in pod {name} on {pod['worker']}" for name, pod in in_rank_order(entry)]


WARM = Step(
    name="warm",
    title="waits until the job is warm",
    due=(Due(Phase.OPENING, lambda state: state.warm is None, after=("override",)),),
    action=_warm,
    entries=_warm_entry,
    kinds=(EntryKind("warm", _is_warm, _warm_messages),),
)


def _measure(state: TrialState, controller: Controller) -> ModuleCall:
    return _wait(controller, state.settings["steps"], state.last_at, state.settings["warm_timeout"])


def _is_measured(state: TrialState, _entry: Entry) -> None:
    state.is_measured = True


MEASURE = Step(
    name="measure",
    title="measures the job before the first move",
    due=(Due(Phase.OPENING, lambda state: bool(state.looks) and not state.is_measured, after=("look",)),),
    action=_measure,
    kinds=(EntryKind("measure", _is_measured),),
)


def _resumed(state: TrialState, controller: Controller, since: float) -> ModuleCall:
    """Return the call that waits for the deadline of the verdict; a job that does not resume is an observation."""
    return _wait(controller, state.settings["steps"], since, state.resume_deadline_s, may_fail=True)


def _advance(state: TrialState, controller: Controller) -> ModuleCall:
    return _resumed(state, controller, max(move.get("completed") or 0.0 for move in state.last_wave))


def _advance_entry(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    return [("advance", _outcome(result))]


def _needs_to_advance(state: TrialState) -> bool:
    return state.is_owed and not state.outlives_job and "advance" not in state.lately


def _outcome(result: Result) -> dict[str, Any]:
    return {"ok": not result.get("failed"), "said": str(result.get("msg") or "")}


ADVANCE = Step(
    name="advance",
    title="waits until every rank has completed further steps",
    due=(Due(Phase.MOVE, _needs_to_advance, after=("look",)),),
    action=_advance,
    entries=_advance_entry,
    kinds=(EntryKind("advance"),),
)


def _completed_by_others(state: TrialState) -> list[float]:
    return [move["completed"] for move in state.others if move.get("completed")]


def _outlast(state: TrialState, controller: Controller) -> ModuleCall:
    return _resumed(state, controller, max(_completed_by_others(state)))


def _outlast_entry(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    return [("outlast", _outcome(result))]


def _was_moved_by_others(state: TrialState) -> bool:
    return state.may_outlast and bool(_completed_by_others(state))


OUTLAST = Step(
    name="outlast",
    title="waits until every rank has completed further steps after the moves of others",
    due=(Due(Phase.ENDING, _was_moved_by_others, after=("restore",)),),
    action=_outlast,
    entries=_outlast_entry,
    kinds=(EntryKind("outlast"),),
)
