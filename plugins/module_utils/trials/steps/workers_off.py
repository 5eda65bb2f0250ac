"""The workers on the hosts of a window by restart: which ones, shut down, powered on again, and ready; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.findings import listed, stops
from ...core.names import short_name
from ...durable.calls import Result, required
from ...durable.program import Program
from ...errors import CollectionError, Failed, Refused, WholeError
from ...slurm.commands import COMMAND
from . import jobs_beside
from .trial import Trial

# Written before the first worker is shut down: from then on, the window sees to it that they run again.
SHUT_DOWN = "shuts workers down"
# Services in a guest, such as those of its GPUs, may start after it has an address.
READY_SECONDS = 600.0


def places_of(trial: Trial) -> dict[str, str]:
    """Return the host of each worker."""
    return {worker["name"]: worker["vm_host"] for worker in trial.of_cluster("worker_vm_info")["workers"]}


def left_by_moves(trial: Trial) -> list[str]:
    """Return the hosts that change before the job stops, because accepted other jobs can leave them by moves.

    These are hosts with workers of those jobs, and hosts without a running worker, to which they can move.
    """
    waiting = trial.facts.waiting_hosts
    if not trial.settings["window"].get("accept_other_jobs"):
        return []
    jobs = required(trial.site.jobs_on_workers(trial.settings))["jobs"]
    named = {short_name(node) for job in jobs for node in job["nodes"]}
    own = {short_name(str(machine["name"])) for machine in trial.restartable().machines()}
    workers = trial.of_cluster("worker_vm_info")["workers"]
    running = [(short_name(one["name"]), one["vm_host"]) for one in workers if one["vm_power"] == "on"]
    others = {host for name, host in running if name in named} - {host for name, host in running if name in own}
    kept = {host for _name, host in running} - others
    return [host for host in waiting if host not in kept] if others & {*waiting} else []


def concerned(trial: Trial, hosts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the workers on the hosts, which must be shut down; refuse what would fail after the stop of the job."""
    refusal = trial.restartable().refusal()
    if refusal:
        raise WholeError(refusal)
    workers = trial.of_cluster("worker_vm_info")["workers"]
    there = [one for one in workers if one["vm_host"] in hosts and one["vm_power"] == "on"]
    deaf = sorted(one["name"] for one in there if not one["vm_tools"])
    if deaf and not _may_force(trial):
        remedy = "start them, or accept with power_off=true that such workers are powered off"
        raise Refused(listed(deaf), "plan to shut down", "VMware Tools do not run in the guest", remedy)
    found = [{key: one[key] for key in ("name", "vm_name", "vm_host", "vm_role", "vm_tenant")} for one in there]
    why = why_not_shut_down(trial, found) or _without_control_plane(trial, found)
    if why:
        raise WholeError(why)
    require_emptiable(trial, found, hosts)
    return found


def require_emptiable(trial: Trial, workers: Sequence[Mapping[str, object]], hosts: Sequence[str]) -> None:
    """Refuse hosts with other machines that block them, and workers that this account cannot shut down."""
    window = trial.settings["window"]
    own = {worker["vm_name"] for worker in workers}
    options = {"hosts": list(hosts), "state": "maintenance", "rollout": True, "each_alone": True}
    kept = {key: window[key] for key in ("moved_by", "power_off", "take_over") if key in window}
    planned = required(trial.site.planned("esxi_power", {**options, **kept}))
    blocked = [
        f"{one['vm']} on {host['host']} {one['why']}"
        for host in planned["hosts"]
        for one in (host["state"].get("evacuation") or {}).get("blocked") or []
        if one["vm"] not in own
    ]
    if blocked:
        remedy = "move them by hand, or set power_off=true for machines that cannot move"
        raise Refused(listed(hosts), "empty them", "; ".join(blocked), remedy)
    if workers:
        required(trial.site.planned("worker_vm", _powered(trial, workers, "off")))


def why_not_shut_down(trial: Trial, workers: Sequence[Mapping[str, object]]) -> str:
    """Return which other jobs would stop if these workers shut down; empty if none would."""
    read = required(trial.site.jobs_on_workers(trial.settings))
    found = jobs_beside.on_workers(read["jobs"], [str(worker["name"]) for worker in workers], trial.facts.at)
    if not found:
        return str(read["unread"])
    jobs = "; ".join(f"{job['title']} on {', '.join(job['moving'])}" for job in found)
    return (
        f"Cluster {trial.facts.cluster}: the window restarts {trial.restartable().name}, and would shut down workers "
        f"of other training jobs: {jobs}. Wait until they end, let their workers move before the restart with "
        "accept_other_jobs=true, or change the hosts of each job in a separate window (esxi_host_hosts)."
    )


