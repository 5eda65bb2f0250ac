"""The training jobs besides that of a maintenance window whose workers move too: refuse, watch and judge them; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

from ...core.names import short_name
from ...durable.calls import required
from ...durable.program import Program
from ...errors import CollectionError
from ...jobs.running_job import job_from
from ...watch.live_pace import ENDLESS_SECONDS, AwaitedSteps
from ..evidence import outcome
from .holding import TAIL_BYTES
from .trial import Trial, tried

# A job whose records can be read reports its steps within the first of these times, which all jobs share.
STEPS_SECONDS, LEAST_SECONDS = 120.0, 5.0
NO_LAUNCHER = "no worker that could be read has its run file, as for a job on Kubernetes or of another tool"

Job = Mapping[str, Any]


@contextmanager
def watched(p: Program, trial: Trial) -> Iterator[None]:
    """Watch the steps of the other jobs during the block, once each of them has shown that it makes steps."""
    with ExitStack() as stack:
        jobs, trial.facts.other_jobs = trial.facts.other_jobs, []
        trial.watch_too = partial(_watch_each, p, trial, stack)
        trial.watch_too(jobs)
        yield


def _watch_each(p: Program, trial: Trial, stack: ExitStack, jobs: Sequence[Job]) -> None:
    """Watch jobs until the stack ends, also those that started during the window."""
    facts, first = trial.facts, len(trial.facts.other_jobs) + 1
    facts.other_jobs += [dict(job) for job in jobs]
    numbers = range(first, len(facts.other_jobs) + 1)
    for number in numbers:
        job = facts.other_jobs[number - 1]
        if job["launcher"]:
            stack.enter_context(_watch(p, trial, number, job))
    since = p.once(("begin of other jobs", *numbers), p.now) if jobs else 0.0
    for number in numbers:
        facts.keep_other_job(number, p.once(("other job", number), partial(_measured, p, trial, number, since)))
        p.say("".join(outcome.lines([facts.other_jobs[number - 1]])))


def _watch(p: Program, trial: Trial, number: int, job: Job) -> AbstractContextManager[None]:
    """Watch the records of one job; a watch that does not start, or does not end, does not end the window."""
    files = _files(trial, number)
    lasts = {"timeout": ENDLESS_SECONDS, "silence": ENDLESS_SECONDS}
    watch = {"nodes": job["watched"], "folder": job["run_dir"], "tail": TAIL_BYTES, **lasts}

    def start() -> None:
        p.say(f"watches the step records of the other job {job['title']}")
        p.say(str(trial.site.start_watch({**files, **watch}).get("msg") or ""))

    def stop() -> None:
        p.say(str(trial.site.stop_watch(files).get("msg") or ""))

    return p.held(f"the watch of other job {number}", start, stop)


def _files(trial: Trial, number: int) -> dict[str, str]:
    folder = trial.site.folder
    return {"records": f"{folder}/other-{number}.jsonl", "stop": f"{folder}/stop-other-{number}"}


def _measured(p: Program, trial: Trial, number: int, since: float) -> dict[str, Any]:
    """Return the ranks of a job by host, or why it cannot be judged."""
    if not trial.facts.other_jobs[number - 1]["launcher"]:
        return {"why": NO_LAUNCHER}
    seconds = max(LEAST_SECONDS, since + STEPS_SECONDS - p.now())
    awaited = AwaitedSteps(trial.settings["steps"], seconds, since)
    try:
        return {"hosts": trial.site.records.wait_for_steps(_files(trial, number)["records"], awaited)["hosts"]}
    except CollectionError as error:
        return {"why": str(error)}


def resume(p: Program, trial: Trial, key: str) -> None:
    """Wait until each other job has made further steps; one that does not is judged as it is."""
    for number, job in enumerate(trial.facts.other_jobs, start=1):
        if "hosts" in job:
            p.say(f"waits for further steps of the other job {job['title']}")
            p.once(("other job resumed", number, key), partial(_resumed, p, trial, number))


def _resumed(p: Program, trial: Trial, number: int) -> bool:
    awaited = AwaitedSteps(trial.settings["steps"], trial.facts.resume_deadline_s, p.now())
    try:
        trial.site.records.wait_for_steps(_files(trial, number)["records"], awaited)
    except CollectionError:
        return False
    return True


def judge(p: Program, trial: Trial, key: str) -> None:
    """Judge each other job whose records are read; one that cannot be judged now keeps its verdict."""
    for number, job in enumerate(trial.facts.other_jobs, start=1):
        if "hosts" in job:
            p.say(f"judges the other job {job['title']}")
            judged = tried(p, trial, ("other job", number, key), partial(_verdict, p, trial, number))
            trial.facts.keep_other_job(number, judged or {})
    for line in outcome.lines(trial.facts.other_jobs):
        p.say(line)


def _verdict(p: Program, trial: Trial, number: int) -> dict[str, object]:
    job = trial.facts.other_jobs[number - 1]
    on_launcher = partial(trial.site.on_node, job["launcher"], job["user"])
    state = job_from(trial.site.here, on_launcher, job).look().get("job") or {"state": "unknown"}
    options = outcome.verdict_options(trial.facts, job, state, p.now())
    result = trial.here("continuity_verdict", records=_files(trial, number)["records"], **options)
    kept = {key: result[key] for key in ("verdict", "unproven", "longest_gap_s")}
    breaches = [str(breach["detail"]) for breach in result["breaches"]]
    return {**kept, "breaches": breaches, "state": state["state"]}


def moving(window: Mapping[str, Any], planned: Mapping[str, Any]) -> list[Job]:
    """Return the other jobs on workers that move."""
    workers = {str(move["worker"]) for stage in planned.get("stages", ()) for move in stage["moves"]}
    return on_workers(window.get("other_jobs") or [], workers, planned["places"])


def on_workers(jobs: Sequence[Job], affected: Iterable[str], workers: Iterable[str]) -> list[Job]:
    """Return the jobs on affected workers of all workers, each with its nodes there as ``moving``.

    A node whose name matches no worker may be any of them, unless other nodes of the job match: then it belongs to
    another cluster.
    """
    movers, known = ({short_name(name) for name in names} for names in (affected, workers))
    found = list[Job]()
    for job in jobs:
        is_named_alike = any(short_name(node) in known for node in job["nodes"])
        there = [node for node in job["nodes"] if short_name(node) in movers or (movers and not is_named_alike)]
        found += [{**job, "moving": there}] if there else []
    return found


def busy_workers(trial: Trial) -> set[str]:
    """Return the workers on which other jobs train now, or may train because they cannot be read.

    These are all of them if a node of such a job matches no worker.
    """
    workers, present = {short_name(worker): worker for worker in trial.facts.at}, _present(trial, trial.facts.at)
    nodes = {short_name(node) for job in present["jobs"] for node in job["moving"]}
    is_known = nodes <= set(workers)
    return {workers[node] for node in nodes} | set(present["unread_workers"]) if is_known else set(trial.facts.at)


def _present(trial: Trial, workers: Collection[str]) -> dict[str, Any]:
    """Return the other jobs that train now on the workers, and why those of ``unread_workers`` are unknown."""
    read, own = required(trial.site.jobs_on_workers(trial.settings)), _own_workers(trial)
    others = {name: why for name, why in read["unread_workers"].items() if short_name(name) not in own}
    return {"jobs": on_workers(read["jobs"], workers, workers), "unread_workers": others}


def _own_workers(trial: Trial) -> set[str]:
    """Return the workers of the job itself, which the user named or Kubernetes reports."""
    pods = ((trial.facts.job or {}).get("pods") or {}).values()
    nodes = [str(node["name"]) for node in trial.settings["nodes"]] + [str(pod.get("node") or "") for pod in pods]
    names = trial.job.workers
    return {short_name(names.get(node) or names.get(short_name(node)) or node) for node in nodes}


def refusal_of_test(p: Program, trial: Trial, plan: Mapping[str, Any]) -> str:
    """Return why a test of all workers is refused; empty if it names them, or if no other job can train on them."""
    if trial.settings["window"] or trial.settings.get("observe") or trial.settings["workers"]:
        return ""
    present = p.once("jobs on workers", partial(_present, trial, plan["places"]))
    moving, remedy = {move["worker"] for move in plan["moves"]}, "name the workers to move in vmotion_test_workers"
    unread = [f"{name} ({why})" for name, why in present["unread_workers"].items() if name in moving]
    tried = f"Cluster {trial.facts.cluster}: the test would move workers"
    if present["jobs"]:
        return f"{tried} of other training jobs: {_listed(present['jobs'])}. Wait until they end, or {remedy}."
    cause = f"whose training jobs cannot be read: {', '.join(unread)}"
    return f"{tried} {cause}. Correct the access to them, or {remedy}." if unread else ""


def refusal(cluster: str, window: Mapping[str, object], found: Sequence[Job]) -> str:
    """Return why a window with these other jobs is refused; empty if the user accepts them."""
    if not found or window.get("accept_other_jobs"):
        return ""
    return (
        f"Cluster {cluster}: the window would move workers of other training jobs: {_listed(found)}. Wait until they "
        "end, or accept that with accept_other_jobs=true: then each of them is watched and judged too."
    )


def refusal_of_present(window: Mapping[str, object], found: Sequence[Job]) -> str:
    """Return why the jobs that run now end a window before its next host; empty if the user accepts them."""
    if not found or window.get("accept_other_jobs"):
        return ""
    return (
        f"the next host would move workers of other training jobs: {_listed(found)}; wait until they end, or accept "
        "that with accept_other_jobs=true"
    )


def line(found: Sequence[Job]) -> str:
    """Return the line about accepted other jobs; empty without them."""
    return f"moves workers of other training jobs, and judges each of them: {_listed(found)}" if found else ""


def _listed(found: Sequence[Job]) -> str:
    return "; ".join(f"{job['title']} on {', '.join(job['moving'])}" for job in found)
