"""The writing cases run on a confirmed cluster without others, restore it, and show which answers differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.site.conformance import conformance
from plugins.module_utils.site.conformance.writing_cases import CASES, Step

NAMES = {"cluster": "c-secret", "host": "a-secret", "other": "b-secret", "worker": "dml-conformance"}
GIVEN = {"template": "t-secret", "uplink": "vmnic2"}
VIB = {"name": "vib-secret", "version": "1.0-secret", "source": "/vmfs/volumes/secret/x.vib"}
OPTIONS = {"cluster": "c-secret", "confirm": "c-secret", **GIVEN, "vib": VIB}
NAMES |= {**GIVEN, "vmk": "vmk2", **{"vib" if key == "name" else f"vib_{key}": text for key, text in VIB.items()}}
READS = ("cluster_info", "site", "esxi_info")


def built(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a module that has these answers."""
    result: dict[str, Any] = {"failed": False}
    if "fault" in answers:
        result["msg"] = f"c-secret: could not log in: the server said {answers['fault']}: wrong"
    for path, value in answers.items():
        place, (*parents, last) = (
            result,
            path.split(".") if "UserVars" not in path else ("hosts", "0", "state", path[14:]),
        )
        for part in parents:
            place = place.setdefault(part, {})
        place[last] = conformance.filled(value, NAMES)
    return as_lists(result)


def as_lists(value: Any) -> Any:
    """Turn objects with a first entry 0 into lists, and names of rules into findings."""
    if not isinstance(value, dict):
        return value
    known = {key: as_lists(entry) for key, entry in value.items()}
    if "stops" in known:
        known["stops"] = [{"rule": rule} for rule in known["stops"]]
    return [known["0"]] if "0" in known else known