def _without_control_plane(trial: Trial, workers: Sequence[Mapping[str, object]]) -> str:
    """Return why the Kubernetes of the job would not answer while these workers are off; empty if it would."""
    if not workers:
        return ""
    found = trial.job.checked([str(worker["name"]) for worker in workers], 0.0, trial.settings["accept"])
    needed = [finding for finding in stops(found, trial.settings["accept"]) if finding["rule"] == "control_plane"]
    return " ".join(f"{finding['text'].rstrip('.')}." for finding in needed)


def power(trial: Trial, workers: Sequence[Mapping[str, object]], state: str) -> bool:
    """Shut workers down through their guests, or power them on and wait for their addresses; return True."""
    if workers:
        trial.here("worker_vm", **_powered(trial, workers, state))
    return True


def _may_force(trial: Trial) -> bool:
    """Return whether the user accepts that workers are powered off whose guests do not shut down."""
    return bool(trial.settings["window"].get("power_off"))


def _powered(trial: Trial, workers: Sequence[Mapping[str, object]], state: str) -> Result:
    """Return the options of worker_vm that change nothing but the power."""
    kept = {"role": "vm_role", "tenant": "vm_tenant"}
    given = [
        {"name": one["name"], "power": state, "reserve_memory": False, **{key: one[name] for key, name in kept.items()}}
        for one in workers
    ]
    of_all = {"cluster": trial.facts.cluster, "one_per_host": False, "force_off": _may_force(trial)}
    return {**of_all, "power_cycle": state == "off", "workers": given}


def power_on(p: Program, trial: Trial, workers: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Power on the workers whose hosts are in service, and return the host of each; raise if one of them is not."""
    names = {worker["name"] for worker in workers}
    cluster = trial.of_cluster("cluster_info")["cluster"]
    out = {host["host"]: host.get("why") or "" for host in cluster["out_of_service"]}
    found = {one["name"]: one for one in trial.of_cluster("worker_vm_info")["workers"] if one["name"] in names}
    able = [one for one in found.values() if one["vm_host"] not in out]
    if able:
        p.say(f"powers on {listed(sorted(one['name'] for one in able))}")
    power(trial, able, "on")
    off = [f"{one['name']} on {one['vm_host']}" for one in found.values() if one["vm_host"] in out]
    off += sorted(names - set(found))
    owner = trial.restartable().by_owner() if off else ""
    if off and not owner:
        cause = f"out of service: {listed(sorted(out))}" if out else "these workers do not exist any more"
        remedy = "repair the hosts, and run again; if one stays lost, resume the job on other workers first"
        raise Failed(listed(off), "power them on", cause, remedy)
    p.say(f"{listed(off)} stays off: {owner} continues the job on other workers" if off else "")
    return {
        one["name"]: one["vm_host"] for one in trial.of_cluster("worker_vm_info")["workers"] if one["name"] in names
    }


def require_ready(p: Program, trial: Trial) -> bool:
    """Wait until the machines of the job answer with healthy GPUs, and return True."""
    _require_slurm(p, trial)
    why = "they did not respond"
    job = trial.restartable()
    machines = job.machines() if trial.settings["guest_checks"] else []
    if not machines or job.by_owner():
        return True

    def is_ready() -> bool:
        nonlocal why
        age = p.now() - float(trial.facts.restart["on_since"])
        try:
            read = trial.site.nodes.read_gpus(machines, idle=False, xid_seconds=age)
            found = stops(read["findings"], trial.settings["accept"])
        except CollectionError as error:
            why = str(error)
            return False
        why = " ".join(str(finding["text"]) for finding in found)
        return not found

    if not p.wait(is_ready, READY_SECONDS):
        nodes = listed([str(node["name"]) for node in machines])
        remedy = "repair them, then run again: the job is stopped until then"
        raise Failed(nodes, f"find them ready within {READY_SECONDS:.0f} s", why, remedy)
    return True


def _require_slurm(p: Program, trial: Trial) -> None:
    """Wait until Slurm answers: its controller may run on a worker that was shut down."""
    login = str((trial.settings.get("slurm") or {}).get("login") or "")
    queue = {"argv": ["squeue", "--noheader"]}
    if login and not p.wait(lambda: not trial.site.on_node(login, "root", COMMAND, queue).get("failed"), READY_SECONDS):
        remedy = "start slurmctld, then run again: the job is stopped until then"
        raise Failed("Slurm", f"get an answer within {READY_SECONDS:.0f} s", f"squeue fails on {login}", remedy)
