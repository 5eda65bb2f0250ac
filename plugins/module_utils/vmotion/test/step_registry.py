# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Every step of a vMotion test, in the order in which a test without surprises does them; pure."""

from __future__ import annotations

from .step import Phase, Step, in_order
from .steps import (
    before_move,
    cluster,
    drs_override,
    ending,
    host_change,
    job_progress,
    judge,
    locking,
    moves_plan,
    next_moves,
    observation,
    observer_hook,
    records_watch,
    server_moves,
    tested_job,
    transport_reading,
)

STEPS: tuple[Step, ...] = (
    locking.HOLD,
    tested_job.JOB,
    cluster.CLUSTER,
    moves_plan.PLAN,
    records_watch.WATCH,
    drs_override.OVERRIDE,
    job_progress.WARM,
    transport_reading.LOOK,
    transport_reading.COUNTERS,
    job_progress.MEASURE,
    moves_plan.CANARY,
    moves_plan.CANARY_PLAN,
    cluster.MANAGERS,
    before_move.GUESTS,
    before_move.PREFLIGHT,
    next_moves.BEGIN,
    next_moves.LOOK_UP,
    next_moves.MOVE,
    job_progress.ADVANCE,
    observer_hook.HOOK,
    observation.SAVE,
    observation.ROLL,
    observation.OBSERVE,
    server_moves.OTHERS,
    judge.JUDGE,
    host_change.STOP_RULES,
    host_change.ENTER,
    host_change.APPLY,
    host_change.BOOT,
    host_change.BACK,
    ending.OVER,
    drs_override.RESTORE,
    job_progress.OUTLAST,
    tested_job.FINISH,
    tested_job.AWAIT,
    tested_job.CHECKSUMS,
    records_watch.UNWATCH,
    locking.FREE,
    tested_job.STOP,
    cluster.HOSTS,
    ending.KEEP,
    ending.END,
)


class Registry:
    """Steps by name and by phase, and the kinds of their entries: everything else about a step is in the step."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.steps = steps
        self.by_name = {step.name: step for step in steps}
        self.of_phase = {phase: in_order(steps, phase) for phase in Phase}
        self.kinds = {kind.name: kind for step in steps for kind in step.kinds}


REGISTRY = Registry(STEPS)
