"""The two ways through a maintenance window: workers move while the job trains, or the job restarts; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.findings import listed
from ...errors import CollectionError, WholeError
from ...hosts.change_hosts import HostChangeOptions
from ...hosts.rollout import HostsAtOnce, hosts_at_once
from ...maintenance import stop_rules
from ...maintenance.cluster_facts import ClusterState
from ..evidence import prediction
from ..evidence.restart_lines import checkpoint_in_words
from . import jobs_beside, workers_off
from .opening import not_applicable, plan_lines, plan_options
from .stopping import why_no_signal
from .trial import Trial

MOVE, RESTART, AUTO = "move", "restart", "auto"
BY_VSAN: HostsAtOnce = {"most": 1, "why": "one host at a time leaves service, because the cluster has vSAN"}
INSTEAD = (
    "To stop the job at a checkpoint and start it again instead of moving its workers, run the playbook hosts with "
    "-e under_training=true -e window_by=restart."
)


@dataclass(frozen=True)
class Way:
    """A way through a window: why it is impossible, the seconds that the job loses (None: unknown), and its lines."""

    by: str
    why_not: str = ""
    lost_s: float | None = None
    lines: Sequence[str] = ()
    planned: Mapping[str, Any] = field(default_factory=dict)

    def in_words(self) -> str:
        """Return what the job loses."""
        if self.why_not:
            return f"by {self.by}: impossible: {self.why_not}"
        return f"by {self.by}: {'unknown' if self.lost_s is None else f'about {self.lost_s / 60:.1f} min'} lost"


def by_moves(trial: Trial, earlier: Sequence[Mapping[str, object]]) -> Way:
    """Return the window in which workers move."""
    settings, window = trial.settings, trial.settings["window"]
    try:
        planned = trial.here("vmotion_plan", **plan_options(settings))
    except CollectionError as error:
        return Way(MOVE, str(error))
    found = jobs_beside.moving(window, {**planned, "places": planned["at"]})
    refusal = not_applicable(settings["cluster"], planned) or jobs_beside.refusal(settings["cluster"], window, found)
    lines = [*plan_lines(planned), *filter(None, [jobs_beside.line(found)])]
    expected = prediction.predicted(window, planned, earlier) if window and not refusal else {}
    return Way(MOVE, refusal, expected.get("stall_s"), lines, {**planned, "prediction": expected})


def by_restart(trial: Trial, earlier: Sequence[Mapping[str, object]], now: float) -> Way:
    """Return the window in which the job restarts."""
    window = trial.settings["window"]
    try:
        trial.facts.at = workers_off.places_of(trial)
        first = workers_off.left_by_moves(trial)
        hosts = trial.facts.waiting_after(first)
        workers = workers_off.concerned(trial, hosts)
        moves = trial.here("vmotion_plan", **plan_options(trial.settings, first, hosts)) if first else {"moves": []}
        found, cluster = trial.restartable().checkpoints(), trial.of_cluster("cluster_info")["cluster"]
    except CollectionError as error:
        return Way(RESTART, str(error))
    why_not = why_no_signal(str(window.get("checkpoint_signal") or ""), found)
    if why_not:
        return Way(RESTART, why_not[0])
    most = expected_at_once(window, cluster)
    down, newest = prediction.down_seconds(window, hosts, most, earlier), found["newest"]
    age = max(0.0, now - newest["since"]) if newest else 0.0
    interval = f", usually one each {found['interval']:.0f} s" if found["interval"] else ""
    known = f"{checkpoint_in_words(newest)}, complete for {age:.0f} s" if newest else found["why"]
    seconds = float(window.get("checkpoint_wait") or 0)
    lines = [
        *([f"by restart: {listed(first)} before, from which other jobs move"] if first else []),
        *plan_lines(moves),
        f"by restart: {known}{interval}: stopped now, the job would repeat {age / 60:.1f} min",
        f"by restart: the window stops the job right after its next checkpoint, within {seconds:.0f} s",
        f"by restart: shut down {listed([worker['name'] for worker in workers]) or 'no worker'}; hosts at once: {most}",
        f"by restart: the job stands still for about {down / 60:.0f} min",
    ]
    return Way(RESTART, "", down, lines)


def expected_at_once(window: Mapping[str, Any], cluster: ClusterState) -> int:
    """Return how many hosts leave service together when no worker runs any more."""
    if cluster["vsan"]["enabled"]:
        return 1
    most, _why = stop_rules.allowed({**cluster, "gpu_slots": []})
    return max(1, min(int(window.get("max_out_of_service") or 1), most))


def at_most(trial: Trial, how: HostChangeOptions) -> HostsAtOnce:
    """Return how many hosts may leave service together now that the workers are off, and why not more."""
    if (trial.facts.cluster_before or {})["vsan"]["enabled"]:
        return BY_VSAN
    return hosts_at_once(trial.site, trial.facts.waiting_hosts, how)


def chosen(ways: Sequence[Way]) -> dict[str, str]:
    """Return the possible way on which the job loses less, and why; moves if that is not known."""
    possible = [way for way in ways if not way.why_not]
    why = "; ".join(way.in_words() for way in ways)
    if not possible:
        raise WholeError(f"The window is possible neither way: {why}")
    best = min(possible, key=lambda way: way.lost_s or 0.0)
    return {"by": best.by, "why": f"window_by=auto chooses {best.by}: {why}"}


def choose(trial: Trial, now: float) -> dict[str, str]:
    """Read both ways, and return the one that costs the job less."""
    earlier = trial.site.earlier_changes()
    return chosen([by_moves(trial, earlier), by_restart(trial, earlier, now)])
