# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The program of a maintenance window: change hosts one after another while a job trains, and judge the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ...durable.program import Program
from ...hosts.change_hosts import HostChangeOptions, change_hosts, check_stop_rules
from ..trial.judgement import judge, review
from ..trial.opening import planned
from ..trial.trial import Trial
from ..trial.wave_of_moves import start_round, wave
from .test import around_job

# The options of a window that are those of a change; the hosts are not.
NAMES = {field.name for field in fields(HostChangeOptions)}


def window(p: Program, trial: Trial) -> str:
    """Return why the window failed; empty if every host was changed and the job is continuous.

    A breach or an error ends the window before the next host. A host whose change failed keeps its state.
    """
    return around_job(p, trial, change_all)


def change_all(p: Program, trial: Trial) -> None:
    """Change each host. The others are planned again after each: then the workers are elsewhere."""
    facts = trial.facts
    while facts.waiting_hosts and not facts.stopped:
        plan = planned(p, trial, ("plan", facts.round + 1), facts.waiting_hosts)
        empty_and_change(p, trial, plan, plan["stages"][0]["host"])


def empty_and_change(p: Program, trial: Trial, plan: Mapping[str, Any], host: str) -> None:
    """Move the workers of a host away, change it, and judge the job: a breach ends the window before the next host."""
    facts, options = trial.facts, options_of(trial)
    start_round(p, trial, plan, plan["stages"][0]["moves"])
    while facts.left and not facts.stopped:
        p.say("reads the stop rules of the cluster")
        p.once(("stop rules", host, len(facts.moves)), lambda: check_stop_rules(trial.site, [host], options))
        wave(p, trial)
    review(p, trial, f"review before {host}")
    if not facts.stopped:
        facts.host_changes += change_hosts(p, trial.site, [host], options)
        judge(p, trial)


def options_of(trial: Trial) -> HostChangeOptions:
    """Return the way in which hosts are changed."""
    window_options = {name: value for name, value in trial.settings["window"].items() if name in NAMES}
    accepted = trial.settings["window"].get("accepted") or []
    return HostChangeOptions(cluster=trial.facts.cluster, accepted_stops=accepted, **window_options)
