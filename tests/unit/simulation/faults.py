"""Faults between two effects of a run: acts of other users and of vCenter, and failures of the controller."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.deaths import Killed

from .job import Job
from .modules import SimulatedCalls
from .site import REMEDIATION_SECONDS

CLOCK_SET_SECONDS = 3600.0


def kill(calls: SimulatedCalls, _host: str) -> None:
    calls.is_dead = True
    raise Killed


class Interrupted(BaseException):
    """The user ended the run with Ctrl-C: what it holds is released."""


def interrupt(_calls: SimulatedCalls, _host: str) -> None:
    raise Interrupted


def lost_release(calls: SimulatedCalls, _host: str) -> None:
    """The next release of something that the run holds fails."""
    calls.lost_releases += 1


def lost_answer(calls: SimulatedCalls, _host: str) -> None:
    calls.lost_answers += 1


def late_answer(calls: SimulatedCalls, _host: str) -> None:
    calls.late_answers += 1


def stale_read(calls: SimulatedCalls, _host: str) -> None:
    """The server answers the next read as it was before the last write."""
    calls.stale_reads += 1


def doubled_event(calls: SimulatedCalls, _host: str) -> None:
    calls.doubled_events += 1


def alarm(calls: SimulatedCalls, host: str) -> None:
    calls.site.alarms.setdefault(host, calls.site.clock)


def resync(calls: SimulatedCalls, _host: str) -> None:
    calls.site.resync = 1 << 30


def takes(calls: SimulatedCalls, name: str) -> None:
    """Another user empties a host and puts it into maintenance mode."""
    site, host = calls.site, calls.site.hosts[name]
    workers = site.on(name)
    if (
        any(map(site.moving, workers))
        or host.is_out
        or host.by
        or not host.responds
        or any(not site.free_host(worker) for worker in workers)
    ):
        return
    for worker in workers:
        site.arrive(site.move(worker, site.free_host(worker), "bob"))
    host.is_out, host.by = True, "bob"


def remediates(calls: SimulatedCalls, name: str) -> None:
    """Another user has vLCM empty a host and apply the image of the cluster."""
    takes(calls, name)
    host = calls.site.hosts[name]
    if host.by == "bob" and not host.remediated_at:
        host.remediated_at = calls.site.clock + REMEDIATION_SECONDS


def loses(calls: SimulatedCalls, name: str) -> None:
    calls.site.lose(name)


def moves(calls: SimulatedCalls, name: str) -> None:
    """Another user moves the worker of a host."""
    site = calls.site
    for worker in site.on(name)[:1]:
        if site.free_host(worker) and site.hosts[name].responds and not site.moving(worker):
            site.arrive(site.move(worker, site.free_host(worker), "carol"))


def arrives(calls: SimulatedCalls, _host: str) -> None:
    """The moves that a killed run left end."""
    for worker in calls.site.workers:
        move = calls.site.moving(worker)
        if move:
            calls.site.arrive(move)


def finishes(calls: SimulatedCalls, _host: str) -> None:
    if calls.site.job:
        calls.site.job.end("finished", calls.site.clock)


def dies(calls: SimulatedCalls, _host: str) -> None:
    if calls.site.job:
        calls.site.job.end("died", calls.site.clock)


def stops(calls: SimulatedCalls, _host: str) -> None:
    """The owner stops the job, also one that a window has stopped."""
    site = calls.site
    if site.job and (site.job.is_running or site.stopped):
        site.job.stopped_by_owner_at = site.clock
        site.job.end("stopped", site.clock)
        site.stopped = ""


def hangs(calls: SimulatedCalls, _host: str) -> None:
    """The next guest that is shut down hangs."""
    calls.site.hangs += 1


def sets_clock(calls: SimulatedCalls, _host: str) -> None:
    """The clock of the controller is set forward, and the next time back."""
    calls.site.clock_set = -CLOCK_SET_SECONDS if calls.site.clock_set > 0 else CLOCK_SET_SECONDS


def sets_guest_clock(calls: SimulatedCalls, name: str) -> None:
    """The clock of the guest on a host is set back, and the next time forward."""
    site, job = calls.site, calls.site.job
    for worker in site.on(name) if job else []:
        assert job is not None
        seconds = 2 * CLOCK_SET_SECONDS if len(job.clock_sets) % 2 else -CLOCK_SET_SECONDS
        job.clock_sets.append((worker, site.clock, seconds))


def starts_beside(calls: SimulatedCalls, name: str) -> None:
    """Another user starts a job on the workers of a host."""
    site = calls.site
    ranks = dict(enumerate(site.on(name)))
    if ranks and site.hosts[name].responds and not site.is_beside():
        # The own job may start at the same moment.
        site.beside = Job(ranks, site.clock, place=f"/runs/beside-{site.clock:.1f}")


def ends_beside(calls: SimulatedCalls, _host: str) -> None:
    if calls.site.beside:
        calls.site.beside.end("finished", calls.site.clock)


def acknowledges(calls: SimulatedCalls, _host: str) -> None:
    """The owner of the job agrees to a window."""
    calls.site.acknowledged = calls.site.clock


def ages(calls: SimulatedCalls, _host: str) -> None:
    """The acknowledgement gets older by three days, as while no one continues a window."""
    calls.site.acknowledged -= 3 * 86_400.0


def asks_to_pause(calls: SimulatedCalls, _host: str, request: str = "pause") -> None:
    """Another user writes a request into the lock that a window holds."""
    site = calls.site
    if site.holder.startswith("run ") and site.note and site.clock < site.expires:
        site.request, site.pending, site.requested_at = request, request, site.clock


def asks_to_end(calls: SimulatedCalls, host: str) -> None:
    asks_to_pause(calls, host, "end")


ACTS: dict[str, Callable[[SimulatedCalls, str], None]] = {
    act.__name__: act
    for act in (
        kill,
        interrupt,
        lost_release,
        lost_answer,
        late_answer,
        stale_read,
        doubled_event,
        alarm,
        resync,
        takes,
        remediates,
        loses,
        moves,
        arrives,
        finishes,
        dies,
        stops,
        hangs,
        sets_clock,
        sets_guest_clock,
        starts_beside,
        ends_beside,
        acknowledges,
        ages,
        asks_to_pause,
        asks_to_end,
    )
}
