"""The program of a maintenance window by restart: stop a job at a checkpoint, change hosts, and start it again there.

Its steps:

1. Change the hosts from which accepted other jobs can move, one after another, while all jobs train.
2. Read the job, the cluster and the workers on the other hosts; refuse what would fail after the stop.
3. Wait for a checkpoint of the job, and stop the job right after it is complete.
4. Shut down the workers on the hosts, and change the hosts, several at once if the cluster allows.
5. In all cases, power the workers on, start the job as the next attempt of its run, and judge it.

A step that touches the job or its workers is written before it begins. If step 5 fails, the window stays open, and the
next controller tries that step again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count

from ...core.findings import listed
from ...durable.program import MemoryJournal, Program
from ...errors import CollectionError, WholeError
from ...hosts.change_hosts import HostChanges, change_hosts, check_stop_rules, return_to_service
from ...hosts.image_plan import commit_image
from ...jobs.running_job import required_to_run
from ...maintenance.window_limits import limits_of
from ...watch.live_pace import AwaitedSteps
from ..evidence import prediction, restart_lines
from ..evidence.outcome import broken
from ..evidence.outcome import outcome as moves_outcome
from ..folder.continued_settings import STARTED_AGAIN
from ..steps import workers_off
from ..steps.ending import close, keep_unfinished
from ..steps.holding import drs_override, lock_of_cluster, machines_of, reservation_of, reserve, unreserve
from ..steps.opening import FIRST_STEP_SECONDS, require_same_vcenter
from ..steps.stopping import TOUCHED, start_again, stop_at_checkpoint
from ..steps.trial import Trial, tried
from ..steps.window_end import attend, changed_machines, ended, no_time, notify, require_possible, unacknowledged
from ..steps.window_ways import at_most
from .around_job import conclude, make_moves
from .maintenance_window import OF_RUNNING_WORKERS, change_all, keep_settled, not_as_requested, options_of

# Written before the nodes of a job in Slurm are reserved: from then on, the window ends the reservation.
RESERVES = "reserves nodes"
# The hosts that change before the job stops.
FIRST = "hosts of other jobs"


def restart_window(p: Program, trial: Trial) -> str:
    """Return why the window failed; empty if every host was changed and the job goes on where its checkpoint ends."""
    require_possible(p, trial)
    p.ensure(partial(require_same_vcenter, trial, p.written("cluster")))
    with lock_of_cluster(p, trial):
        is_unhurt = move_others(p, trial)
        if is_unhurt:
            restart(p, trial)
    moves = "" if is_unhurt else moves_outcome(trial.facts, trial.site.folder, p.left)
    reason = moves or outcome(p, trial) or not_as_requested(trial)
    notify(p, trial, "end", reason or "every host is changed")
    return reason


def restart(p: Program, trial: Trial) -> None:
    """Stop the job, change the remaining hosts, and start the job again."""
    has_failed = p.written(("failure of", "the window")) is not None
    with p.attempt("the window") as whole:
        read(p, trial)
        stop(p, trial)
        if trial.facts.waiting_hosts:
            # DRS would move workers of other jobs to the emptied hosts, and away again when these leave service.
            with drs_override(p, trial, " during the restart"):
                p.ensure(partial(trial.site.write_facts, trial.facts))
                change(p, trial)
    close(trial, whole)
    try:
        # Then the job needs none of these hosts, one of which may never return.
        if has_failed and not p.ensure(trial.restartable().by_owner):
            finish_hosts(p, trial, whole.failure)
        bring_back(p, trial)
    except CollectionError as error:
        p.ensure(partial(trial.site.write_facts, trial.facts))
        failed = [f"{reason.rstrip('.')}." for reason in (*trial.facts.failures, str(error))]
        raise WholeError(" ".join([*failed, restart_lines.taken(trial.facts)])) from error


def read(p: Program, trial: Trial) -> None:
    """Read the job, the cluster and its workers; refuse a window that would fail after the job was stopped."""
    facts = trial.facts
    p.say("reads the job, the cluster and its workers")
    # The moves of other jobs have read them.
    if not facts.first_hosts:
        p.once("machines", partial(machines_of, trial))
        facts.keep_job(p.once("job", lambda: required_to_run(trial.job)))
        facts.keep_cluster(p.once("cluster", lambda: trial.of_cluster("cluster_info")["cluster"]))
        trial.earlier = p.once("earlier windows", trial.site.earlier_changes)
    places = p.once("places", lambda: {"at": workers_off.places_of(trial), "now": p.now()})
    facts.at, facts.began = dict(places["at"]), facts.began or float(places["now"])
    facts.restart["workers"] = p.once("workers", lambda: workers_off.concerned(trial, facts.waiting_hosts))
    keep_settled(p, trial, "after the moves" if facts.first_hosts else 1, facts.waiting_hosts)


def stop(p: Program, trial: Trial) -> None:
    """Stop the job right after a checkpoint; without one, raise before anything is stopped."""
    facts, job = trial.facts, trial.restartable()
    if not facts.waiting_hosts:
        return
    notify(p, trial, "start", listed(facts.waiting_hosts))
    if reservation_of(trial):
        p.once(RESERVES, p.now)
        facts.restart["reservation"] = reservation_of(trial)
        p.ensure(partial(reserve, p, trial))
    watch = job.watch()
    with p.held("the watch of the job", watch.start, watch.stop):
        facts.restart["stop"] = p.once("stopped", partial(stop_at_checkpoint, p, trial, partial(why_not, p, trial)))


def why_not(p: Program, trial: Trial) -> str:
    """Return why the job is not stopped now, although its checkpoint is there; empty if nothing forbids it."""
    facts, first = trial.facts, trial.facts.waiting_hosts[:1]
    how = options_of(trial)
    check_stop_rules(trial.site, first, replace(how, accepted_stops=[*how.accepted_stops, OF_RUNNING_WORKERS]))
    why = changed_machines(p, trial) or unacknowledged(p, trial)
    why = why or workers_off.why_not_shut_down(trial, facts.restart["workers"])
    return why or no_time(p, trial, _stage(first)) or too_long(trial)


def too_long(trial: Trial) -> str:
    """Return why the job must not stand still for as long as the window needs; empty if it may."""
    most = limits_of(trial.settings["window"]).max_stall_s
    seconds = prediction.down_seconds(trial.settings["window"], trial.facts.waiting_hosts, 1, trial.earlier)
    if not most or seconds <= most:
        return ""
    return f"the job would stand still for about {seconds:.0f} s, and window_max_stall_s is {most:.0f}"


def change(p: Program, trial: Trial) -> None:
    """Shut down the workers and change the hosts, several at once, until a limit, a request or a rule ends that."""
    facts, workers = trial.facts, trial.facts.restart["workers"]
    p.once(workers_off.SHUT_DOWN, p.now)
    facts.restart["off"] = True
    p.say(f"shuts down {listed([worker['name'] for worker in workers])}" if workers else "")
    p.once("workers off", partial(workers_off.power, trial, workers, "off"))
    keep_part(p, trial, "workers off")
    if options_of(trial).image and not facts.first_hosts:
        p.once("image", partial(commit_image, trial.site, facts.cluster, options_of(trial).image))
    at_once = p.once("hosts at once", partial(at_most, trial, options_of(trial)))
    p.say(at_once["why"])
    hosts = list(facts.waiting_hosts)
    for first in range(0, len(hosts), at_once["most"]):
        change_together(p, trial, hosts[first : first + at_once["most"]])


def change_together(p: Program, trial: Trial, hosts: Sequence[str]) -> None:
    """Change some hosts together, unless the window ends before them."""
    facts = trial.facts
    if facts.stopped:
        return
    facts.at_hand = listed(hosts)
    facts.restart.setdefault("batches", []).append(list(hosts))
    began = p.once(("begin of", *hosts), p.now)
    p.ensure(partial(trial.site.write_facts, facts))
    # Hosts with which an earlier controller began are finished, also if the user ends the window.
    with p.whole(p.written(("before", *hosts, 1)) is not None):
        facts.stopped = why_not_now(p, trial, hosts)
        if not facts.stopped:
            facts.round += 1
            notify(p, trial, "host", listed(hosts))
            changes = change_hosts(p, trial.site, hosts, options_of(trial))
            facts.host_changes += [{**one, "began": began, "attended": True} for one in changes]
            stops = "; ".join(changes[0]["stops"])
            facts.stopped = ended(facts, stops) if stops and facts.waiting_hosts else ""
    facts.at_hand = ""


def why_not_now(p: Program, trial: Trial, hosts: Sequence[str]) -> str:
    """Return why the window ends before these hosts; a controller that continues asks again before they leave."""

    def ask() -> str:
        lost = changed_machines(p, trial)
        return attend(p, trial) or (ended(trial.facts, lost) if lost else "") or no_time(p, trial, _stage(hosts))

    for attempt in count(1):
        why: str = p.once(("before", *hosts, attempt), ask)
        is_current = trial.host_in_time == hosts[0] or p.is_replaying
        if why or (is_current and p.written(("before", *hosts, attempt + 1)) is None):
            return why
    return ""


def _stage(hosts: Sequence[str]) -> dict[str, object]:
    """Return hosts as the limits of a window read the next one."""
    return {"host": hosts[0], "moves": []}


def bring_back(p: Program, trial: Trial) -> None:
    """Bring back all that was taken: hosts that were not changed, workers, and the job as its next attempt."""
    facts, known = trial.facts, trial.facts.restart
    keep_unfinished(p, facts, known.get("batches", []))
    if p.written(workers_off.SHUT_DOWN) is not None:
        keep_part(p, trial, "hosts")
        unchanged = [batch for batch in known.get("batches", []) if p.written(("out of service", *batch)) is None]
        p.once("returned unchanged", partial(return_unchanged, trial, unchanged))
        known["on_since"] = p.once("begin of the start", p.now)
        known["now_on"] = p.once("workers on", partial(workers_off.power_on, p, trial, known["workers"]))
        p.once("ready", partial(workers_off.require_ready, p, trial))
        known["off"] = False
        keep_part(p, trial, "workers on")
    if p.written(TOUCHED) is not None:
        known["touched"] = True
        known["started"] = p.once(STARTED_AGAIN, partial(start_again, p, trial))
        p.ensure(partial(trial.site.write_facts, facts))
    if p.written(RESERVES) is not None:
        # The job waits in the queue by now.
        p.ensure(partial(unreserve, p, trial))
        known["reservation"] = ""
    if p.written(TOUCHED) is not None:
        judge_next(p, trial)


def finish_hosts(p: Program, trial: Trial, failure: str) -> None:
    """Finish the hosts whose change failed in an earlier run: the user has repaired them."""
    facts = trial.facts
    for hosts in facts.restart.get("batches", []):
        keys = [p.written((key, *hosts)) for key in ("out of service", "returned")]
        if keys[0] is None or keys[1] is not None:
            continue
        changes = p.once(("finished later", *hosts), partial(change_again, trial, hosts))
        facts.host_changes += [{**one, "began": p.written(("begin of", *hosts)), "attended": False} for one in changes]
        facts.failures = [each for each in facts.failures if each != failure]
        facts.at_hand = ""
    facts.stopped = ended(facts, "a host failed at first") if facts.waiting_hosts and not facts.failures else ""


def change_again(trial: Trial, hosts: Sequence[str]) -> HostChanges:
    """Change hosts that are out of service. They keep the lasting state, so that this needs no journal."""
    return change_hosts(Program(MemoryJournal(), trial.site), trial.site, hosts, options_of(trial))


def return_unchanged(trial: Trial, batches: Sequence[Sequence[str]]) -> bool:
    """Return hosts to service which an earlier controller may have taken out before it died or was asked to end."""
    for hosts in batches:
        return_to_service(trial.site, hosts)
    return True


def move_others(p: Program, trial: Trial) -> bool:
    """Change the hosts that other jobs leave by moves; return whether this hurt no job, so that its own may stop."""
    facts = trial.facts
    # A window that an earlier version began has come further.
    is_late = p.written("job") is not None and p.written(FIRST) is None
    facts.first_hosts = [] if is_late else p.once(FIRST, partial(first_hosts, trial))
    if not facts.first_hosts:
        return True
    p.say(f"changes {listed(facts.first_hosts)} before the job stops: workers of other jobs move")
    make_moves(p, trial, change_all)
    conclude(p, trial)
    # The transport of workers without a rank of the job cannot be verified: the window goes on.
    is_broken = (facts.judged or {}).get("verdict", restart_lines.BROKEN) == restart_lines.BROKEN
    return not (facts.stopped or facts.failures or facts.lost or p.left or is_broken or broken(facts.other_jobs))


def first_hosts(trial: Trial) -> list[str]:
    """Return the hosts that other jobs leave by moves; refuse what would fail on the rest after the stop."""
    trial.facts.at = workers_off.places_of(trial)
    first = workers_off.left_by_moves(trial)
    if first:
        workers_off.concerned(trial, trial.facts.waiting_after(first))
    return first


def keep_part(p: Program, trial: Trial, name: str) -> None:
    """Keep a part of the time without the job, from the end of the one before."""
    known = trial.facts.restart
    at = p.once(("end of", name), p.now)
    before = known.get("part_ended") or (known.get("stop") or {}).get("at") or at
    known.setdefault("parts", []).append([name, max(0.0, at - float(before))])
    known["part_ended"] = at


def judge_next(p: Program, trial: Trial) -> None:
    """Wait for steps of the next attempt that no earlier one made, and judge the restart."""
    known = trial.facts.restart
    if not known["started"].get("run"):
        return
    job = trial.restartable(known["started"])
    watch = job.watch()
    with p.attempt("the first steps") as seen, p.held("the watch of the next attempt", watch.start, watch.stop):
        p.say("waits for the first steps")
        p.once("first steps", lambda: new_steps(trial, watch.records))
    close(trial, seen)
    known["verdict"] = tried(p, trial, "verdict", job.judged)


def new_steps(trial: Trial, records: str) -> bool:
    """Wait until every rank has made some steps, and return True."""
    settings, first = trial.settings, FIRST_STEP_SECONDS
    awaited = AwaitedSteps(int(settings["steps"]), float(settings["warm_timeout"]) + first, first=first)
    trial.site.records.wait_for_steps(records, awaited)
    return True


def outcome(p: Program, trial: Trial) -> str:
    """Write the evidence, show the result, and return why the window failed; empty if it did not."""
    facts = trial.facts
    p.ensure(partial(trial.site.write_facts, facts))
    for line in restart_lines.lines(facts):
        p.say(line)
    for name, content in {"window": facts.host_changes, "restart": facts.restart}.items():
        p.ensure(partial(trial.site.write, name, content))
    return " ".join([*restart_lines.reasons(facts), *p.left.values()])
