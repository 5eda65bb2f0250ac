"""The beginning of a vMotion test: plan the moves, read the job, wait until it is warm, and measure it; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from ...continuity.judged_facts import Move
from ...core.vgpu_manager import is_manager
from ...durable.calls import Result
from ...durable.program import Program
from ...errors import CollectionError, Refused, WholeError
from ...jobs.running_job import placed, required_to_run
from ...moves.plan.results import MovePlan, Wave
from ...training.transport.connections import uses_rdma
from ...watch.live_pace import AwaitedSteps
from ..evidence import move_lines
from . import jobs_beside
from .holding import machines_of
from .trial import Trial, tried

# A job reports its first step within the first of these times; one that has run for longer, within the second.
FIRST_STEP_SECONDS, SOON_SECONDS = 600.0, 30.0
# While a test waits for steps, it reads the state of the job this often.
LOOK_SECONDS = 10.0
KEPT = ("moves", "rdma", "profile", "slots", "stages", "returns", "waves", "clock_offset_s")


def prepare(p: Program, trial: Trial) -> None:
    """Read the job, its cluster and the plan of the moves; refuse a job that cannot be judged."""
    p.say("identifies the workers")
    # Before the job is read, which ran on these machines.
    p.once("machines", partial(machines_of, trial))
    p.say("reads the state of the job")
    trial.facts.keep_job(p.once("job", lambda: required_to_run(trial.job)))
    p.say("reads the cluster")
    trial.facts.keep_cluster(p.once("cluster", lambda: trial.of_cluster("cluster_info")["cluster"]))
    plan = planned(p, trial, "plan", trial.facts.moving_hosts)
    window = trial.settings["window"]
    found = p.once("other jobs", lambda: jobs_beside.moving(window, plan)) if window else []
    if reason := jobs_beside.refusal(trial.facts.cluster, window, found) or jobs_beside.refusal_of_test(p, trial, plan):
        raise WholeError(reason)
    p.say(jobs_beside.line(found))
    trial.facts.other_jobs = list(found)
    trial.facts.keep_places(plan)


def require_same_vcenter(trial: Trial, known: Mapping[str, object] | None) -> None:
    """Refuse to continue a test in another vCenter: its cluster may have the same name, as may workers and hosts."""
    started_in = _vcenter_of(known or {})
    if not started_in:
        return
    now_in = _vcenter_of(trial.of_cluster("cluster_info")["cluster"])
    if now_in != started_in:
        tried = f"continue the test of cluster {trial.facts.cluster} in it"
        cause = f"it started in the vCenter with the instance UUID {started_in}, and this one has {now_in}"
        remedy = "run with the inventory of that vCenter, or name another folder for this one: vmotion_test_dir"
        raise Refused(trial.site.folder, tried, cause, remedy)


def _vcenter_of(cluster: Mapping[str, Any]) -> str:
    return str((cluster.get("vcenter") or {}).get("instance_uuid") or "")


def planned(p: Program, trial: Trial, key: str | tuple[object, ...], hosts: Sequence[str] | None = None) -> MovePlan:
    """Plan moves, show them, and return the plan with the place of each worker and the time."""

    def plan() -> MovePlan:
        avoided = trial.facts.waiting_after(trial.facts.moving_hosts)
        options = plan_options(trial.settings, hosts, avoided)
        result = trial.here("vmotion_plan", **options)
        reason = not_applicable(trial.facts.cluster, result)
        if reason:
            raise WholeError(reason)
        kept = {name: result[name] for name in KEPT if name in result}
        return cast("MovePlan", {**kept, "places": result["at"], "at": p.now()})

    p.say("plans the moves")
    made: MovePlan = p.once(key, plan)
    for line in plan_lines(made):
        p.say(line)
    return made


def measure(p: Program, trial: Trial) -> None:
    """Wait until the job is warm, and measure it between two readings of its connections."""
    p.say("waits until the job is warm")
    trial.facts.warm = p.once("warm", lambda: warm(p, trial))
    for name, pod in in_rank_order(trial.facts.warm):
        p.say(f"{rank_list(pod['ranks'])} in pod {name} on {pod['worker']}")
    look(p, trial)
    keep_runs(p, trial, "runs before the moves")
    p.say("measures the job before the first move")
    since, settings = p.once("begin of the measurement", p.now), trial.settings
    p.once("measured", lambda: wait_for_steps(trial, settings["steps"], since, settings["warm_timeout"]))
    look(p, trial)


def warm(p: Program, trial: Trial) -> dict[str, Any]:
    """Return the ranks by worker after the first steps."""
    number, timeout = max(trial.settings["warmup_steps"], 1), trial.settings["warm_timeout"]
    job = trial.facts.job or {}
    first = first_step_seconds(job.get("started"), p.now())
    result = _waited(trial, AwaitedSteps(number, timeout, first=first))
    trial.is_current = True
    ranks = {key: result[key] for key in ("ranks", "step")}
    return {**ranks, **placed(result["hosts"], job, trial.job.workers)}


def first_step_seconds(started: float | None, now: float) -> float:
    """Return the seconds to wait for a first step: a job that has run long without a step never reports one."""
    return max(FIRST_STEP_SECONDS - (now - (started or now)), SOON_SECONDS)


def wait_for_steps(trial: Trial, number: int, since: float, timeout: float) -> bool:
    """Wait until every rank has completed a number of steps since a time; raise if they did not."""
    _waited(trial, AwaitedSteps(number, timeout, since))
    return True


def _waited(trial: Trial, awaited: AwaitedSteps) -> Result:
    """Wait for steps as long as the job runs: one that has ended makes none. A job that cannot be read may run."""
    left = replace(awaited, at_most=LOOK_SECONDS)
    while True:
        result = trial.site.records.wait_for_steps(trial.records, left)
        if not result.get("late"):
            return result
        job = trial.job.look().get("job")
        if job and job["state"] not in ("running", "waiting"):
            why = f": {job['why']}" if job.get("why") else ""
            raise WholeError(f"{trial.job.name} does not run any more, it is {job['state']}{why}.")
        timeout, first = (at and max(at - LOOK_SECONDS, 0.1) for at in (left.timeout, left.first))
        left = replace(left, timeout=timeout, first=first)


def resumed(trial: Trial, since: float) -> dict[str, Any]:
    """Wait for further steps until the deadline of the verdict; the verdict reports a job that does not resume."""
    # A live page shows the moves while the job resumes.
    trial.site.write_facts(trial.facts)
    try:
        _waited(trial, AwaitedSteps(trial.settings["steps"], trial.facts.resume_deadline_s, since))
    except CollectionError as error:
        return {"ok": False, "said": str(error)}
    return {"ok": True, "said": ""}


def look(p: Program, trial: Trial) -> None:
    """Read the connections of the ranks, and with RDMA immediately afterwards the counters of the hosts."""

    def read() -> dict[str, Any]:
        p.say("reads the connections of the ranks")
        nodes = connections(trial)["nodes"]
        return {"nodes": nodes, "hosts": _counters(p, trial) if uses_rdma(nodes) else []}

    trial.facts.keep_look(p.once(("look", len(trial.facts.looks) + 1), read))


def keep_runs(p: Program, trial: Trial, key: str) -> None:
    """Keep the other runs on the nodes since the test began, and the checkpoints of the job."""

    def read() -> dict[str, Any]:
        p.say("reads the other runs on the nodes, and the checkpoints of the job")
        return trial.site.nodes.read_runs(**trial.nodes, since=trial.facts.began)

    reading = tried(p, trial, key, read)
    if reading:
        trial.facts.keep_runs(reading)


def connections(trial: Trial) -> Result:
    """Return the connections and the checksums of the ranks."""
    return trial.site.nodes.read_connections(**trial.nodes, timeout=trial.settings["look_timeout"])


def _counters(p: Program, trial: Trial) -> list[dict[str, object]]:
    p.say("reads the RDMA counters of the hosts")
    groups = ["rdma", "network", "pvrdma"]
    return _hosts(trial, groups)


def vibs(trial: Trial) -> list[dict[str, Any]]:
    return _hosts(trial, ["vib"])


def _hosts(trial: Trial, groups: Sequence[str]) -> list[dict[str, object]]:
    """Return what a reading of all hosts shows, and of the spare hosts of another cluster."""
    clusters = [trial.facts.cluster, *trial.facts.spare_cluster]
    options = {"gather": list(groups), "fail_unreachable": False}
    return [host for cluster in clusters for host in trial.here("esxi_info", cluster=cluster, **options)["hosts"]]


def managers(trial: Trial) -> list[dict[str, Any]]:
    """Return the vGPU manager of each host, against which drivers are checked."""
    running = {host["host"]: (host.get("vibs") or {}).get("running") or [] for host in vibs(trial)}
    of_hosts = {host: [vib for vib in there if is_manager(vib["name"])] for host, there in running.items()}
    return [{"host": host, "vibs": {"running": there}} for host, there in of_hosts.items()]


def in_rank_order(warm_job: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the pods of a warm job in the order of their ranks; none if the job has no pods."""
    return sorted((warm_job.get("pods") or {}).items(), key=lambda pod: list(pod[1]["ranks"]))


