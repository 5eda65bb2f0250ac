"""Small regular training runs: a record of every rank each second, without harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Record = dict[str, Any]
START = 1_790_000_000.0
SEEN = 7_000.0
LAUNCHER = {"host": "w0", "pid": 40, "start": 776_000, "boot_id": "b0"}


def records(steps: int = 100, ranks: int = 4, first: int = 0, stall: tuple[int, float] | None = None) -> list[Record]:
    """Return one record of every rank each second; ``stall`` is a step and the seconds by which all records delay."""
    return [
        {
            "t": START + after + 0.01 * rank,
            "seen": SEEN + after + 0.01 * rank + 0.005,
            "step": step,
            "rank": rank,
            "size": ranks,
            "host": f"w{rank}",
            "pid": 100 + rank,
            "start": 777_000 + rank,
            "boot_id": f"b{rank}",
            "job": "422313985",
            "generation": 0,
            "phase": "train",
            "loss": 2.3 / (1 + step),
            "images_per_sec": 340.0,
        }
        for step in range(first, first + steps)
        for after in [step - first + (stall[1] if stall and step >= stall[0] else 0.0)]
        for rank in range(ranks)
    ]


def move(started: float, completed: float, rank: int = 1, **others: Any) -> Record:
    """Return a move of one worker, in seconds since the first record."""
    return {
        "worker": f"w{rank}",
        "ranks": [rank],
        "source": "esx1",
        "target": "esx5",
        "started": SEEN + started,
        "completed": SEEN + completed,
        "ok": True,
        **others,
    }


def facts(moves: list[Record]) -> dict[str, Any]:
    """Return all required facts, for moves that succeeded."""
    return {
        "launcher": {"before": LAUNCHER, "after": dict(LAUNCHER)},
        "transport": [{"before": "rdma", "after": "rdma"} for _move in moves],
        "vsphere": [
            {
                "hot_migration": True,
                "power_cycled": False,
                "host": {"before": "esx1", "after": "esx5"},
                "gpus": {"before": ["0000:3b:00.0"], "after": ["0000:3b:00.0"]},
            }
            for _move in moves
        ],
    }


def changed(made: list[Record], which: Callable[[Record], bool], **values: Any) -> list[Record]:
    """Return the same records, some of them with other values."""
    return [{**record, **values} if which(record) else record for record in made]


def kinds(result: dict[str, Any]) -> set[str]:
    """Return the kinds of breach that a verdict names."""
    return {breach["kind"] for breach in result["breaches"]}
