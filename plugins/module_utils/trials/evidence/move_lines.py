"""Moves and the verdict on their job as lines of text; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...continuity import cost_lines
from ...continuity.judged_facts import Move, MoveVerdict, PlannedMove, Verdict


def line(move: PlannedMove) -> str:
    return f"{move['worker']}: {move['source']} -> {move['target']}"


def observed(result: Mapping[str, Any], planned: Move, ranks: Mapping[str, Sequence[int]]) -> Move:
    """Return the move in a result of vmotion, or why it was not started, with the ranks on its worker."""
    ranks_on_worker = list(ranks.get(planned["worker"], []))
    move: Move | None = result.get("move")
    if move is None:
        reason = str(result.get("msg") or "it was not moved")
        not_started: Move = {**planned, "started": None, "completed": None, "ok": False, "vsphere": None}
        return {**not_started, "said": reason, "ranks": ranks_on_worker}
    return {**move, "ranks": ranks_on_worker}


def hosts_after(at: Mapping[str, str], moves: Sequence[Move]) -> dict[str, str]:
    """Return the host of each worker after some moves."""
    done = [move for move in moves if move.get("ok") and move.get("completed") is not None]
    arrived = {
        str(move["worker"]): str(move["target"]) for move in sorted(done, key=lambda move: move["completed"] or 0.0)
    }
    return {**at, **arrived}


def without_events(move: Move) -> dict[str, object]:
    """Return a move without its events and its task, which separate files contain."""
    return {key: value for key, value in move.items() if key not in ("events", "task")}


def verdict(judged: Verdict, moves: Sequence[Move]) -> list[str]:
    """Return the verdict with its reasons, then one line for each move."""
    gap = judged.get("longest_gap_s")
    longest = "no gap was measured" if gap is None else f"longest gap {gap:.1f} s"
    reasons = [f"  {one['kind']}: {one['detail']}" for one in judged["breaches"]]
    reasons += [f"  not proven: {text}" for text in judged["unproven"]]
    reasons += [f"  another run used its nodes: {text}" for text in judged.get("other_runs") or []]
    reasons += [f"  {text}" for text in judged.get("notes") or []]
    cost = judged.get("cost")
    costs = [f"  {text}" for text in (cost_lines.sentences(cost) if cost else ())]
    costs += [f"  {cost_lines.host_sentence(host)}" for host in (cost["hosts"] if cost else ())]
    rows = [_row(move, judged_move) for move, judged_move in zip(moves, judged["moves"])]
    rows += judged.get("not_made") or []
    return [f"{judged['verdict']}, moved: {judged['moved']}, {longest}", *reasons, *costs, *_earlier(judged), *rows]


def _earlier(judged: Verdict) -> Iterator[str]:
    """Yield the moves of earlier windows of an observation, each with its page."""
    for window in judged.get("earlier") or []:
        yield from (_row(move, row) for move, row in zip(window["moves"], window["rows"]))
        pages = [name for name in window["files"] if name.endswith(".html")]
        yield from (f"  {cost_lines.clock(window['until'])}: {window['verdict']}, {page}" for page in pages)


def _row(move: Move, judged: MoveVerdict) -> str:
    if not judged["moved"]:
        return f"{line(move)}: NOT MOVED: {move.get('said') or 'it is still on its host'}"
    seconds, gap = (move["completed"] or 0.0) - (move["started"] or 0.0), judged.get("gap_s")
    stood = "" if gap is None else f", the job stood still for {gap:.1f} s"
    return f"{line(move)}: {seconds:.1f} s{stood}"
