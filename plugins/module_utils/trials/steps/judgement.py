"""Judge the job of a vMotion test: its state, the events of the server, and the verdict on its records; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, cast

from ...continuity.judged_facts import BeforeAndAfter, Move, MoveEvidence, PowerEvent, WorkerPlace
from ...durable.calls import required
from ...durable.program import Program
from ...moves.checks import move_events
from ...moves.plan.results import ServerMoves
from ..evidence import move_lines
from ..evidence.facts import Facts, FoundMove, MoveRequest, OthersMoves
from .holding import require_same_machines
from .trial import Trial

KEPT = ("verdict", "moved", "breaches", "unproven", "notes", "longest_gap_s")
# The values of a job that can change while it runs.
CHANGING = ("state", "launcher", "why", "pods", "silences", "ended")
# The server may date the start of a move a little before the controller dates its request.
EARLIER_SECONDS = 5.0


def judge(p: Program, trial: Trial, of_wave: bool = False) -> None:
    """Judge the job after a wave of moves, after a host change, or before a new controller moves anything."""
    number = trial.judgements = trial.judgements + 1
    p.say("reads the state of the job")
    keep_job(p, trial, p.once(("job", number), lambda: changed_job(p, trial)))
    p.say("asks vCenter for moves and power events that others caused")
    keep_others(p, trial, p.once(("others", number), lambda: others(p, trial)))
    p.say("judges the job")
    trial.facts.keep_verdict(p.once(("judged", number), lambda: verdict(trial)["verdict"]), of_wave)


def review(p: Program, trial: Trial, host: str, why_not: Callable[[], str]) -> None:
    """Judge the job before a host leaves service, and read the time, if only an earlier controller did.

    Both may have changed while no controller was at work. ``why_not`` returns why it is too late for the host.
    """
    key = f"review before {host}"

    def is_reviewed() -> bool:
        return trial.is_current and trial.host_in_time == host

    for attempt in count(1):
        if trial.facts.stopped:
            return
        is_over = p.once((key, attempt), is_reviewed)
        # An earlier controller may have reviewed the job and died before the next effect.
        if is_over and (is_reviewed() or p.is_replaying) and p.written((key, attempt + 1)) is None:
            return
        if not is_over:
            judge(p, trial)
            trial.facts.stopped = trial.facts.stopped or p.once((key, attempt, "time"), why_not)


def changed_job(p: Program, trial: Trial) -> dict[str, Any]:
    """Return the values of the job that can have changed; another machine with the launcher's name has no such job."""
    job = required(trial.job.look())["job"]
    if job["state"] == "absent":
        require_same_machines(p, trial)
    return {key: job.get(key) for key in CHANGING}


def keep_job(p: Program, trial: Trial, job: dict[str, object]) -> None:
    """Keep the job, and show if it has just finished although hosts of its maintenance window remain."""
    waiting = trial.facts.waiting_hosts
    if trial.facts.is_running and job["state"] == "finished" and waiting:
        p.say(f"the job has finished: {', '.join(waiting)} are changed without a verdict on their moves")
    trial.facts.keep_job(job)


def others(p: Program, trial: Trial) -> OthersMoves:
    """Return the moves and power events that others caused."""
    # The ranks of a job may run in several clusters.
    guests = sorted(set(trial.facts.ranks) - set(trial.facts.at))
    more = {"guests": guests} if guests else {}
    # Events that happen while the workers are read one after the other belong to the next reading.
    at = p.now()
    result = trial.of_cluster("vmotion_info", since=since_when(trial.facts), **more)
    moves: ServerMoves = cast("ServerMoves", result)
    return others_in(moves, trial.facts, at)


def keep_others(p: Program, trial: Trial, reading: OthersMoves) -> None:
    """Keep the moves and power events of others, and show the new ones."""
    for line in lines(reading, trial.facts):
        p.say(line)
    trial.facts.keep_others(reading)


def verdict(trial: Trial) -> dict[str, Any]:
    """Write the facts and judge them; return the verdict and its lines."""
    trial.site.write_facts(trial.facts)
    folder = trial.site.folder
    result = trial.here("continuity_verdict", test=folder, folder=folder, name=f"vmotion_test {trial.facts.cluster}")
    trial.is_current = True
    # An observation needs the silence of each move too.
    kept = (*KEPT, "moves") if trial.settings.get("observe") else (*KEPT, "cost")
    return {"verdict": {key: result[key] for key in kept if key in result}, "lines": result["lines"]}


