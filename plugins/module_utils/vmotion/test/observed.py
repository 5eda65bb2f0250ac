# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""All that the journal of a vMotion test tells, entry by entry; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.names import short_name

Entry = Mapping[str, Any]


@dataclass
class Observed:
    """The test as its journal tells it; ``lately`` names the entries since the last plan, move, verdict or the end."""

    settings: dict[str, Any] = field(default_factory=dict)
    last_at: float = 0.0
    # Of the controller that is at work now.
    run: str = ""
    is_watched: bool = False
    is_overridden: bool = False
    tried: set[str] = field(default_factory=set)
    looked_up: dict[str, Any] | None = None
    # Of the whole test.
    began: float = 0.0
    job: dict[str, Any] | None = None
    job_now: dict[str, Any] | None = None
    cluster_before: dict[str, Any] | None = None
    cluster_after: dict[str, Any] | None = None
    at: dict[str, str] = field(default_factory=dict)
    rdma: dict[str, str] = field(default_factory=dict)
    warm: dict[str, Any] | None = None
    is_measured: bool = False
    looks: list[dict[str, Any]] = field(default_factory=list)
    canary: dict[str, Any] | None = None
    round: int = 0
    left: list[dict[str, Any]] = field(default_factory=list)
    managers: list[dict[str, Any]] | None = None
    pending: dict[str, Any] | None = None
    moves: list[dict[str, Any]] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    power: list[dict[str, Any]] | None = None
    judged: dict[str, Any] | None = None
    stopped: str = ""
    failures: list[dict[str, Any]] = field(default_factory=list)
    lately: list[str] = field(default_factory=list)
    is_owed: bool = False
    is_reviewed: bool = True
    is_over: bool = False
    is_freed: bool = False
    may_outlast: bool = False
    checksums: dict[str, str] = field(default_factory=dict)
    heard_until: float = 0.0
    hosts: list[dict[str, Any]] = field(default_factory=list)
    end: dict[str, Any] | None = None

    @property
    def cluster(self) -> str:
        """The cluster's name in vCenter."""
        return str(self.settings["cluster"])

    @property
    def every_move(self) -> list[dict[str, Any]]:
        """The moves of the test, then those of others."""
        return [*self.moves, *self.others]

    @property
    def ranks(self) -> dict[str, list[int]]:
        """Return the ranks of each worker, by the name of its VM; a guest with another name stands under its own."""
        names = {short_name(worker): worker for worker in self.at}
        found: dict[str, list[int]] = {}
        for host, ranks in ((self.warm or {}).get("hosts") or {}).items():
            found.setdefault(names.get(short_name(host), host), []).extend(ranks)
        return found

    @property
    def was_held(self) -> bool:
        """Whether any controller ever held the cluster's lock for this test."""
        return self.job is not None or self.run != ""


def observed(journal: Iterable[Entry]) -> Observed:
    """The test after all entries of its journal."""
    seen = Observed()
    for entry in journal:
        kind = str(entry["entry"])
        _TAKE.get(kind, _nothing)(seen, entry)
        is_milestone = kind == "over" or (kind in MILESTONES and not seen.is_over)
        seen.lately = [] if is_milestone else [*seen.lately, kind]
        seen.last_at = float(entry["at"])
    return seen


def _nothing(_seen: Observed, _entry: Entry) -> None:
    """An entry that only tells that it was done."""


def _open(seen: Observed, entry: Entry) -> None:
    seen.settings = dict(entry["settings"])


def _controller(seen: Observed, _entry: Entry) -> None:
    """Another process carries the test out: what may have changed since the one before it ended is seen to again."""
    seen.run, seen.is_watched, seen.is_overridden, seen.looked_up = "", False, False, None
    seen.is_reviewed = seen.warm is None
    seen.lately = [kind for kind in seen.lately if kind not in AGAIN or seen.is_over]
    # A step that failed is tried again, unless the test came to its end by it.
    seen.failures = [one for one in seen.failures if seen.is_over and not one["in_the_end"]]
    seen.tried = set()
    if seen.is_over and seen.settings["drs_override"] and "restore" not in seen.lately:
        # What has still to be given back needs the lock again.
        seen.is_freed = False
        seen.lately = [kind for kind in seen.lately if kind != "free"]


def _hold(seen: Observed, entry: Entry) -> None:
    seen.run = str(entry["run"])


def _job(seen: Observed, entry: Entry) -> None:
    seen.job_now = dict(entry["job"])
    seen.job = seen.job or seen.job_now


def _cluster(seen: Observed, entry: Entry) -> None:
    if seen.cluster_before is None:
        seen.cluster_before = dict(entry["cluster"])
    seen.cluster_after = dict(entry["cluster"])


def _plan(seen: Observed, entry: Entry) -> None:
    """The first plan tells where all are at the beginning; each later one is a round."""
    seen.rdma = dict(entry["rdma"])
    if not seen.began:
        seen.at, seen.began = dict(entry["places"]), float(entry["at"])
        return
    seen.round += 1
    seen.left, seen.managers = list(entry["moves"]), None


