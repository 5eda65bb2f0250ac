"""The last attempt of a job.

The operator starts another launcher after a failure, and the pods, events and kills of the earlier one remain. Those
after the end of the last one remain too: the pods of a job that has ended may be evicted like all others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .job_kinds import LAUNCHER
from .object_fields import conditions, seconds
from .seen import Event, JobSnapshot, Pod

ENDED = ("Succeeded", "Failed")


def ended_launchers(pods: Iterable[Pod]) -> list[Pod]:
    """Return the launchers that have ended, the latest last; one that was evicted may have no exit code."""
    ended = [pod for pod in pods if pod.is_launcher and (pod.exit_code is not None or pod.phase in ENDED)]
    return sorted(ended, key=lambda pod: pod.ended or pod.started or pod.made or 0.0)


def last_attempt(snapshot: JobSnapshot) -> JobSnapshot:
    """Return the snapshot with the launchers, events, evictions and kills of the attempt that ended last."""
    launchers = ended_launchers(snapshot.pods)
    earlier = launchers[:-1]
    since = _begin(launchers[-1]) if launchers else None
    failed = seconds(conditions(snapshot.job).get("Failed", {}).get("lastTransitionTime"))
    until = launchers[-1].ended if launchers else failed
    known = {pod.name for pod in snapshot.pods}

    def is_in_attempt(event: Event) -> bool:
        # A launcher that was deleted is later than all that remain.
        is_of_deleted = event.name.startswith(f"{snapshot.name}-{LAUNCHER}") and event.name not in known
        return _is_between(event.at, since, failed if is_of_deleted else until)

    events = [event for event in snapshot.events if is_in_attempt(event)]
    pods = [_between(pod, since, until) for pod in snapshot.pods if pod not in earlier]
    return replace(snapshot, pods=pods, events=events)


def _begin(launcher: Pod) -> float | None:
    """Return the start of a launcher's last attempt: that of its pod, or the last restart of its container."""
    if launcher.restarts or launcher.made is None:
        return launcher.started
    return launcher.made


def _between(pod: Pod, since: float | None, until: float | None) -> Pod:
    """Return a pod without a kill of another attempt, which the kubelet still reports, and without a late eviction."""
    is_killed = pod.is_out_of_memory and _is_between(pod.killed_at, since, until)
    is_late = until is not None and pod.disrupted is not None and pod.disrupted > until
    return replace(pod, is_out_of_memory=is_killed, reason="" if is_late else pod.reason)


def _is_between(at: float | None, since: float | None, until: float | None) -> bool:
    # The times of the API are in full seconds, and a restart in place may follow within one.
    is_before = at is not None and since is not None and at <= since
    return not (is_before or (at is not None and until is not None and at > until))