def rank_list(ranks: Sequence[int]) -> str:
    return f"rank{'' if len(ranks) == 1 else 's'} {', '.join(map(str, ranks))}"


def plan_options(
    settings: Mapping[str, Any], hosts: Sequence[str] | None = None, avoided: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the options of vmotion_plan for all moves, or for those that empty these hosts, not to avoided ones."""
    options: dict[str, Any] = {"cluster": settings["cluster"], "one_per_host": settings["one_per_host"]}
    if settings.get("observe"):
        return {**options, "empty_hosts": []}
    if settings.get("window"):
        return {**options, **_emptied(settings["window"], hosts), **({"avoid_hosts": avoided} if avoided else {})}
    options["return_home"] = settings["return_home"]
    if settings.get("max_moves", 1) > 1:
        options.update(max_moves=settings["max_moves"], stun_budget=settings["stun_budget"])
    return {**options, **({"workers": settings["workers"]} if settings["workers"] else {})}


def _emptied(window: Mapping[str, Any], hosts: Sequence[str] | None) -> dict[str, object]:
    """Return the options for a window; moves that vCenter does not support are refused before the first one."""
    mode = {"non_disruptive": True} if window.get("non_disruptive") else {}
    spare = {"spare": window["spare"]} if window.get("spare") else {}
    return {"empty_hosts": list(window["hosts"] if hosts is None else hosts), **mode, **spare}


def not_applicable(cluster: str, planned: Mapping[str, Any]) -> str:
    """Return why a plan leaves nothing to test; empty if there are moves, or hosts to change."""
    if "stages" in planned:
        return ""
    tied = planned["not_applicable"]
    if planned["moves"] and not tied:
        return ""
    why = f"these workers are tied to their hosts by devices: {', '.join(tied)}" if tied else "no worker runs"
    remedy = "name those that can move with vmotion_test_workers"
    return f"Cluster {cluster}: a vMotion test is not applicable: {why}; {remedy}."


def plan_lines(planned: Mapping[str, Any]) -> list[str]:
    """Return a line for each move, after a line for each wave or for each host that leaves service."""
    if "waves" in planned:
        return [line for wave in planned["waves"] for line in _wave_lines(wave, planned["moves"])]
    if "stages" not in planned:
        return [move_lines.line(move) for move in planned["moves"]]
    returns = [f"at the end: {move_lines.line(move)}{_stun(move)}" for move in planned.get("returns") or []]
    return [
        line
        for number, stage in enumerate(planned["stages"], start=1)
        for line in (
            f"{number}. {stage['host']} is changed" + ("" if stage["moves"] else ", no worker runs on it"),
            *(f"   before: {move_lines.line(move)}{_stun(move)}" for move in stage["moves"]),
        )
    ] + returns


def _stun(move: Move) -> str:
    """Return the expected stun of a move; empty if it is not known."""
    return "" if move.get("stun_s") is None else f", stun about {move['stun_s']:.0f} s"


def _wave_lines(wave: Wave, moves: Sequence[Move]) -> list[str]:
    """Return the lines of a wave: its number, its moves, and why it is not larger."""
    number = int(wave["moves"])
    lines = [f"   {move_lines.line(move)}" for move in moves if move["wave"] == wave["wave"]]
    waits = [f"   {wave['waits']} waits: {wave['reason']}"] if wave.get("reason") else []
    return [f"{wave['wave']}. {number} moves at once" if number > 1 else f"{wave['wave']}. one move", *lines, *waits]