def _watch(seen: Observed, _entry: Entry) -> None:
    seen.is_watched = True


def _override(seen: Observed, _entry: Entry) -> None:
    seen.is_overridden = True


def _warm(seen: Observed, entry: Entry) -> None:
    seen.warm = dict(entry)


def _measure(seen: Observed, _entry: Entry) -> None:
    seen.is_measured = True


def _look(seen: Observed, entry: Entry) -> None:
    """A look at the nodes; where they use RDMA, one at the counters of the hosts follows."""
    known = {"moves": len(seen.moves), "others": list(seen.others), "rdma": seen.rdma}
    hosts: list[dict[str, Any]] | None = None if entry["uses_rdma"] else []
    seen.looks.append({"nodes": entry["nodes"], "hosts": hosts, **known})


def _counters(seen: Observed, entry: Entry) -> None:
    seen.looks[-1]["hosts"] = list(entry["hosts"])


def _canary(seen: Observed, entry: Entry) -> None:
    seen.canary = dict(entry)


def _canary_plan(seen: Observed, entry: Entry) -> None:
    seen.left = [dict(entry["move"])]


def _managers(seen: Observed, entry: Entry) -> None:
    seen.managers = list(entry["hosts"])


def _begin(seen: Observed, entry: Entry) -> None:
    seen.pending = dict(entry)


def _lost(seen: Observed, entry: Entry) -> None:
    """The call of a move ended without an answer: what became of the move must be looked up."""
    begun = seen.pending or {}
    seen.pending, seen.looked_up = {**begun, "lost": [*begun.get("lost", []), entry["said"]]}, None


def _found(seen: Observed, entry: Entry) -> None:
    """What became of a move of this test whose end nobody had seen."""
    kept = {key: seen.moves[entry["place"]][key] for key in ("looks", "canary")}
    seen.moves[entry["place"]] = {**entry["move"], **kept}


def _look_up(seen: Observed, entry: Entry) -> None:
    seen.looked_up = dict(entry)


def _move(seen: Observed, entry: Entry) -> None:
    """A move that has come to its end, or was refused before it began."""
    is_canary = seen.round == 0
    seen.moves.append({**entry["move"], "looks": len(seen.looks), "canary": is_canary})
    seen.pending, seen.looked_up, seen.left = None, None, seen.left[1:]
    seen.is_owed = not is_canary
    if is_canary and not entry["move"]["ok"]:
        seen.stopped = str(entry["move"].get("said") or "the first worker did not move")


def _others(seen: Observed, entry: Entry) -> None:
    seen.others, seen.power = list(entry["moves"]), list(entry["power"])
    if "unwatch" not in seen.lately:
        seen.heard_until = float(entry["at"])


def _judge(seen: Observed, entry: Entry) -> None:
    """A breach, or a move that failed, stops the test; the first of them is kept."""
    seen.judged = dict(entry["verdict"])
    if not seen.is_over:
        breach = next((str(one["detail"]) for one in seen.judged["breaches"]), "")
        refused = seen.is_owed and not seen.moves[-1]["ok"]
        seen.stopped = seen.stopped or breach or (str(seen.moves[-1].get("said") or "") if refused else "")
    seen.is_owed, seen.is_reviewed = False, True


def _failed(seen: Observed, entry: Entry) -> None:
    seen.failures.append({"step": entry["step"], "said": entry["said"], "in_the_end": seen.is_over})
    seen.tried.add(str(entry["step"]))


def _over(seen: Observed, _entry: Entry) -> None:
    seen.is_over, seen.tried = True, set()
    seen.may_outlast = seen.judged is not None and not seen.judged["breaches"]


def _checksums(seen: Observed, entry: Entry) -> None:
    seen.checksums = dict(entry["checksums"])


def _unwatch(seen: Observed, entry: Entry) -> None:
    seen.heard_until = float(entry["at"])


def _free(seen: Observed, _entry: Entry) -> None:
    seen.is_freed, seen.run = True, ""


def _hosts(seen: Observed, entry: Entry) -> None:
    seen.hosts = list(entry["hosts"])


def _end(seen: Observed, entry: Entry) -> None:
    seen.end = dict(entry)


MILESTONES = ("plan", "move", "judge")
# What another controller looks at anew.
AGAIN = ("guests", "preflight", "job", "others")
_TAKE: dict[str, Callable[[Observed, Entry], None]] = {
    "open": _open,
    "controller": _controller,
    "hold": _hold,
    "job": _job,
    "cluster": _cluster,
    "plan": _plan,
    "watch": _watch,
    "override": _override,
    "warm": _warm,
    "measure": _measure,
    "look": _look,
    "counters": _counters,
    "canary": _canary,
    "canary_plan": _canary_plan,
    "managers": _managers,
    "begin": _begin,
    "lost": _lost,
    "found": _found,
    "look_up": _look_up,
    "move": _move,
    "others": _others,
    "judge": _judge,
    "failed": _failed,
    "over": _over,
    "checksums": _checksums,
    "unwatch": _unwatch,
    "free": _free,
    "hosts": _hosts,
    "end": _end,
}
