# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The moves of the workers of one job, from the journals of the vMotion tests and windows on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import CollectionError
from ...training.live_state import JobMove
from ..folder import journal
from ..test.next_step import state_of
from ..test.trial_state import TrialState
from .watcher import is_locked


class JobMoves:
    """The moves during a job in a run directory; a journal is read again only if it has grown."""

    def __init__(self, where: Path, run_dir: str) -> None:
        self._where, self._run_dir = where, run_dir
        self._read: dict[Path, tuple[int, Sequence[JobMove]]] = {}

    def since(self, began: float, now: float) -> list[JobMove]:
        """Return the moves that ended after a time, or that continue, in the order of their starts."""
        moves = [move for path in sorted(self._where.glob(f"*/{journal.NAME}")) for move in self._moves_in(path, now)]
        return sorted((move for move in moves if move.until >= began), key=lambda move: (move.begin, move.worker))

    def _moves_in(self, path: Path, now: float) -> Iterator[JobMove]:
        try:
            size = path.stat().st_size
            if self._read.get(path, (-1,))[0] != size:
                self._read[path] = (size, self._moves(path))
            for move in self._read[path][1]:
                # A test that was killed leaves a move without an end.
                if not move.is_running or is_locked(path):
                    yield move._replace(until=now) if move.is_running else move
        except (CollectionError, OSError):  # a page without the moves of a damaged journal
            return

    def _moves(self, path: Path) -> Sequence[JobMove]:
        entry = journal.first(path)
        settings = (entry or {}).get("settings")
        if not isinstance(settings, dict) or settings.get("run_dir") != self._run_dir:
            return ()
        return tuple(_moves_of(state_of(journal.read(path))))


def _moves_of(state: TrialState) -> Iterator[JobMove]:
    earlier = [move for window in state.earlier for move in window["moves"]]
    for move in (*earlier, *state.moves, *state.others):
        # The machine of a canary belongs to no job.
        if move.get("started") is not None and not move.get("canary"):
            yield _ended(move)
    if state.round:
        yield from (_job_move(begun["move"], begun["at"], begun["at"], "running") for begun in state.pending)


def _ended(move: Mapping[str, Any]) -> JobMove:
    kind = "failed" if not move.get("ok") else "external" if move.get("external") else "moved"
    return _job_move(move, move["started"], move.get("completed") or move["started"], kind)


def _job_move(move: Mapping[str, Any], begin: float, until: float, kind: str) -> JobMove:
    return JobMove(str(move["worker"]), str(move["source"]), str(move["target"]), float(begin), float(until), kind)
