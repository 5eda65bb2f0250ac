"""The lock, the watch of the records, the DRS override and the reservation, which a test takes and releases; pure."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from ...core.findings import listed
from ...durable.calls import required
from ...durable.program import Program
from ...errors import CollectionError, Refused
from ...slurm import reservation
from ...training.runs.any_job import Ask
from ...watch.live_pace import ENDLESS_SECONDS
from .trial import Trial

RULE = "vmotion-test"
# Some hundred records of a rank.
TAIL_BYTES = 1 << 16


def lock_of_cluster(p: Program, trial: Trial) -> AbstractContextManager[None]:
    """Hold the cluster's lock, which other runs of the collection respect."""

    def free() -> None:
        p.say("frees the lock of the cluster")
        for cluster in [trial.facts.cluster, *trial.facts.spare_cluster]:
            trial.here("cluster_lock", cluster=cluster, state="free")

    def take() -> None:
        hosts = trial.facts.window.get("hosts") or []
        # A window accepts requests as soon as it has the lock.
        note = lock_note(sum(p.written(("returned", host)) is not None for host in hosts), hosts) if hosts else {}
        renew_lock(p, trial, **note)

    return p.held("the lock of the cluster", take, free)


def renew_lock(p: Program, trial: Trial, **note: str) -> None:
    """Take or renew the lock of the cluster, and pass its run to all modules."""
    p.say("takes or renews the lock of the cluster")
    trial.site.join(str(trial.of_cluster("cluster_lock", **note)["state"]["run"]))
    try:
        # No other run empties the hosts of the other cluster meanwhile.
        for cluster in trial.facts.spare_cluster:
            trial.here("cluster_lock", cluster=cluster)
    except CollectionError:
        if p.written("machines") is None:
            trial.of_cluster("cluster_lock", state="free")
        raise


def lock_note(done: int, hosts: Sequence[str]) -> dict[str, str]:
    """Return the progress of a window for the record of the lock."""
    return {"note": f"{done}of{len(hosts)}"}


def drs_override(p: Program, trial: Trial, when: str = "") -> AbstractContextManager[None]:
    """Keep DRS from moving the workers, if the settings ask for it."""
    level = trial.settings["drs_override"]

    def take() -> None:
        # Here, because the override of an earlier controller is released even if this fails.
        require_same_machines(p, trial)
        if level:
            p.say("keeps DRS from moving the workers")
            workers = sorted(trial.facts.at)
            trial.of_cluster("worker_rules", name=RULE, workers=workers, one_per_host=False, drs_override=level)

    def restore() -> None:
        if level:
            p.say("restores the DRS settings of the workers")
            trial.of_cluster("worker_rules", name=RULE, state="absent")

    return p.held(f"the DRS settings of the workers{when}", take, restore)


def reservation_in_slurm(p: Program, trial: Trial) -> AbstractContextManager[None]:
    """Keep Slurm from starting other jobs on the nodes of the job."""
    if not reservation_of(trial):
        return nullcontext()
    return p.held("the reservation in Slurm", partial(reserve, p, trial), partial(unreserve, p, trial))


def reservation_of(trial: Trial) -> str:
    """Return the name of the reservation of the job's nodes in Slurm; empty without one."""
    slurm = trial.settings.get("slurm") or {}
    is_without = not slurm or slurm.get("reservation") in (False, "false", "no")
    return "" if is_without else reservation.name_of(posixpath.basename(trial.site.folder))


def reserve(p: Program, trial: Trial) -> None:
    """Reserve the nodes of the job, unless an earlier controller did."""
    slurm = trial.settings["slurm"]
    p.say(f"reserves {', '.join(slurm['nodes'])} in Slurm, which starts no job there")
    reservation.take(_login(trial), reservation_of(trial), slurm["nodes"])


def unreserve(p: Program, trial: Trial) -> None:
    """End the reservation; one that is gone needs nothing."""
    p.say("ends the reservation in Slurm")
    reservation.release(_login(trial), reservation_of(trial))


def _login(trial: Trial) -> Ask:
    return partial(trial.site.on_node, str(trial.settings["slurm"]["login"]), "root")


def require_same_machines(p: Program, trial: Trial) -> None:
    """Refuse to continue if a worker was built again since the start: the job ran on another machine."""
    before, machines = p.written("machines"), p.ensure(partial(machines_of, trial))
    others = [worker for worker in trial.facts.at if machines.get(worker, before.get(worker)) != before.get(worker)]
    if others:
        reason = f"{listed(others)}: another virtual machine has this name since the start"
        raise Refused(f"cluster {trial.facts.cluster}", "continue", reason, "run the playbook again for a new test")


def lost_machines(p: Program, trial: Trial) -> list[str]:
    """Return the workers that others removed or built again since the start."""
    before, machines = p.written("machines"), machines_of(trial)
    return [worker for worker in trial.facts.at if machines.get(worker) != before.get(worker)]


def machines_of(trial: Trial) -> dict[str, Any]:
    """Return the instance UUID of each worker of the cluster."""
    workers = trial.of_cluster("worker_vm_info")["workers"]
    return {worker["name"]: worker["vm_uuid"] for worker in workers}


def watch_of_records(p: Program, trial: Trial) -> AbstractContextManager[None]:
    """Watch the step records of the job; the watch survives its controller, and the next controller uses it."""

    def start() -> None:
        p.say("watches the step records of the job")
        required(trial.site.start_watch(_watch_options(trial)))

    def stop() -> None:
        p.say("ends the watch of the step records")
        required(trial.site.stop_watch(_watch_options(trial)))

    return p.held("the watch of the step records", start, stop)


def _watch_options(trial: Trial) -> dict[str, object]:
    files = {"records": trial.records, "stop": f"{trial.site.folder}/stop"}
    options = {**trial.nodes, **files, "timeout": ENDLESS_SECONDS, "silence": ENDLESS_SECONDS}
    # An observation does not need all records of a job that has run for a week.
    rolled = {"tail": TAIL_BYTES, "roll": f"{trial.site.folder}/roll"} if trial.settings.get("observe") else {}
    return {**options, **rolled}
