"""The metrics of a vMotion test, a maintenance window or an observation, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from ...core import prometheus
from ...core.prometheus import Gauge
from ...training.output.live_state import move_gauges
from ..evidence.facts import Facts
from .job_moves import moves_of

PREFIX = "dml_vmotion_test"
VERDICTS = ("continuous", "inconclusive", "broken")
CHANGING, WAITING, CHANGED, SETTLED = "changing", "waiting", "changed", "settled"


def metrics(facts: Facts, test: str, now: float, is_running: bool) -> str:
    """Return the metrics of the test with a name; a value that is unknown is left out."""
    return prometheus.text(_gauges(facts, test, now, is_running))


def _gauges(facts: Facts, test: str, now: float, is_running: bool) -> Iterator[Gauge]:
    kind = "observation" if facts.settings.get("observe") else "window" if facts.settings.get("window") else "test"
    labels, judged = {"cluster": facts.cluster, "kind": kind, "test": test}, facts.judged or {}
    verdict = judged.get("verdict")
    known = sorted({*VERDICTS, verdict}) if verdict else []
    verdicts = [({**labels, "verdict": each}, int(each == verdict)) for each in known]
    breaches = len(judged["breaches"]) if judged else None
    yield Gauge(f"{PREFIX}_running", "Whether a controller carries the test out.", [(labels, int(is_running))])
    yield Gauge(f"{PREFIX}_read_timestamp_seconds", "When the values of the test were read.", [(labels, now)])
    yield Gauge(f"{PREFIX}_verdict", "Whether this is the verdict so far.", verdicts)
    yield Gauge(f"{PREFIX}_breaches", "The breaches of the job's continuity so far.", [(labels, breaches)])
    longest = judged.get("longest_gap_s")
    yield Gauge(f"{PREFIX}_longest_gap_seconds", "The longest time between two steps so far.", [(labels, longest)])
    moves = [move._replace(until=now) if move.is_running else move for move in moves_of(facts)]
    yield from move_gauges(PREFIX, labels, moves)
    yield _host_gauge(facts, labels)


def _host_gauge(facts: Facts, labels: dict[str, str]) -> Gauge:
    """Return the state of each host of a maintenance window."""
    hosts = (facts.settings.get("window") or {}).get("hosts") or []
    state = {host: WAITING if host in facts.waiting_hosts else CHANGED for host in hosts}
    state.update({host: SETTLED for host in facts.settled if host in state})
    state.update({facts.at_hand: CHANGING} if facts.at_hand in state else {})
    states = [
        ({**labels, "host": host, "state": each}, int(each == state[host]))
        for host in hosts
        for each in (WAITING, CHANGING, CHANGED, SETTLED)
    ]
    return Gauge(f"{PREFIX}_host_state", "Whether the host of the window is in this state.", states)
