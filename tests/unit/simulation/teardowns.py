"""The tasks of the role teardown on a data centre in memory, and histories in which clusters are built and removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import rule

from plugins.module_utils.errors import Refused

from .built import NEW, OLD, Built
from .faults import finishes
from .machine import FAULTS, HOSTS, MOST_RUNS, SiteMachine, acts
from .modules import LOCK_SECONDS, SimulatedCalls, failed
from .operations import Faults, Outcome, Team
from .role_tasks import RoleTasks
from .rollbacks import Evidence, RoleCalls
from .site import CLUSTER

Result = dict[str, Any]
RULES = "workers"


@dataclass(frozen=True)
class Removal:
    """The objects of a cluster, how they are removed, and when a test or a window that was killed before continues."""

    is_adopting: bool = False
    is_connected: bool = False
    is_unfinished: bool = False
    restores: bool = False
    controller: str = "here"
    continues: str = ""


REMOVALS = st.builds(
    Removal,
    is_adopting=st.booleans(),
    is_connected=st.booleans(),
    is_unfinished=st.booleans(),
    restores=st.booleans(),
    controller=st.sampled_from(["here", "elsewhere"]),
    continues=st.sampled_from(["", "while it is gone", "after it was built again"]),
)


class TeardownCalls(RoleCalls):
    """The modules that a teardown calls."""

    def __init__(self, built: Built, run: str, faults: Faults) -> None:
        super().__init__(built.site, run, faults)
        self.built = built

    def planned(self, module: str, options: Mapping[str, Any]) -> Result:
        rules = self.built.has_rules if options.get("name") == RULES else bool(self.site.overridden)
        due = {"worker_rules": rules, "cluster_lock": False, "shared_settings": True}
        due["custom_attributes"] = self.built.has_attributes and not self.built.carriers
        return {"changed": due[module]} if module in due else super().planned(module, options)

    def cluster_lock(self, options: Result) -> Result:
        if options.get("state") == "absent":
            self.site.write(self.run, "removal of the lock")
            self.site.holder = ""
            return {}
        return super().cluster_lock(options)

    def cluster_info(self, options: Result) -> Result:
        found = super().cluster_info(options)
        return {**found, "fabric": self.built.fabric()}

    def worker_vm_info(self, _options: Result) -> Result:
        workers = [(name, True) for name in sorted(self.built.workers)]
        workers += [(name, False) for name in sorted(self.built.adopted)]
        shown = [
            {"name": name, "vm_name": name, "vm_built": is_built, "vm_foreign_disks": []} for name, is_built in workers
        ]
        return {"workers": shown, "unfinished": sorted(self.built.unfinished)}

    def worker_vm(self, options: Result) -> Result:
        for worker in [one["name"] for one in options["workers"]]:
            if worker in self.built.adopted:
                self.effect(f"mark of {worker}", partial(self.built.unmark, worker, self.run))
            elif worker in self.built.workers | self.built.unfinished:
                self.effect(f"delete {worker}", partial(self.built.delete, worker, self.run))
        return {}

    def worker_rules(self, options: Result) -> Result:
        assert options["state"] == "absent"
        if options["name"] == RULES:
            self._change("rules of the workers", has_rules=False)
        else:
            self.effect("overrides of a test", self._restore_overrides)
        return {}

    def _restore_overrides(self) -> None:
        self.site.write(self.run, "overrides of a test")
        self.site.overridden.clear()

    def esxi_pvrdma(self, options: Result) -> Result:
        for host in options["hosts"]:
            users = [worker for worker in self.built.workers if self.site.workers.get(worker) == host]
            if users:
                return failed(f"{host}: could not change the tag: {users[0]} uses it")
            if not self.site.hosts[host].responds:
                return failed(f"{host}: could not read it: vCenter shows it as notResponding")
            self._change(f"tag of {host}", tags=self.built.tags - {host})
        return {}

    def rdma_fabric(self, options: Result) -> Result:
        assert options["state"] == "absent"
        if self.built.has_switch and self.built.users:
            return failed(f"{CLUSTER}: could not remove its RDMA switch: {min(self.built.users)} is connected to it")
        for host in sorted(self.built.adapters):
            if not self.site.hosts[host].responds:
                return failed(f"{host}: could not read it: vCenter shows it as notResponding")
            self.effect(f"adapter of {host}", partial(self.built.remove_adapter, host, self.run))
        if self.built.has_switch:
            self.effect("the switch", lambda: self.built.remove_switch(self.run))
        return {}

    def shared_settings(self, options: Result) -> Result:
        self._change("shared settings", settings=dict(options["vcenter_options"]))
        return {}

    def custom_attributes(self, _options: Result) -> Result:
        if self.built.has_attributes and not self.built.carriers:
            self._change("custom attributes", has_attributes=False)
        return {}

    def _change(self, what: str, **values: Any) -> None:
        self.effect(what, lambda: self.built.change(self.run, what, **values))


class BuildingTeam(Team):
    """People who also build workers and a network, and remove them."""

    built: Built

    def teardown(
        self, *, is_confirmed: bool, evidence: Evidence | None, faults: Faults | None = None, controller: str = "here"
    ) -> Outcome:
        """Run the playbook teardown."""
        self.built.agreed = self.built.workers | self.built.unfinished if is_confirmed else set()
        self.controller = controller
        outcome = self._played("teardown", faults, lambda calls: self._tear_down(calls, is_confirmed, evidence))
        self.controller = "here"
        return outcome

    def _tear_down(self, calls: SimulatedCalls, is_confirmed: bool, evidence: Evidence | None) -> Outcome:
        if is_confirmed and self.site.job is not None and self.site.job.is_running:
            raise Refused(CLUSTER, "remove its workers", "a training job runs on them", "wait until it ends")
        own = TeardownCalls(self.built, calls.run, calls.faults)
        self.shown = own.lines
        given = {
            "inventory_hostname": CLUSTER,
            "teardown_confirm": is_confirmed,
            "teardown_evidence": str(evidence.path) if evidence else "",
            "teardown_record_dir": str(self.built.records),
            "esxi_host_force_unlock": False,
            "esxi_host_lock_ttl": 7200,
        }
        RoleTasks(own.run_module, {"esxi_host": partial(self.restore, own)}).run("teardown", given)
        return Outcome()


class BuildingMachine(SiteMachine):
    """A cluster that is built, used and removed, while others act and controllers die."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: set[str] = set()
        self.team: BuildingTeam = BuildingTeam(self.site, where=Path(self.folder.name))
        self.build(is_adopting=False)
        self.placed = dict(self.site.workers)

    def build(self, is_adopting: bool) -> None:
        """Build the network and the workers, as the playbooks fabric and workers do."""
        built = Built(self.site, Path(self.folder.name), has_rules=True, has_switch=True, has_attributes=True)
        built.workers = {"w1", "w2"} if is_adopting else {"w1", "w2", "w3"}
        built.adopted = {"w3"} if is_adopting else set()
        built.adapters, built.tags, built.settings = set(HOSTS), set(HOSTS), dict(NEW)
        built.record.write_text('{"vcenter_options": {"vgpu.hotmigrate.enabled": false}}')
        self.built = self.team.built = built

    @rule(how=REMOVALS, faults=FAULTS, more=FAULTS)
    def remove_cluster(self, how: Removal, faults: Any, more: Any) -> None:
        """Remove what was built, continue until nothing is left, and build it again.

        A test or a window that was killed before continues afterwards.
        """
        self.build(how.is_adopting)
        self.gone = set(self.built.workers)
        self.built.unfinished = {"w4"} if how.is_unfinished else set()
        self.built.connected = {"database"} if how.is_connected else set()
        evidence = self.evidence() if how.restores else None
        self.remove = partial(self.team.teardown, evidence=evidence, controller=how.controller)
        self.not_removed()
        self.built.connected = set()
        for some in (acts(faults), acts(more)):
            self.check_teardown(self.remove(is_confirmed=True, faults=some))
        self.remove_the_rest(evidence)
        if how.continues == "while it is gone":
            self.finish_open_folders()
        for worker in sorted(self.gone):
            self.site.build(worker, self.free_host())
        self.build(is_adopting=False)
        if how.continues:
            self.finish_open_folders()

    def evidence(self) -> Evidence | None:
        """Return the oldest evidence that can restore the hosts; without one, change them first."""
        if not self.team.evidence:
            self.request_profile(boots=1, leaves=True)
            self.run_hosts(under_training=False, most=1, stuns=[], faults={})
        usable = [one for one in self.team.evidence if one.is_complete and one.is_of(self.site)]
        return usable[0] if usable else None

    @rule(point=st.integers(20, 250), is_window=st.booleans(), how=REMOVALS)
    def kill_a_test_and_remove_its_cluster(self, point: int, is_window: bool, how: Removal) -> None:
        self.start_job_if_none()
        if is_window:
            self.run_hosts(under_training=True, most=1, stuns=[], faults={point: ("kill", "")})
        else:
            self.run_vmotion_test(stuns=[], faults={point: ("kill", "")})
        finishes(SimulatedCalls(self.site, "nobody", {}), "")
        self.remove_cluster(how, {}, {})

    def free_host(self) -> str:
        """Return a host on which no worker runs."""
        return next(name for name in HOSTS if name not in self.site.workers.values())

    def not_removed(self) -> None:
        """Without a confirmation, and while others use the network, a teardown writes nothing."""
        writes = self.site.writes
        shown = self.remove(is_confirmed=False)
        assert shown.is_success or self.built.connected or self.left_out(), shown.message
        if self.built.connected:
            outcome = self.remove(is_confirmed=True)
            refused = ("database stays and is connected to rdma-vmk", "a training job runs", "out of service")
            assert any(words in outcome.message for words in refused), f"not refused: {outcome.message}"
        assert self.site.writes == writes, "a refused teardown wrote"

    def check_teardown(self, outcome: Outcome) -> None:
        self.check(outcome, set(HOSTS))
        if outcome.is_success:
            self.check_removed()
        assert self.built.others == {"database"}

    def check_removed(self) -> None:
        """Nothing of the collection is left, and what was adopted or changed is as before."""
        built = self.built
        assert not built.is_left, f"success, but something is left: {built}"
        assert built.settings == OLD, "the shared settings were not restored"
        assert not self.site.overridden, "DRS did not get its settings back"
        assert not self.left_out(), "a host was left out of service"
        assert set(self.site.workers) == set(self.placed) - self.gone

    def remove_the_rest(self, evidence: Evidence | None) -> None:
        self.next_controller()
        self.calm()
        finishes(SimulatedCalls(self.site, "nobody", {}), "")
        outcomes = []
        for _run in range(MOST_RUNS):
            outcomes.append(self.remove(is_confirmed=True))
            if outcomes[-1].is_success:
                break
            # The lock of a killed run counts for another controller until it expires.
            self.site.pass_time(LOCK_SECONDS)
            if "an unfinished change left" in outcomes[-1].message:
                self.check(self.team.hosts(), set(HOSTS))
        assert outcomes[-1].is_success, f"running again does not converge: {[one.message for one in outcomes]}"
        self.check_removed()
        if evidence:
            self.check_restored(evidence)
        event("a cluster was removed")
        writes = self.site.writes
        again = self.remove(is_confirmed=True)
        assert again.is_success and (evidence or self.site.writes == writes), "a second run writes"