class Site:
    """A cluster that answers each step like the simulated one; ``changes`` has other answers by the text of a step."""

    def __init__(self, **changes: dict[str, Any]) -> None:
        self.cases = [case.steps for case in CASES]
        self.changes = {text.replace("_", " "): result for text, result in changes.items()}
        self.vms: list[dict[str, str]] = [{"vm": "vCLS-1", "folder": "vCLS"}, {"vm": "dml-conformance", "folder": "vm"}]
        self.out: list[dict[str, Any]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.restored: dict[str, dict[str, Any]] = {}
        self.image_managed = self.installed = False

    def here(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((name, options))
        if options.get("gather") == ["vms"]:
            return {"cluster": self.cluster}
        if name == "esxi_info":
            return {"hosts": [{"host": "a-secret", "vmkernel": [{"device": "vmk0"}, {"device": "vmk1"}]}]}
        step = self._next(name, options)
        if step is None:
            return self.restored.get(name, {})
        return self.changes.get(step.text, built(step.answers))

    def planned(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
        assert (name, options) == ("esxi_vib", {"hosts": ["a-secret"], "name": "vib-secret", "state": "absent"})
        return {"changed": self.installed}

    def _next(self, name: str, options: dict[str, Any]) -> Step | None:
        """Return the step that makes this call: that after the last one, or the first one of a later case.

        Calls before all steps, and those after the steps of a case, restore.
        """
        if not any(given.get("run") == "second" for _name, given in self.calls):
            return None
        for number, steps in enumerate(self.cases):
            if steps and (steps[0].module, conformance.filled(steps[0].options, NAMES)) == (name, options):
                self.cases = [steps[1:], *self.cases[number + 1 :]]
                return steps[0]
        return None

    @property
    def cluster(self) -> dict[str, Any]:
        hosts = [{"host": name, "version": "8.0.3", "build": "1"} for name in ("b-secret", "a-secret")]
        vcenter = {"version": "8.0.3", "build": "2"}
        machines = {"vms": self.vms, "out_of_service": self.out, "image_managed": self.image_managed}
        return {"name": "c-secret", "hosts": hosts, "vcenter": vcenter, **machines}

    @property
    def writes(self) -> list[str]:
        return [name for name, _options in self.calls if name not in READS]


def rows(result: Mapping[str, Any]) -> dict[str, bool | None]:
    return {f"{row['case']}, {row['step']}": row["equal"] for row in result["document"]["cases"]}


def test_equal_answers_pass_and_hide_site_names() -> None:
    site = Site()
    result = conformance.run(site, OPTIONS)
    assert set(rows(result).values()) == {True} and result["error"] == ""
    assert "secret" not in json.dumps(result["document"]) and "{host}" in json.dumps(result["document"])
    assert result["document"]["vcenter"] == {"version": "8.0.3", "build": "2"}
    assert site.calls[-1] == ("cluster_lock", {"cluster": "c-secret", "state": "free"})
    assert len(result["lines"]) == sum(len(case.steps) for case in CASES)


def test_skips_cases_whose_inputs_are_missing() -> None:
    site = Site()
    found = rows(conformance.run(site, {**OPTIONS, "template": "", "uplink": "", "vib": {}}))
    assert {name.partition(",")[0] for name, equal in found.items() if equal is None} == {"worker", "switch", "VIB"}
    assert {"worker_vm", "worker_rules", "vmotion", "rdma_fabric", "esxi_pvrdma"} & set(site.writes) == set()


def test_tries_no_package_on_image_managed_hosts() -> None:
    site = Site()
    site.image_managed = True
    found = rows(conformance.run(site, OPTIONS))
    assert {name.partition(",")[0] for name, equal in found.items() if equal is None} == {"VIB", "faults"}
    assert "esxi_vib" not in site.writes


def test_refuses_an_installed_vib_that_cases_would_remove() -> None:
    site = Site()
    site.installed = True
    with pytest.raises(CollectionError, match="VIB vib-secret is installed on a-secret, and the cases remove it"):
        conformance.run(site, OPTIONS)
    assert site.writes == []


def test_a_vib_without_its_source_is_refused() -> None:
    site = Site()
    with pytest.raises(CollectionError, match="conformance_vib has no source; add name, version and source"):
        conformance.run(site, {**OPTIONS, "vib": {"name": "tool", "version": "1"}})
    assert site.writes == []


def test_a_differing_fault_names_its_type() -> None:
    refused = {"failed": True, "msg": "c-secret: could not log in: the server said NotAuthenticated: c-secret"}
    site = Site(a_wrong_password=refused)
    result = conformance.run(site, OPTIONS)
    (row,) = [row for row in result["document"]["cases"] if row["equal"] is False]
    assert (row["case"], row["site"]) == ("sessions", {"failed": True, "fault": "NotAuthenticated"})


@pytest.mark.parametrize("confirm", ["", "another", "c-secret "])
def test_an_unconfirmed_cluster_is_refused_before_any_call(confirm: str) -> None:
    site = Site()
    with pytest.raises(CollectionError, match=r"could not run the writing cases .*conformance_confirm=c-secret"):
        conformance.run(site, {**OPTIONS, "confirm": confirm})
    assert site.calls == []


def test_refuses_a_cluster_with_machines_of_other_users() -> None:
    site = Site()
    site.vms.append({"vm": "database", "folder": "vm"})
    with pytest.raises(CollectionError, match="virtual machines of others run there: database"):
        conformance.run(site, OPTIONS)
    assert site.writes == []


def test_refuses_to_run_with_one_available_host() -> None:
    site = Site()
    site.out = [{"host": "b-secret", "ours": False}]
    with pytest.raises(CollectionError, match="of its hosts, a-secret can be used, and the cases need two"):
        conformance.run(site, OPTIONS)
    assert site.writes == []


def test_a_failed_case_ends_and_restores_the_site() -> None:
    site = Site(enter={"failed": True, "msg": "a-secret: it stays"})
    result = conformance.run(site, OPTIONS)
    found = rows(result)
    assert found["maintenance and reboot, enter"] is False and found["maintenance and reboot, boot"] is None
    assert found["worker, move"] is True, "the next case is tried"
    assert "1 of 49 steps unlike the simulated data centre: maintenance and reboot, enter." in result["error"]
    assert any("a-secret: it stays" in line for line in result["lines"])
    assert "secret" not in json.dumps(result["document"])
    power = {"hosts": ["a-secret"], "moved_by": "module", "rollout": True}
    entered = site.calls.index(("esxi_power", {**power, "state": "maintenance"}))
    assert site.calls[entered + 1] == ("esxi_power", {**power, "state": "in_service"}), "it is restored at once"


def test_a_differing_value_hides_the_sites_text() -> None:
    site = Site(rule={"changed": True, "state": {"affinity": {"rule": "a-private-name"}}})
    result = conformance.run(site, OPTIONS)
    (row,) = [row for row in result["document"]["cases"] if row["equal"] is False]
    assert row["site"] == {"changed": True, "state.affinity.rule": "another text"}
    assert rows(result)["worker, rule again"] is True


def test_a_failed_restoration_is_an_error() -> None:
    site = Site()
    site.restored["shared_settings"] = {"failed": True, "msg": "c-secret: no answer."}
    assert conformance.run(site, OPTIONS)["error"] == "Cluster c-secret was not restored: c-secret: no answer."


def test_check_mode_lists_the_cases_without_a_call() -> None:
    result = conformance.planned({**OPTIONS, "template": ""})
    assert "maintenance and reboot: boot" in result["lines"] and "worker: move" not in result["lines"]
