"""The moves of the workers of one job, from the facts of the tests on this machine, and their metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...continuity.judged_facts import Move
from ...core import prometheus
from ...core.prometheus import Gauge
from ...durable.program_journal import NAME as JOURNAL
from ...errors import CollectionError
from ...training.output.live_state import JobMove, move_gauges
from ...watch.watcher import is_locked
from ..evidence.facts import Facts
from . import trial_folder
from .trial_folder import DAMAGES

PREFIX = "dml_vmotion_test"
VERDICTS = ("continuous", "inconclusive", "broken")
CHANGING, WAITING, CHANGED, SETTLED = "changing", "waiting", "changed", "settled"


class JobMoves:
    """The moves during a job in a run directory; facts are read again only if they have changed."""

    def __init__(self, where: Path, run_dir: str) -> None:
        self._where, self._run_dir = where, run_dir
        self._read: dict[Path, tuple[tuple[int, int], Sequence[JobMove]]] = {}

    def since(self, began: float, now: float) -> list[JobMove]:
        """Return the moves that ended after a time, or that continue, in the order of their starts."""
        paths = sorted(self._where.glob(f"*/{trial_folder.FACTS}"))
        moves = [move for path in paths for move in self._moves_in(path.parent, now)]
        return sorted((move for move in moves if move.until >= began), key=lambda move: (move.begin, move.worker))

    def _moves_in(self, folder: Path, now: float) -> Iterator[JobMove]:
        try:
            status = (folder / trial_folder.FACTS).stat()
            version = status.st_mtime_ns, status.st_size
            if folder not in self._read or self._read[folder][0] != version:
                self._read[folder] = (version, self._moves(folder))
            for move in self._read[folder][1]:
                # A test that was killed leaves a move without an end.
                if not move.is_running or is_locked(folder / JOURNAL):
                    yield move._replace(until=now) if move.is_running else move
        except (CollectionError, OSError, *DAMAGES):  # a page without the moves of damaged facts
            return

    def _moves(self, folder: Path) -> Sequence[JobMove]:
        facts = trial_folder.read_facts(folder)
        return tuple(moves_of(facts)) if facts.settings.get("run_dir") == self._run_dir else ()


def moves_of(facts: Facts) -> Iterator[JobMove]:
    """Yield the moves of a test and those of others meanwhile; one without an end gets its begin as its end."""
    earlier = [move for window in facts.earlier for move in window["moves"]]
    for move in (*earlier, *facts.moves, *facts.others):
        # The machine of a canary belongs to no job.
        if move.get("started") is not None and not move.get("canary"):
            yield _ended(move)
    if facts.round:
        yield from (_job_move(one["move"], one["at"], one["at"], "running") for one in facts.pending)


def _ended(move: Move) -> JobMove:
    kind = "failed" if not move.get("ok") else "external" if move.get("external") else "moved"
    started = move["started"] or 0.0
    return _job_move(move, started, move.get("completed") or started, kind)


def _job_move(move: Move, begin: float, until: float, kind: str) -> JobMove:
    return JobMove(str(move["worker"]), str(move["source"]), str(move["target"]), float(begin), float(until), kind)


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
