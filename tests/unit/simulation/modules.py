"""The modules as a program calls them, on a data centre in memory; other people act and controllers die in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from plugins.module_utils.core import observer_clock
from plugins.module_utils.maintenance import stop_rules
from plugins.module_utils.maintenance.cluster_facts import ClusterState
from plugins.module_utils.maintenance.lock.lock_rules import LockRecord, LockRequest, hold, release
from plugins.module_utils.moves.plan.fleet import Fleet, HostRoom, MovingWorker
from plugins.module_utils.moves.plan.placement import Infeasible
from plugins.module_utils.moves.plan.plan import plan_moves
from plugins.module_utils.moves.plan.window import plan_window
from tests.fakes.deaths import MortalWorld
from tests.fakes.options_check import check_options

from .host import Host, Profile, host_entry, host_facts, image_report
from .job import jobs_on_workers
from .site import CLUSTER, REMEDIATION_SECONDS, Site, Violation

Options = Mapping[str, Any]
Result = dict[str, Any]
REBOOT_SECONDS, MODE_SECONDS, CALL_SECONDS, LOCK_SECONDS = 120.0, 20.0, 0.5, 7200.0
LATE_SECONDS, MOST_POLLS = 90.0, 3
READS = ("cluster_info", "esxi_info")
BROKEN_CONNECTION = "the connection broke"


class SimulatedCalls(MortalWorld):
    """One controller's calls. ``faults`` are what happens at the points with the given numbers."""

    def __init__(self, site: Site, run: str, faults: Mapping[int, Callable[[SimulatedCalls], None]]) -> None:
        super().__init__(())
        self.site, self.run, self.faults = site, run, dict(faults)
        self.lost_answers, self.late_answers, self.stale_reads, self.doubled_events = 0, 0, 0, 0
        # Releases that fail; and the last call of a module, with the state that it requests.
        self.lost_releases = 0
        self.story: list[str] = []
        self.polls = 0

    # The world of a program.

    def point(self) -> None:
        number, self.points = self.points, self.points + 1
        if number in self.faults:
            self.faults[number](self)
        self.site.pass_time(CALL_SECONDS)
        self.site.act_alone()

    def now(self) -> float:
        return observer_clock.now()

    def pause(self) -> None:
        self.site.pass_time(2.0)

    def join(self, run: str) -> None:
        assert run == self.run

    def jobs_on_workers(self, options: Options) -> Result:
        return cast(Result, self.effect("jobs", lambda: jobs_on_workers(self.site.jobs().values(), options)))

    # The modules.

    def here(self, module: str, options: Options) -> Result:
        return self._called(module, options, is_planned=False)

    def planned(self, module: str, options: Options) -> Result:
        return self._called(module, options, is_planned=True)

    def _called(self, module: str, options: Options, *, is_planned: bool) -> Result:
        name, state = module.rpartition(".")[2], str(options.get("state") or "")
        check_options(name, options)
        self.site.last_call = name, state
        if self.lost_releases and not is_planned and state in ("absent", "free"):
            self.lost_releases -= 1
            return failed(f"{name}: could not begin: {BROKEN_CONNECTION}")
        if self.late_answers:
            self.late_answers -= 1
            self.site.pass_time(LATE_SECONDS)
        if self.stale_reads and (is_planned or name in READS):
            self.stale_reads -= 1
            with self.site.as_before():
                return self._answer(name, options, is_planned=is_planned)
        return self._answer(name, options, is_planned=is_planned)

    def _answer(self, name: str, options: Options, *, is_planned: bool) -> Result:
        if name == "worker_vm" and is_planned:
            return {}
        if name in ("esxi_image", "esxi_profile", "esxi_power"):
            answer = getattr(self, name)(dict(options), is_planned)
        else:
            answer = self.effect(name, lambda: getattr(self, name)(dict(options)))
        if self.lost_answers and not is_planned:
            self.lost_answers -= 1
            answer = {"failed": True, "msg": f"{name}: could not end: {BROKEN_CONNECTION}"}
        return cast(Result, json.loads(json.dumps(answer)))

    def cluster_lock(self, options: Result) -> Result:
        site = self.site
        # Whether a run has ended is known only where it ran.
        is_others = site.holder not in ("", self.run) and site.holder.split()[-1] != self.run.split()[-1]
        now, until = (datetime.fromtimestamp(at, UTC) for at in (site.clock, site.expires))
        noted: dict[str, Any] = {
            "note": site.note,
            "request": site.request,
            "requester": "carol",
            "free": not site.holder,
        }
        held = LockRecord(site.holder, site.holder, now, until, **noted)
        request = LockRequest(self.run, self.run, int(LOCK_SECONDS), note=options.get("note") or "")
        is_free = options.get("state") == "free"
        rule = release if is_free else hold
        decision = rule(held, request, now, dead=not is_others and site.holder != self.run)
        if decision.refusal:
            return failed(f"{CLUSTER}: could not take its lock: {decision.refusal}")
        if decision.write:
            site.pending = "" if is_free and site.note else site.pending
            site.holder, site.request = "" if is_free else self.run, decision.write.request
            site.note = decision.write.note
            site.expires = site.clock + LOCK_SECONDS
        # A pause does not last.
        self.polls += site.request == "pause"
        if self.polls > MOST_POLLS:
            self.polls, site.request, site.pending = 0, "", ""
        return {"state": {"run": site.holder or None, "request": site.request, "requester": "carol"}}

    def cluster_info(self, options: Result) -> Result:
        cluster = self._cluster()
        leaving = tuple(options.get("leaving") or ())
        stops = stop_rules.stops(cluster, stop_rules.LeavingHosts(leaving, options.get("max_out_of_service", 1)))
        self.site.seen_out = set(self.site.out())
        for host in leaving:
            self.site.rules_read[host] = [stop["rule"] for stop in stops if stop["rule"] not in self.site.accepted]
        return {"cluster": cluster, "stops": stops}

    def _cluster(self) -> ClusterState:
        site = self.site
        hosts = [host_facts(name, host) for name, host in site.hosts.items()]
        out = [
            {"host": name, "why": "it is in maintenance mode", "ours": host.by == "us", "by": host.by or None}
            for name, host in site.hosts.items()
            if name in site.out()
        ]
        alarm = {"alarm": "Host memory", "status": "red", "since": "now", "acknowledged": False}
        cluster: dict[str, Any] = {
            "name": CLUSTER,
            "vcenter": {"version": "8.0.3", "instance_uuid": "vcenter of the site"},
            "options": {},
            "drs": {"options": {}},
            "hosts": hosts,
            "out_of_service": out,
            "ha": {"enabled": True, "admission_control": False, "policy": "off", "failover_hosts": None},
            "alarms": [{"object": name, **alarm} for name in sorted(site.alarms)],
            "vsan": {"enabled": site.resync > 0, "resync_bytes": site.resync},
            "tasks": [],
            "remediations": [{"user": "root", "hosts": [name], "error": ""} for name in site.remediated()],
            "gpu_slots": [],
            "clocks": [],
            "licences": [],
        }
        allowed, why = stop_rules.allowed(cast(ClusterState, cluster))
        return cast(ClusterState, {**cluster, "max_out_of_service": {"allowed": allowed, "why": why}})

    def esxi_profile(self, options: Result, is_planned: bool) -> Result:
        names = options.get("hosts") or sorted(self.site.hosts)
        silent = [name for name in names if not self.site.hosts[name].responds]
        if silent:
            return failed(f"{silent[0]}: could not read it: vCenter shows it as notResponding")
        profiles = options.get("host_profiles") or {}
        desired = {name: Profile.of(profiles.get(name) or options["profile"]) for name in names}
        reports = [self._profile_of(name, desired[name], is_planned) for name in names]
        changed = [report["host"] for report in reports if report["changed"]]
        needs = sorted({need for report in reports for need in report["needs"]})
        return {"hosts": reports, "changed": bool(changed), "needs": needs, "diff": changed}

    def _profile_of(self, name: str, profile: Profile, is_planned: bool) -> Result:
        host = self.site.hosts[name]
        changed, host.waiting = host.differs(profile), max(0, host.waiting - 1)
        if changed and not is_planned:
            self.effect(f"change {name}", lambda: self.site.apply(name, profile, self.run))
        report = {"host": name, "changed": changed, "needs": host.needs(profile), "reboots": host.boots_for(profile)}
        is_out = host.is_out or bool(host.by)
        report.update(boot_time=host.boot_time, out_of_service=is_out, in_maintenance=host.is_out)
        return {**report, "why": ["it differs"], "unmet": []}

    def esxi_image(self, options: Result, is_planned: bool) -> Result:
        """Set the image of the cluster, and apply it to hosts, as vLCM does."""
        site, version, names = self.site, int(options["components"]["manager"]), options.get("hosts") or []
        before, is_new = site.image, site.image != version
        reports = [image_report(name, is_new or site.hosts[name].image != version) for name in names]
        if is_new and not is_planned:
            self.effect("set the image", lambda: self._set_image(version))
        for name in [] if is_planned else names:
            if not self._remediate(name, site.hosts[name]):
                return failed(f"{name}: could not apply the image of cluster {CLUSTER}: it does not respond")
        images = {key: {"base_image": str(image)} for key, image in (("before", before), ("after", version))}
        diff = [{"before_header": "gpu: image", "after_header": "gpu: image", **images}] if is_new else []
        return {"hosts": reports, "changed": is_new or any(report["changed"] for report in reports), "diff": diff}

    def _set_image(self, version: int) -> None:
        if version != self.site.requested_image:
            raise Violation(f"image {version} is set, and {self.site.requested_image or 'none'} is requested")
        self.site.write(self.run, "a new image")
        self.site.image = version

    def _remediate(self, name: str, host: Host) -> bool:
        """Have vLCM apply the image to a host, unless that is done or under way; return whether the host has it."""
        if host.image != self.site.image and not host.remediated_at:
            self.effect(f"apply the image to {name}", lambda: self.site.remediate(name, self.run))
        while host.remediated_at:
            self.site.pass_time(REMEDIATION_SECONDS / 4)
            self.point()
        return host.image == self.site.image

    def esxi_power(self, options: Result, is_planned: bool) -> Result:
        names, state = options.get("hosts") or sorted(self.site.hosts), options["state"]
        reports = []
        for name in names:
            host = self.site.hosts[name]
            if host.is_lost or (not host.is_up and state != "rebooted"):
                return failed(f"{name}: could not read its state: vCenter shows it as notResponding")
            changed = {"in_service": host.by in _own(options), "maintenance": not host.is_out}.get(state, True)
            if not is_planned:
                failure = self._power(name, state, options)
                if failure:
                    return failed(failure)
            is_ours = host.is_out and host.by in _own(options)
            shown = {"maintenance": host.is_out, "ours": is_ours}
            if is_planned and changed:
                shown = dict.fromkeys(shown, state == "maintenance")
            reports.append({"host": name, "changed": changed, "state": shown})
        return {"hosts": reports, "changed": any(report["changed"] for report in reports)}

    def _power(self, name: str, state: str, options: Options) -> str:
        """Bring a host into a state; return why that failed."""
        host = self.site.hosts[name]
        if state == "maintenance":
            if host.is_out and name in (options.get("take_over") or ()):
                self.effect(f"note on {name}", lambda: setattr(host, "by", "us"))
            return "" if host.is_out else self._leave(name)
        if state == "in_service":
            if host.by in _own(options):
                self.effect(f"return {name}", lambda: self._return(name))
            return ""
        return self._reboot(name, host, options.get("boot_times") or {})

    def _leave(self, name: str) -> str:
        """Empty a host, and put it into maintenance mode; an entry that an earlier run requested goes on."""
        site, host = self.site, self.site.hosts[name]
        if not host.is_entering:
            for worker in site.on(name):
                if not site.free_host(worker):
                    return f"{name}: could not enter maintenance mode: no other host has room for {worker}"
                if site.came_back(worker):
                    return f"{name}: could not enter maintenance mode: {worker} runs there, and DRS does not move it"
            self.effect(f"maintenance {name}", lambda: site.leave(name, self.run))
        for worker in site.on(name):
            self.point()
            site.evacuate(worker)
        site.pass_time(MODE_SECONDS)
        self.point()
        if host.is_out or (host.is_entering and site.enter(name)):
            return ""
        host.by = "" if host.by == "us" else host.by
        return f"{name}: could not enter maintenance mode: {', '.join(site.on(name)) or 'it'} still runs there"

    def _return(self, name: str) -> None:
        host = self.site.own(name, "returns")
        host.is_out, host.is_entering, host.by, host.ending_boot = False, False, "", ""
        self.site.returned_at = self.site.clock

    def _reboot(self, name: str, host: Host, boot_times: Options) -> str:
        has_booted = boot_times.get(name, host.boot_time) != host.boot_time
        # A host that booted since the request, and still needs a boot, is booted again.
        is_requested = bool(host.ending_boot) and (not host.is_up or not host.boots_left)
        if host.is_up and not has_booted and not is_requested:
            self.effect(f"reboot {name}", lambda: self.site.boot(name, self.run))
        if not host.is_up:
            self.effect(f"wait for {name}", lambda: self._up(host))
        if host.is_lost:
            return f"{name}: could not reboot: it went down and did not return"
        self.effect(f"forget the reboot of {name}", lambda: setattr(host, "ending_boot", ""))
        return ""

    def _up(self, host: Host) -> None:
        self.site.pass_time(REBOOT_SECONDS)
        if not host.is_lost:
            host.boot()

    def worker_rules(self, options: Result) -> Result:
        workers, site = options.get("workers") or [], self.site
        lacking = sorted(set(workers) - set(site.workers))
        if lacking:
            return failed(f"{CLUSTER}: could not change the rules of its workers: {lacking[0]} does not exist")
        site.write(self.run, "a DRS override")
        site.overridden = set(workers)
        return {}

    def worker_vm_info(self, _options: Result) -> Result:
        return {"workers": [self._worker(name, uuid) for name, uuid in sorted(self.site.machines.items())]}

    def _worker(self, name: str, uuid: str) -> Result:
        power, host = "off" if name in self.site.off else "on", self.site.workers[name]
        marks = {"vm_role": "worker", "vm_tenant": None, "vm_tools": True}
        return {"name": name, "vm_name": name, "vm_uuid": uuid, "vm_host": host, "vm_power": power, **marks}

    def esxi_info(self, _options: Result) -> Result:
        return {"hosts": [host_entry(name, host) for name, host in self.site.hosts.items()]}

    def shared_settings(self, options: Result) -> Result:
        raise AssertionError(f"no one asked for shared settings, but {options}")

    def vmotion_plan(self, options: Result) -> Result:
        more = {"not_applicable": {}, "rdma": {}, "profile": "", "slots": {}, "at": dict(self.site.workers)}
        slots, at, serving = dict.fromkeys(self.site.hosts, 1), dict(self.site.workers), self.site.serving()
        try:
            if options.get("empty_hosts") == []:
                # An observation plans nothing.
                return {"stages": [], "moves": [], **more}
            if options.get("empty_hosts") is None:
                return {**self._rolling(options, serving), **more}
            avoided = set(options.get("avoid_hosts") or ())
            workers = {
                name: MovingWorker((1, 0, 0), tuple(slot for slot in slots if slot == place or slot not in avoided))
                for name, place in at.items()
            }
            fleet = Fleet(workers, dict.fromkeys(slots, HostRoom((1, 0, 0))))
            plan = plan_window(fleet, at, options["empty_hosts"], serving)
        except Infeasible as error:
            return failed(f"{CLUSTER}: could not plan the moves: {error}")
        stages = [{"host": change.host, "moves": [move._asdict() for move in change.moves]} for change in plan]
        return {"stages": stages, "moves": [move for stage in stages for move in stage["moves"]], **more}

    def _rolling(self, options: Result, serving: list[str]) -> Result:
        """Plan a move of each worker, or of the named ones: one after another, or all at once to free hosts."""
        at = self.site.workers
        if options.get("max_moves", 1) > 1:
            free = iter([name for name in serving if name not in at.values()])
            moves = [{"worker": one, "source": at[one], "target": next(free), "wave": 1} for one in sorted(at)]
            return {"moves": moves, "waves": [{"wave": 1, "moves": len(moves), "waits": "", "reason": ""}]}
        slots = {name: 1 for name in self.site.hosts if name in serving or name in at.values()}
        plan = plan_moves(slots, at, movable=options.get("workers") or None, one_per_host=True)
        return {"moves": [move._asdict() for move in plan]}

    def vmotion(self, options: Result) -> Result:
        if options.get("moves"):
            rows = [{"worker": move["worker"], **self.vmotion(move)} for move in options["moves"]]
            return {"moved": rows, "failed": any(row.get("failed") for row in rows)}
        worker, target, site = options["worker"], options["target"], self.site
        if worker not in site.workers:
            return failed(f"{worker}: could not find it: the cluster has no such worker")
        running = site.moving(worker)
        if site.workers[worker] == target and not running:
            return {"state": {"host": target}}
        if not running and (target not in site.serving() or target in site.workers.values()):
            return {"failed": True, "begun": False, "msg": f"{worker}: could not move it to {target}: no room there"}
        move = running or site.move(worker, target, "us", self.run)
        self.point()
        site.arrive(move)
        # A move that is followed from its last second on was at its target all the time.
        source = target if running else move["source"]
        vsphere = {
            **move["vsphere"],
            "host": {"before": source, "after": site.workers[worker]},
            "gpus": {"before": [], "after": []},
        }
        made = {**move, "source": source, "attached": running is not None, "task": {"key": "task-1"}}
        failure = {} if move["ok"] else failed(f"{worker}: could not move it to {target}: {move['said']}")
        return {**failure, "begun": True, "move": {**made, "vsphere": vsphere}}

    def vmotion_info(self, options: Result) -> Result:
        names = options.get("workers") or sorted(self.site.workers)
        lacking = sorted(set(names) - set(self.site.workers))
        if lacking:
            return failed(f"cluster {CLUSTER}: could not find {', '.join(lacking)}: correct the names")
        moves = [one for one in self.site.moves if one["started"] >= options["since"] and one["worker"] in names]
        place = {"power": "on", "encryption": "", "gpus": []}
        places = {
            name: {"host": self.site.workers[name], "powered_on": str(self.site.boots.get(name, "then")), **place}
            for name in names
        }
        if self.doubled_events:
            self.doubled_events -= 1
            moves = [move for move in moves for _time in range(2)]
        return {"moves": moves, "power": [], "places": places}


def failed(message: str) -> Result:
    """Return the result of a module that failed."""
    return {"failed": True, "msg": message}


def _own(options: Options) -> set[str]:
    """Return who took out the hosts that a call counts as its own; bob takes hosts out with esxi_power too."""
    return {"us"} if options.get("rollout") else {"us", "bob"}
