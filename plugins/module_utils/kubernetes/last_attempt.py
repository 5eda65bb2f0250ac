# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The last attempt of a job.

The operator starts another launcher after a failure, and the pods, events and kills of the earlier one remain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .seen import JobSnapshot, Pod

ENDED = ("Succeeded", "Failed")


def ended_launchers(pods: Iterable[Pod]) -> list[Pod]:
    """Return the launchers that have ended, the latest last; one that was evicted may have no exit code."""
    ended = [pod for pod in pods if pod.is_launcher and (pod.exit_code is not None or pod.phase in ENDED)]
    return sorted(ended, key=lambda pod: pod.ended or pod.started or pod.made or 0.0)


def last_attempt(snapshot: JobSnapshot) -> JobSnapshot:
    """Return the snapshot without launchers, events and kills from before the attempt that ended last."""
    launchers = ended_launchers(snapshot.pods)
    if not launchers:
        return snapshot
    since, earlier = _begin(launchers[-1]), launchers[:-1]
    return replace(
        snapshot,
        pods=[_since(pod, since) for pod in snapshot.pods if pod not in earlier],
        events=[event for event in snapshot.events if not _is_before(event.at, since)],
    )


def _begin(launcher: Pod) -> float | None:
    """Return the start of a launcher's last attempt: that of its pod, or the last restart of its container."""
    if launcher.restarts or launcher.made is None:
        return launcher.started
    return launcher.made


def _since(pod: Pod, since: float | None) -> Pod:
    """Return a pod without a kill of an earlier attempt, which the kubelet still reports after a restart in place."""
    return replace(pod, is_out_of_memory=False) if _is_before(pod.killed_at, since) else pod


def _is_before(at: float | None, since: float | None) -> bool:
    # The times of the API are in full seconds, and a restart in place may follow within one.
    return at is not None and since is not None and at <= since