def requested_moves(result: ServerMoves, request: MoveRequest, facts: Facts) -> list[Move]:
    """Return the moves on the server that can be the move that this test requested."""
    known, since = {move.get("chain") for move in facts.moves}, request["at"] - EARLIER_SECONDS
    planned = (request["move"]["worker"], request["move"]["target"])
    return [
        move
        for move in result["moves"]
        if (move["worker"], move["target"]) == planned
        and move["chain"] not in known
        and (move["started"] or 0.0) >= since
    ]


def move_on_server(result: ServerMoves, move: Move, place: WorkerPlace, facts: Facts) -> Move:
    """Return a move from the server, with the state of its worker before the request and after the end."""
    worker = move["worker"]
    after = result["places"][worker]
    was_switched = any(event["worker"] == worker for event in result["power"])
    vsphere: MoveEvidence = {
        **(move["vsphere"] or {}),
        "power_cycled": was_switched or move_events.has_booted(place, after),
        "host": {"before": place["host"], "after": after["host"]},
        "gpus": {"before": place["gpus"], "after": after["gpus"]},
        "encryption": place["encryption"],
    }
    is_done = bool(move["ok"]) and after["host"] == move["target"]
    ranks = list(facts.ranks.get(worker, []))
    return {**move, "ok": is_done, "vsphere": vsphere, "attached": True, "ranks": ranks}


def from_its_request(move: Move, place: WorkerPlace) -> Move:
    """Return a move that the module followed, with the state of its worker before the request.

    The worker may have been on its target before the module read its host.
    """
    seen = move.get("vsphere")
    if not move.get("attached") or not seen:
        return move
    host: BeforeAndAfter = {**seen["host"], "before": place["host"]}
    gpus: BeforeAndAfter = {**seen["gpus"], "before": place["gpus"]}
    vsphere: MoveEvidence = {**seen, "host": host, "gpus": gpus, "encryption": place["encryption"]}
    return {**move, "source": place["host"], "vsphere": vsphere}


def since_when(facts: Facts) -> float:
    """Return the time since which moves and power events count."""
    return facts.listed_until - EARLIER_SECONDS if facts.listed_until else facts.began


def others_in(result: ServerMoves, facts: Facts, at: float) -> OthersMoves:
    """Return the moves and power events of others, and the moves of the test that it requested without an answer."""
    claimed = list[Move]()
    found, own = list[FoundMove](), list[Move]()
    for place, request in _unanswered(facts):
        candidates = requested_moves(result, request, facts)
        claimed += candidates
        if candidates and candidates[-1]["completed"] is not None:
            move = move_on_server(result, candidates[-1], request["place"], facts)
            if place is None:
                own.append(move)
            else:
                found.append({"place": place, "move": move})
    earlier = [move for window in facts.earlier for move in window["moves"]]
    before = [event for window in facts.earlier for event in window["power"]]
    return {
        "at": at,
        "found": found,
        "own": own,
        "moves": move_events.moves_of_others(result["moves"], [*facts.moves, *claimed, *earlier], facts.ranks),
        "power": [event for event in result["power"] if not any(_is_near(event, one) for one in before)],
        "clock_offset_s": result.get("clock_offset_s"),
        "elsewhere": sorted(facts.ranks.keys() & result["places"].keys() - facts.at.keys()),
    }


def _unanswered(facts: Facts) -> Iterator[tuple[int | None, MoveRequest]]:
    """Yield the requests without an answer, with the place of their move among the moves, if it has one."""
    for place, move in enumerate(facts.moves):
        if move.get("asked"):
            yield place, {"at": move["asked"]["at"], "place": move["asked"]["place"], "move": move}
    for request in facts.pending:
        yield None, request


def lines(reading: OthersMoves, facts: Facts) -> list[str]:
    """Return a line for each move and each power event of others that is new."""
    known = {move["chain"] for move in facts.others}
    new = [move for move in reading["moves"] if move["chain"] not in known]
    power = [event for event in reading["power"] if not any(_is_same(event, one) for one in facts.power or [])]
    return [
        *(f"{move_lines.line(move)}, moved by {move.get('by') or 'an unknown user'}" for move in new),
        *(f"{event['worker']}: {event['what']}, by {event.get('by') or 'an unknown user'}" for event in power),
    ]


def _is_same(event: PowerEvent, other: PowerEvent) -> bool:
    """Return whether two readings are the same power event: the times of one differ by milliseconds."""
    return _is_near(event, other) and event["what"] == other["what"]


def _is_near(event: PowerEvent, other: PowerEvent) -> bool:
    return event["worker"] == other["worker"] and abs(float(event["at"]) - float(other["at"])) < 1.0


def move_names(requests: Sequence[MoveRequest]) -> str:
    return " and ".join(move_lines.line(request["move"]) for request in requests)
