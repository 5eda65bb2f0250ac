"""Unknown names in a request are rejected with a sentence, existing names are accepted."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.inventory.manager import InventoryManager

from plugins.module_utils.core import run_request
from plugins.module_utils.core.run_request import (
    Known,
    RunRequest,
    evaluate,
    harmful_variables,
    in_order,
    is_selected,
    limit_parts,
    missing_workers,
    narrowing_options,
    problems,
    unanswered,
    unknown_variables,
    worker_pattern,
)

KNOWN = Known(
    roles={
        "esxi_host": ["esxi_host_canary", "esxi_host_profile", "esxi_host_profiles"],
        "fabric": ["fabric_port_groups"],
        "node": ["node_user"],
        "worker": ["worker_vms", "worker_power_cycle"],
    },
    playbooks={
        "site": {},
        "fabric": {"tags": ["fabric"]},
        "hosts": {"tags": ["hosts"], "roles": ["esxi_host"], "options": ["canary", "max_out_of_service"]},
        "workers": {"tags": ["workers"], "roles": ["worker"], "options": ["power_cycle"]},
        "guests": {"tags": ["guests", "node"], "options": ["guests", "stack"], "variables": ["guest_image", "vm_host"]},
    },
    site=("fabric", "hosts", "workers", "guests"),
)
GROUPS = {"all": ["one", "two", "w1", "w2"], "clusters": ["one", "two"], "workers": ["w1", "w2"], "ungrouped": []}


def found(playbook: str = "hosts", pattern: str = "clusters", **request: Any) -> str:
    given = {"playbooks": (playbook,), "groups": GROUPS, "sources": ("hosts.yml",), **request}
    return "; ".join(problems(KNOWN, RunRequest(**given), playbook, pattern))


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ({"extra": ("canarry",)}, "-e canarry: this variable does not exist (did you mean canary?)"),
        ({"extra": ("_raw_params",)}, "-e has a word without '=': write NAME=VALUE without blanks around '='"),
        ({"extra": ("kanary",)}, "did you mean canary?"),
        ({"extra": ("esxi_host_profil",)}, "did you mean esxi_host_profile?"),
        ({"extra": ("fabric_port_group",)}, "did you mean fabric_port_groups?"),
        ({"extra": ("fabric_colour",)}, "-e fabric_colour: this variable does not exist"),
        ({"extra": ("stack",)}, "-e stack: hosts does not read this option, only guests, site"),
        ({"playbook": "fabric", "extra": ("canary",)}, "fabric does not read this option, only hosts, site"),
        (
            {"playbook": "workers", "extra": ("worker_power_cycle",)},
            "-e worker_power_cycle: this would outrank power_cycle, which the playbook checks first",
        ),
        ({"playbook": "site", "extra": ("worker_power_cycle", "esxi_host_canary")}, "give -e canary instead"),
        ({"playbook": "site", "extra": ("worker_power_cycle", "esxi_host_canary")}, "give -e power_cycle instead"),
        ({"playbooks": ("mine",), "extra": ("esxi_host_canary",)}, "give -e canary instead"),
        ({"tags": ("host",)}, "--tags host: hosts has no such tag; its tags are hosts"),
        ({"skipped_tags": ("fabrik",)}, "--skip-tags fabrik: hosts has no such tag"),
        ({"playbook": "site", "tags": ("gests",)}, "its tags are fabric, guests, hosts, node, workers"),
        ({"tags": ("untagged",)}, "--tags untagged selects no work of hosts; its tags are hosts"),
        ({"tags": ("never",)}, "--tags never selects no work of hosts"),
        ({"tags": ("always",)}, "--tags always selects no work of hosts"),
        ({"skipped_tags": ("all",)}, "--skip-tags all selects no work of hosts"),
        ({"skipped_tags": ("tagged",)}, "--skip-tags tagged selects no work of hosts"),
        ({"skipped_tags": ("hosts",)}, "--skip-tags hosts selects no work of hosts"),
        ({"playbook": "site", "skipped_tags": ("fabric", "hosts", "workers", "guests")}, "selects no work of site"),
        (
            {"playbook": "site", "tags": ("hosts",), "skipped_tags": ("hosts",)},
            "--tags hosts --skip-tags hosts selects no",
        ),
        ({"playbook": "guests", "tags": ("node",), "skipped_tags": ("node",)}, "selects no work of guests"),
        ({"skipped_tags": ("always",)}, "--skip-tags always leaves out checks that protect running jobs"),
        ({"start_at_task": "Plan"}, "--start-at-task 'Plan' leaves out checks that protect running jobs"),
        (
            {"pattern": "localhost", "limit": ("one",)},
            "--limit one leaves out localhost, on which the playbook hosts runs",
        ),
        ({"groups": {}}, "the playbook hosts needs hosts that match clusters, but the inventory hosts.yml has none"),
        ({"groups": {}, "sources": ()}, "the inventory no file has none; name an inventory with -i"),
        ({"groups": {**GROUPS, "clusters": []}}, "has none; name an inventory with -i"),
        ({"pattern": "workers", "groups": {**GROUPS, "workers": []}}, "step 7 of docs/cluster.md"),
        ({"pattern": "w3"}, "needs hosts that match w3"),
        (
            {"limit": ("esx01.lab",)},
            "--limit esx01.lab: the inventory has no such host or group; its clusters are one, two",
        ),
        ({"limit": ("one,esx01.lab",)}, "--limit esx01.lab: the inventory has no such host or group"),
        ({"limit": ("one:!esx01.lab",)}, "--limit !esx01.lab: the inventory has no such host or group"),
        ({"limit": ("w1",)}, "--limit w1 selects none of the hosts of the playbook hosts (one, two)"),
        ({"limit": ("one", "!one")}, "--limit one,!one selects none of the hosts"),
        ({"limit": ("clusters[2:3]",)}, "--limit clusters[2:3] selects none of the hosts"),
        ({"limit": ("localhost",)}, "--limit localhost selects none of the hosts"),
    ],
)
def test_a_name_that_does_not_exist_is_rejected(request_: dict[str, Any], sentence: str) -> None:
    assert sentence in found(**request_)


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"extra": ("canary", "max_out_of_service", "esxi_host_profile", "fabric_port_groups", "node_user", "vm_host")},
        {"extra": ("ansible_user", "lab_place", "my_site", "__training_ssh", "node_exporter_port", "hosts")},
        {"playbook": "site", "extra": ("canary", "stack", "guests"), "tags": ("hosts", "node")},
        {"playbook": "workers", "extra": ("power_cycle", "worker_vms", "esxi_host_canary")},
        {"playbooks": ("mine",), "extra": ("canary", "stack"), "tags": ("anything",)},
        {"tags": ("hosts", "always")},
        {"tags": ("tagged",), "skipped_tags": ("untagged", "never")},
        {"playbook": "site", "skipped_tags": ("hosts", "node")},
        {"playbook": "guests", "playbooks": ("site",), "pattern": "workers", "groups": {}, "skipped_tags": ("guests",)},
        {"pattern": "localhost", "limit": ("one,localhost",)},
        {"pattern": "localhost", "limit": ("all",), "groups": {**GROUPS, "all": ["localhost"]}},
        {"pattern": "localhost", "limit": ("one",), "needs_workers": False},
        {"limit": ("one",)},
        {"limit": ("clusters:!two",)},
        {"limit": ("all", "&o*")},
        {"limit": ("~o.*", "two")},
        {"limit": ("one,localhost",)},
        {"limit": ("clusters[0]",)},
        {"pattern": "workers", "limit": ("workers",)},
        {"pattern": "localhost", "groups": {}},
        {"playbook": "guests", "playbooks": ("site",), "pattern": "workers", "groups": {}, "needs_workers": False},
    ],
)
def test_a_request_whose_names_exist_is_accepted(request_: dict[str, Any]) -> None:
    assert found(**request_) == ""


def test_ignores_hosts_of_playbooks_without_selected_tags() -> None:
    request = RunRequest(("site",), tags=("hosts",), groups={"clusters": ["one"]})
    assert not is_selected(KNOWN, request, "guests") and is_selected(KNOWN, request, "hosts")
    assert problems(KNOWN, request, "guests", "workers") == []


@pytest.mark.parametrize(
    ("parts", "hosts"),
    [
        (["all"], {"one", "two", "w1", "w2"}),
        (["!one"], {"two", "w1", "w2"}),
        (["clusters", "w1"], {"one", "two", "w1"}),
        (["clusters:workers:&w*"], {"w1", "w2"}),
        (["nothing"], set()),
        (["workers[1]"], {"w2"}),
        (["workers[-1]"], {"w2"}),
        (["workers[-2]"], {"w1"}),
        (["workers[0:0]"], {"w1"}),
        (["workers[1:]"], {"w2"}),
        (["workers[2:3]"], set()),
        (["w*[3]"], {"w2"}),
        (["w[12]"], set()),
        (["w?[1:2]", "!w1"], {"w2"}),
        (["~w[1]"], {"w1"}),
        (["workers", "!workers[0]"], {"w2"}),
    ],
)
def test_patterns_select_hosts_as_ansible_does(parts: list[str], hosts: set[str]) -> None:
    manager = InventoryManager(loader=None, parse=False)
    for group, members in GROUPS.items():
        manager.add_group(group)
        for host in members:
            manager.add_host(host, group)

    assert evaluate(parts, GROUPS) == {host.name for host in manager.get_hosts(parts)} == hosts


@pytest.mark.parametrize(
    ("limit", "first"),
    [("workers[1:2]", "w2"), ("workers[-1]", "w2"), ("@stop.retry", "w2"), ("@stop.retry:!one", "w2"), ("", "w1")],
)
def test_chooses_the_first_host_within_the_limit(limit: str, first: str) -> None:
    parts = limit_parts(limit, {"stop.retry": "\nw2\none\n"}.__getitem__)

    assert in_order("workers", RunRequest(("stop",), limit=parts, groups=GROUPS))[0] == first


@pytest.mark.parametrize(
    ("guests", "pattern"), [(True, "workers"), ("true", "workers"), (False, "workers"), (None, "workers"), ("w1", "w1")]
)
def test_accepts_a_pattern_or_a_boolean_for_guests(guests: object, pattern: str) -> None:
    assert worker_pattern(guests) == pattern


@pytest.mark.parametrize(
    ("limit", "guests", "options"),
    [
        ("", "", ""),
        ("", True, ""),
        ("", "false", ""),
        ("", "workers", ""),
        ("", "w3", "guests=w3"),
        ("w3", "true", "--limit w3"),
        ("w1:w2", "w2", "--limit w1:w2 and guests=w2"),
    ],
)
def test_options_that_narrow_a_run_are_named(limit: str, guests: object, options: str) -> None:
    assert narrowing_options({"limit": limit, "guests": guests}) == options


@pytest.mark.parametrize(
    ("groups", "is_dynamic", "is_described", "sentence"),
    [
        ({"workers": ["w1"]}, False, False, ""),
        ({"workers": []}, True, True, ""),
        ({}, False, True, "but the inventory hosts.yml has none and no source that finds them; also give -i a file"),
        (
            {},
            False,
            False,
            "a file workers.yml with the line 'plugin: dml.vsphere.workers' (step 7 of docs/cluster.md)",
        ),
        ({}, True, False, "but the inventory hosts.yml has none and no cluster has worker_vms to build; describe them"),
    ],
)
def test_rejects_guests_without_existing_or_buildable_workers(
    groups: dict[str, list[str]], is_dynamic: bool, is_described: bool, sentence: str
) -> None:
    request = RunRequest(("site",), groups={**groups, "clusters": ["one"]}, sources=("hosts.yml",))

    found = missing_workers(request, "workers", is_dynamic=is_dynamic, is_described=is_described)

    assert len(found) == bool(sentence) and sentence in "; ".join(found)


def test_reports_misspelled_inventory_variables_with_suggestions() -> None:
    names = ("esxi_host_profil", "fabric_port_group", "guest_images", "node_usr", "fabric_port_groups", "stack", "mine")
    assert unknown_variables(KNOWN, (*names, "node_exporter_port", "inventory_hostname", "__fabric_port_group")) == [
        "the variable esxi_host_profil does not exist (did you mean esxi_host_profile?)",
        "the variable fabric_port_group does not exist (did you mean fabric_port_groups?)",
        "the variable guest_images does not exist (did you mean guest_image?)",
        "the variable node_usr does not exist (did you mean node_user?)",
    ]


def test_refuses_inventory_options_that_allow_harm() -> None:
    found = harmful_variables({"confirm", "power_off", "canary", "esxi_host_profile"})

    assert found == [
        f"the inventory sets {name}, which allows harm and would act in every run: give it as -e {name}=true in the run"
        for name in ("confirm", "power_off")
    ]


def test_does_not_compare_variables_of_ansible_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    monkeypatch.setattr(run_request, "get_close_matches", lambda name, *_more: compared.append(name) or [])

    unknown_variables(KNOWN, ("ansible_connection", "inventory_dir", "_kept", "mine", "esxi_host_profile"))

    assert compared == ["mine"]


@pytest.mark.parametrize("job", ["awx_job_id", "tower_job_id"])
def test_treats_empty_awx_answers_as_unset(job: str) -> None:
    extra = {job: 7, "canary": "", "audit_currency": "EUR", "audit_hours": 0, "other": ""}

    assert unanswered(extra, ["audit_currency", "audit_hours", "audit_price", "canary"]) == ["canary"]


def test_keeps_empty_values_from_the_command_line() -> None:
    assert unanswered({"canary": ""}, ["canary"]) == []
