"""Make the next moves of a vMotion test at once, wait until the job has resumed, and judge it; pure.

These are the moves of one wave of the plan; without ``max_moves``, a single move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, cast

from ...continuity.judged_facts import Move
from ...core.findings import WARN, FindingRecord, stops
from ...durable.calls import Result
from ...durable.program import Program
from ...errors import Failed
from ...moves.plan.results import ServerMoves
from ...training.runs.training_run import RECORDERS
from ...training.transport.connections import uses_rdma
from ..checks import guest_checks
from ..evidence import move_lines
from ..evidence.facts import CheckedRequest, MoveRequest, next_wave
from .holding import renew_lock
from .judgement import EARLIER_SECONDS, from_its_request, judge, move_names, move_on_server, requested_moves
from .opening import in_rank_order, look, managers, rank_list, resumed
from .trial import Trial

Value = Mapping[str, object]
# How often a move is looked up and requested again if its call ended without an answer.
MOST_LOST = 3
COMPLETED, UNDER_WAY, UNKNOWN, AGED = (
    "the server has completed the move",
    "the move is in progress: the test follows it",
    "the server has no such move: it starts now",
    "the server has no such move: its checks are repeated first",
)


def wave(p: Program, trial: Trial, why_not: Callable[[], str] = str) -> None:
    """Check and make the next moves of the round, and judge the job, unless it is broken already.

    ``why_not`` returns why the test ends before the moves. Each controller asks before it requests moves.
    """
    facts, number = trial.facts, len(trial.facts.moves) + trial.unmade + 1
    requested = _request(p, trial, number, why_not)
    facts.stopped = facts.stopped or requested.get("ends", "")
    if facts.must_stop or "ends" in requested:
        return
    if "refused" in requested:
        facts.keep_moves([requested["refused"]])
        p.say(_failure(requested["refused"]))
    else:
        facts.keep_request(requested)
        made = p.once(("moves", number), lambda: make(p, trial, requested["controller"]))
        facts.keep_moves(made)
        if not made:
            trial.unmade += 1
            return
    if not facts.outlives_job:
        _await_steps(p, trial, number)
    judge(p, trial, of_wave=True)
    if not facts.outlives_job:
        _require_healthy_gpus(p, trial, number)


def _await_steps(p: Program, trial: Trial, number: int) -> None:
    """Wait until the job has resumed after its moves, with observations before and after."""
    if uses_rdma(trial.facts.looks[-1]["nodes"]):
        look(p, trial)
    p.say("waits until every rank has completed further steps")
    since = max(move.get("completed") or 0.0 for move in trial.facts.last_wave)
    if not p.once(("resumed", number), lambda: resumed(trial, since))["ok"]:
        _keep_hang(p, trial, number)
    look(p, trial)


def move_alone(p: Program, trial: Trial) -> None:
    """Make the move of a worker without a rank: it cannot harm the job, and it is not judged."""
    made: list[Move] = []
    for attempt in count(1):
        requested = p.once(("request of the first worker", attempt), lambda: request(p, trial))
        trial.facts.keep_request(requested)
        made = p.once(("move of the first worker", attempt), partial(make, p, trial, requested["controller"]))
        if made:
            break
    trial.facts.keep_moves(made, is_canary=True)


def _request(p: Program, trial: Trial, number: int, why_not: Callable[[], str]) -> CheckedRequest:
    """Return the checked request of the next moves; judge the job first if an earlier controller judged it last."""
    for attempt in count(1):
        requested: CheckedRequest = p.once(("request", number, attempt), lambda: checked_request(p, trial, why_not))
        if not requested.get("is_stale"):
            break
        judge(p, trial)
        if trial.facts.must_stop:
            break
    return requested


def start_round(p: Program, trial: Trial, plan: Value, moves: Sequence[Move]) -> None:
    """Begin a round of planned moves, and read the vGPU managers against which drivers are checked."""
    trial.facts.keep_round(plan, moves)
    if moves and trial.settings["guest_checks"]:
        p.say("reads the vGPU managers of the hosts")
        trial.managers = p.once(("managers", trial.facts.round), lambda: managers(trial))


def make(p: Program, trial: Trial, controller: str) -> list[Move]:
    """Make the requested moves, and return their results, or the refusals of the server.

    If another controller may have started them, or if a call had no answer, the server is asked first whether they
    happened. No move starts twice, and none starts that only another controller has checked: it has no result.
    """
    trial.site.write_facts(trial.facts)
    is_unknown = controller != trial.site.controller
    open_moves: list[MoveRequest] = [{**one, "lost": 0, "is_unknown": is_unknown} for one in trial.facts.pending]
    made: dict[str, Move] = {}
    while open_moves:
        if any(one["is_unknown"] for one in open_moves):
            made.update(_looked_up(p, trial, open_moves))
            open_moves = [one for one in open_moves if one["move"]["worker"] not in made and not one.get("is_aged")]
        if open_moves:
            made.update(_moved(p, trial, open_moves))
            open_moves = [one for one in open_moves if one["move"]["worker"] not in made]
    workers = [one["move"]["worker"] for one in trial.facts.pending]
    return [made[worker] for worker in workers if worker in made]


def _looked_up(p: Program, trial: Trial, open_moves: Sequence[MoveRequest]) -> dict[str, Move]:
    """Return the moves that the server has completed, by worker."""
    unknown = [one for one in open_moves if one["is_unknown"]]
    p.say(f"looks up in vCenter the move {move_names(unknown)}")
    since = min(one["at"] for one in unknown) - EARLIER_SECONDS
    workers = [one["move"]["worker"] for one in unknown]
    result: ServerMoves = cast("ServerMoves", trial.of_cluster("vmotion_info", workers=workers, since=since))
    completed: dict[str, Move] = {}
    for one in unknown:
        worker, candidates = one["move"]["worker"], requested_moves(result, one, trial.facts)
        is_over = bool(candidates) and candidates[-1]["completed"] is not None
        found = COMPLETED if is_over else UNDER_WAY if candidates else UNKNOWN if one["lost"] else AGED
        p.say(f"{worker}: {found}" if len(open_moves) > 1 else found)
        one.update({"is_unknown": False, "is_under_way": found == UNDER_WAY, "is_aged": found == AGED})
        if is_over:
            completed[worker] = move_on_server(result, candidates[-1], one["place"], trial.facts)
    return completed


def _moved(p: Program, trial: Trial, open_moves: Sequence[MoveRequest]) -> dict[str, Move]:
    """Request the moves, and return those that have an answer, by worker."""
    p.say(f"moves {move_names(open_moves)}")
    settings = trial.settings
    moves = [{key: one["move"][key] for key in ("worker", "target")} for one in open_moves]
    limits = {key: settings[key] for key in ("move_timeout", "stun_budget", "accept")}
    options = {"cluster": trial.facts.cluster, "records": trial.records, **limits}
    spare = trial.facts.window.get("spare")
    if spare:
        options["spare"] = {key: spare[key] for key in ("cluster", "hosts") if key in spare}
    result = trial.site.here("vmotion", {**options, **(moves[0] if len(moves) == 1 else {"moves": moves})})
    # A call that could not even begin has no per-move results.
    rows = {row["worker"]: row for row in result.get("moved") or []}
    answers = ((one, rows.get(one["move"]["worker"], result)) for one in open_moves)
    made = {one["move"]["worker"]: _answered(p, trial, one, row) for one, row in answers}
    return {worker: move for worker, move in made.items() if move}


def _answered(p: Program, trial: Trial, requested: MoveRequest, result: Result) -> Move | None:
    """Return a move that ended or was refused; None if its call had no answer, so that it is looked up next."""
    # A worker can be on its target although this call moved nothing: an earlier call without an answer moved it, or the
    # move that was in progress has just ended.
    has_earlier = bool(requested["lost"] or requested.get("is_under_way"))
    may_have_moved = has_earlier if not result.get("failed") else result.get("begun") is not False
    is_unknown = result.get("move") is None and may_have_moved
    observed = move_lines.observed(result, requested["move"], trial.facts.ranks)
    move = from_its_request(observed, requested["place"])
    p.say(_failure(move))
    if not is_unknown:
        return move
    if requested["lost"] < MOST_LOST:
        requested.update({"lost": requested["lost"] + 1, "is_unknown": True})
        return None
    return {**move, "asked": {"at": requested["at"], "place": requested["place"]}}


def _failure(move: Move) -> str:
    """Return why a move failed; empty if it did not."""
    return "" if move["ok"] else str(move.get("said") or "the worker did not move")


def checked_request(p: Program, trial: Trial, why_not: Callable[[], str]) -> CheckedRequest:
    """Return the request of the next wave, or why its first move is not made, or that the job must be judged first.

    The job may have changed while no controller was at work: a new one judges it before it moves anything.
    """
    if not trial.is_current:
        return {"is_stale": True}
    renew_lock(p, trial)
    ends = why_not()
    if ends:
        return {"ends": ends}
    findings = [] if trial.facts.outlives_job else [*_of_nodes(p, trial), *_of_kubernetes(p, trial)]
    checked: CheckedRequest = {"findings": findings, "accepted": list(trial.settings["accept"])}
    reasons = stops(findings, trial.settings["accept"])
    if reasons:
        result = {"msg": not_withstood(trial.facts.cluster, reasons)}
        return {**checked, "refused": move_lines.observed(result, trial.facts.left[0], trial.facts.ranks)}
    return {**checked, **request(p, trial)}


def request(p: Program, trial: Trial) -> CheckedRequest:
    """Return the moves of the next wave, each with the state of its worker, and the controller that asks."""
    moves = next_wave(trial.facts.left)
    p.say(_prepares(moves, trial))
    workers, at = [move["worker"] for move in moves], p.now()
    places = trial.of_cluster("vmotion_info", workers=workers, since=at)["places"]
    pending: list[MoveRequest] = [{"move": move, "place": places[move["worker"]], "at": at} for move in moves]
    return {"moves": pending, "controller": trial.site.controller}


def _prepares(moves: Sequence[Move], trial: Trial) -> str:
    workers = {move["worker"] for move in moves}
    lines = " and ".join(move_lines.line(move) for move in moves)
    named = f"the move {lines}" if len(moves) == 1 else f"{len(moves)} moves at once, {lines}"
    inside = [pod for pod in in_rank_order(trial.facts.warm or {}) if pod[1]["worker"] in workers]
    return ", with ".join([f"prepares {named}", *(f"{rank_list(pod['ranks'])} in pod {name}" for name, pod in inside)])


def not_withstood(cluster: str, reasons: Sequence[FindingRecord]) -> str:
    """Return the error that names the findings that stop a move."""
    texts = " ".join(reason["text"] for reason in reasons)
    return f"Cluster {cluster}: {texts} Remove the cause, or accept it with vmotion_test_accept."


def _of_nodes(p: Program, trial: Trial) -> list[FindingRecord]:
    settings = trial.settings
    if not settings["guest_checks"]:
        return []
    # From the second wave on, the health of the GPUs was checked after the wave before.
    sick = [] if trial.facts.moves else _sick_gpus(p, trial)
    p.say("checks the timers, licences, checkpoints and drivers of the nodes")
    inside = guest_checks.node_findings(
        trial.site.nodes.read_guests(**trial.nodes, checkpoints=settings["checkpoints"])["nodes"],
        settings["stun_budget"],
        p.now(),
        (trial.managers, trial.site.drivers),
        lasts=float(settings["duration"]),
        minutes=float(settings["checkpoint_minutes"]) if settings["checkpoints"] else 0.0,
    )
    return [*sick, *inside]


def _of_kubernetes(p: Program, trial: Trial) -> list[FindingRecord]:
    workers = [move["worker"] for move in next_wave(trial.facts.left)]
    settings = trial.settings
    if settings["kubernetes"]:
        p.say("checks in Kubernetes whether something would end the job during the move")
    findings = trial.job.checked(workers, settings["stun_budget"], settings["accept"])
    for finding in findings:
        if finding["severity"] == WARN:
            p.say(str(finding["text"]))
    return findings


def _sick_gpus(p: Program, trial: Trial) -> list[Any]:
    """Return the findings on the GPUs of the nodes; errors in the log of the kernel count since the test began."""
    p.say("checks the health of the GPUs")
    age = max(p.now() - trial.facts.began, 0.0)
    return list(trial.site.nodes.read_gpus(trial.settings["nodes"], idle=False, xid_seconds=age)["findings"])


def _keep_hang(p: Program, trial: Trial, number: int) -> None:
    """Keep which ranks of a silent job wait for which others; only ranks over NCCL on nodes report it."""
    if trial.settings.get("kubernetes") or not trial.settings.get("run_dir"):
        return

    def read() -> list[str]:
        p.say("asks the ranks which of them wait for others")
        recorders = f"{trial.settings['run_dir']}/{RECORDERS}"
        return trial.site.nodes.read_hang(**trial.nodes, recorders=recorders)

    for sentence in p.once(("hang", number), read):
        p.say(sentence)
        trial.facts.hangs.append(sentence)


def _require_healthy_gpus(p: Program, trial: Trial, number: int) -> None:
    """Raise Failed if a GPU is sick after the latest moves, which are judged already."""
    if not trial.settings["guest_checks"]:
        return
    found: list[Any] = p.once(("gpus", number), lambda: _sick_gpus(p, trial))
    texts = " ".join(str(finding["text"]) for finding in stops(found, trial.settings["accept"]))
    if texts:
        workers = ", ".join(dict.fromkeys(str(move["worker"]) for move in trial.facts.last_wave))
        remedy = "repair it, then test again, or accept it with vmotion_test_accept"
        raise Failed(f"Cluster {trial.facts.cluster}", f"go on after the move of {workers}", texts, remedy)
