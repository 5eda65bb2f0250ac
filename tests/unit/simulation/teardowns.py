# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The tasks of the role teardown on a data centre in memory, and histories in which clusters are built and removed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.errors import Refused
from plugins.module_utils.hosts.change_hosts import HostChangeOptions
from plugins.module_utils.hosts.programs.rollout import rollout
from plugins.module_utils.hosts.rollout_plan import RolloutOptions, plan_hosts, require_possible
from plugins.plugin_utils.role_programs import teardown_of

from .built import NEW, OLD, Built
from .machine import ACTS, FAULTS, HOSTS, MOST_RUNS, SiteMachine, acts
from .modules import SimulatedCalls, failed
from .operations import Faults, Outcome, Team
from .role_tasks import RoleTasks
from .site import CLUSTER, Profile

Result = dict[str, Any]


class TeardownCalls(SimulatedCalls):
    """The modules that a teardown calls."""

    def __init__(self, built: Built, run: str, faults: Faults) -> None:
        super().__init__(built.site, run, faults)
        self.built = built

    def run_module(self, module: str, options: Result, is_planned: bool) -> Result:
        """Run a module as a task of a role does."""
        if module in ("copy", "file"):
            self.effect(module, lambda: self._write_record(module, options))
            return {}
        if module == "program":
            gate = SimpleNamespace(check_mode=is_planned)
            return teardown_of(self, options["options"], gate) if options["name"] == "teardown" else {}
        return (self.planned if is_planned else self.here)(module, options)

    def _write_record(self, module: str, options: Result) -> None:
        if module == "file":
            Path(options["path"]).unlink()
        else:
            Path(options["dest"]).write_text(options["content"])

    def planned(self, module: str, options: Mapping[str, Any]) -> Result:
        due = {"worker_rules": self.built.has_rules, "cluster_lock": False, "shared_settings": True}
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
        shown = [{"name": name, "vm_name": name, "vm_built": is_built} for name, is_built in workers]
        return {"workers": shown, "unfinished": sorted(self.built.unfinished)}

    def worker_vm(self, options: Result) -> Result:
        for worker in [one["name"] for one in options["workers"]]:
            if worker in self.built.adopted:
                left = self.built.adopted - {worker}
                self._change(f"mark of {worker}", adopted=left)
            elif worker in self.built.workers | self.built.unfinished:
                self.effect(f"delete {worker}", partial(self.built.delete, worker, self.run))
        return {}

    def worker_rules(self, options: Result) -> Result:
        assert options["state"] == "absent"
        self._change("rules of the workers", has_rules=False)
        return {}

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

    def teardown(self, *, is_confirmed: bool, evidence: Profile | None, faults: Faults | None = None) -> Outcome:
        """Run the playbook teardown."""
        self.built.agreed = self.built.workers | self.built.unfinished if is_confirmed else set()
        return self._played("teardown", faults, lambda calls: self._tear_down(calls, is_confirmed, evidence))

    def _tear_down(self, calls: SimulatedCalls, is_confirmed: bool, evidence: Profile | None) -> Outcome:
        if is_confirmed and self.site.job is not None and self.site.job.is_running:
            raise Refused(CLUSTER, "remove its workers", "a training job runs on them", "wait until it ends")
        own = TeardownCalls(self.built, calls.run, calls.faults)
        self.shown = own.lines
        given = {
            "inventory_hostname": CLUSTER,
            "teardown_confirm": is_confirmed,
            "teardown_evidence": "/evidence.json" if evidence else "",
            "teardown_record_dir": str(self.built.records),
            "esxi_host_force_unlock": False,
            "esxi_host_lock_ttl": 7200,
        }
        replaced = {"rollback": lambda _scope: self._restore(own, evidence)}
        RoleTasks(own.run_module, replaced).run("teardown", given)
        return Outcome()

    def _restore(self, calls: TeardownCalls, evidence: Profile | None) -> None:
        """Restore the hosts, as the role rollback does with the program of the rollout."""
        assert evidence is not None
        options = RolloutOptions(HostChangeOptions(CLUSTER, evidence.option))
        plan = plan_hosts(calls, options)
        require_possible(plan)
        if plan["in_service"] or plan["leaving"]:
            rollout(Program(MemoryJournal(), calls), calls, options)


class BuildingMachine(SiteMachine):
    """A cluster that is built, used and removed, while others act and controllers die."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: set[str] = set()
        self.folder = TemporaryDirectory()
        self.team: BuildingTeam = BuildingTeam(self.site)
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

    @rule(
        is_adopting=st.booleans(),
        restores=st.booleans(),
        is_connected=st.booleans(),
        is_unfinished=st.booleans(),
        faults=FAULTS,
        more=FAULTS,
    )
    @precondition(lambda self: not any(folder.is_open for folder in self.team.folders))
    def remove_cluster(
        self, is_adopting: bool, restores: bool, is_connected: bool, is_unfinished: bool, faults: Any, more: Any
    ) -> None:
        """Remove what was built, continue until nothing is left, and build it again."""
        self.build(is_adopting)
        self.gone = set(self.built.workers)
        self.built.unfinished = {"w4"} if is_unfinished else set()
        self.built.connected = {"database"} if is_connected else set()
        evidence = Profile(self.site.requested.level + 1, 1) if restores else None
        self.not_removed(evidence)
        self.built.connected = set()
        for some in (acts(faults), acts(more)):
            self.check_teardown(self.team.teardown(is_confirmed=True, evidence=evidence, faults=some))
        self.remove_the_rest(evidence)
        self.site.workers = dict(self.placed)
        self.site.requested = evidence or self.site.requested
        self.build(is_adopting=False)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()

    def not_removed(self, evidence: Profile | None) -> None:
        """Without a confirmation, and while others use the network, a teardown writes nothing."""
        writes = self.site.writes
        shown = self.team.teardown(is_confirmed=False, evidence=evidence)
        assert shown.is_success or self.built.connected, shown.message
        if self.built.connected:
            outcome = self.team.teardown(is_confirmed=True, evidence=evidence)
            refused = ("database stays and is connected to rdma-vmk", "a training job runs")
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
        assert set(self.site.workers) == set(self.placed) - self.gone

    def remove_the_rest(self, evidence: Profile | None) -> None:
        self.next_controller()
        self.calm()
        ACTS["finishes"](SimulatedCalls(self.site, "nobody", {}), "")
        outcomes = []
        for _run in range(MOST_RUNS):
            outcomes.append(self.team.teardown(is_confirmed=True, evidence=evidence))
            if outcomes[-1].is_success:
                break
        assert outcomes[-1].is_success, f"running again does not converge: {[one.message for one in outcomes]}"
        self.check_removed()
        event("a cluster was removed")
        writes = self.site.writes
        again = self.team.teardown(is_confirmed=True, evidence=evidence)
        assert again.is_success and (evidence or self.site.writes == writes), "a second run writes"
