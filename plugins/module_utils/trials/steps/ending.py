"""The end of a vMotion test: let its job end, judge it once more, and write the evidence; pure.

Each part runs even if another one failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...durable.program import Attempt, Program
from ...training.transport.connections import checksums
from ..evidence import move_lines
from ..evidence.facts import Facts
from ..evidence.outcome import results
from ..evidence.verdict_input import transports
from . import jobs_beside
from .holding import lost_machines
from .judgement import changed_job, keep_job, keep_others, others, verdict
from .opening import connections, keep_runs, resumed, vibs
from .trial import Trial, tried


def close(trial: Trial, attempt: Attempt) -> None:
    """End the moves, and keep the error that ended them."""
    trial.facts.is_over = True
    trial.facts.failures += [attempt.failure] if attempt.failure else []


def keep_unfinished(p: Program, facts: Facts, batches: Sequence[Sequence[str]]) -> None:
    """Keep the time since which hosts with a failed change are out of service: they stay so for the next run."""
    done = {change["host"] for change in facts.host_changes}
    for hosts in batches:
        out_at, changed = p.written(("out of service", *hosts)), p.written(("changed", *hosts)) or {}
        for host in hosts if out_at is not None and not done.issuperset(hosts) else ():
            known = changed.get(host) or {"out_at": out_at, "reboots": 0}
            began = p.written(("begin of", *hosts))
            facts.host_changes.append({"host": host, **known, "began": began, "back_at": None})


def finish(p: Program, trial: Trial) -> None:
    """Watch an unbroken job until it has resumed after the moves of others, and until its end if that is awaited."""
    facts, settings = trial.facts, trial.settings
    if not facts.may_end_well:
        return
    completed = [at for move in facts.others if (at := move.get("completed"))]
    if completed:
        p.say("waits until every rank has completed further steps after the moves of others")
        tried(p, trial, "resumed after others", lambda: resumed(trial, max(completed)))
    if settings["ends_job"]:
        p.say("asks the job to end after its epoch")
        tried(p, trial, "finish of the job", trial.job.finish)
    if settings["finish_timeout"] > 0:
        p.say("waits for the end of the job")
        tried(p, trial, "end of the job", lambda: p.wait(lambda: _ended(trial), float(settings["finish_timeout"])))
        p.say("reads the checksums of the parameters")
        facts.checksums = tried(p, trial, "checksums", lambda: checksums(connections(trial)["nodes"])) or {}


def keep_end_of_watch(p: Program, trial: Trial) -> None:
    """Keep the time until which records arrive, while the watch still runs: the lock may take long to be freed."""
    trial.facts.keep_end_of_watch(p.once("end of the watch", p.now))


def _ended(trial: Trial) -> str:
    """Return the state of a job that has ended; a job that cannot be read may still run."""
    state = str((trial.job.look().get("job") or {}).get("state", "unknown"))
    return "" if state in ("running", "unknown") else state


def judge_the_end(p: Program, trial: Trial) -> None:
    """Judge the job once more: no record arrives any more, and all events of the server are there."""
    if not trial.facts.warm:
        return
    # Without the end of the watch, the last reading shows until when it surely ran.
    trial.facts.is_unwatched = True
    p.say("reads the state of the job")
    job = tried(p, trial, "last state of the job", lambda: changed_job(p, trial))
    # If the last state of a job was not read, it may have died, so its launcher counts as unseen.
    keep_job(p, trial, job or {**(trial.facts.job_now or {}), "launcher": None})
    p.say("asks vCenter for moves and power events that others caused")
    reading = tried(p, trial, "last events of others", lambda: others(p, trial))
    if reading:
        keep_others(p, trial, reading)
    if not trial.settings.get("observe"):
        p.say("identifies the workers again")
        trial.facts.lost = tried(p, trial, "machines at the end", partial(lost_machines, p, trial)) or []
    keep_runs(p, trial, "runs during the test")
    jobs_beside.judge(p, trial, "last")
    p.say("judges the job")
    judged = tried(p, trial, "last verdict", lambda: verdict(trial))
    if judged:
        for line in judged["lines"]:
            p.say(line)
        trial.facts.keep_verdict(judged["verdict"], of_wave=False)


def leave(p: Program, trial: Trial) -> None:
    """Stop a job that was started for the test, and write the evidence."""
    facts = trial.facts
    if trial.settings["ends_job"]:
        p.say("stops the job that was started for the test")
        tried(p, trial, "stop of the job", trial.job.stop)
    if facts.judged is None:
        return
    p.say("reads the cluster")
    cluster = tried(p, trial, "cluster at the end", lambda: trial.of_cluster("cluster_info")["cluster"])
    if cluster:
        facts.keep_cluster(cluster)
    p.say("reads the VIBs of the hosts")
    hosts = tried(p, trial, "VIBs of the hosts", lambda: vibs(trial)) or []
    p.say("writes the evidence")
    tried(p, trial, "evidence", lambda: _write_evidence(trial, hosts))


def _write_evidence(trial: Trial, hosts: list[dict[str, object]]) -> None:
    facts = trial.facts
    vcenter = (facts.cluster_after or {}).get("vcenter")
    files = {
        "moves": [move_lines.without_events(move) for move in facts.every_move],
        "events": [event for move in facts.every_move for event in move.get("events") or []],
        "tasks": [move["task"] for move in facts.every_move if "task" in move],
        "transport": transports(facts),
        **({"window": facts.host_changes} if trial.settings.get("window") else {}),
        **({"other_jobs": results(facts.other_jobs)} if facts.other_jobs else {}),
        "versions": {**trial.site.versions, "vcenter": vcenter, "hosts": hosts, "job": facts.job},
    }
    for name, content in files.items():
        trial.site.write(name, content)
