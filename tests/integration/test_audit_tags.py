"""Tenants by their tags, which only vCenter's REST API knows."""

from __future__ import annotations

from typing import Any

import pytest

from lab.person import opened
from lab.simulator import PASSWORD, Simulator
from plugins.module_utils.vsphere import properties, rest
from plugins.module_utils.vsphere.sdk import vim
from tests.integration.ansible import Ansible

TAGGING = "/rest/com/vmware/cis/tagging"
BY_TAG = {"cluster": "gpu", "group_by": "tag", "tag_category": "team"}
PLACE = """
host_defaults:
  hardware: t4_cx5
  graphics: {default: sharedDirect}
  vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: "550.90.05-1", vendor: NVIDIA}]
clusters: [{name: gpu, hosts: [{name: "esx%02d.lab", count: 2}]}]
vms:
  - {name: half-a, host: esx01.lab, powered_on: true, vgpu: grid_t4-8c}
  - {name: half-b, host: esx01.lab, powered_on: true, vgpu: grid_t4-8c}
  - {name: whole, host: esx02.lab, powered_on: true, vgpu: grid_t4-16c}
"""


pytestmark = pytest.mark.datacentre(text=PLACE)


def tag(vcenter: Simulator, **carried: dict[str, list[str]]) -> None:
    """Make categories with tags, and put the tags on virtual machines, as a person with vCenter's API does."""
    with opened(vcenter) as one, rest.opened(one) as api:
        ids = {values["name"]: ref._moId for ref, values in properties.find_all(one, vim.VirtualMachine, ("name",))}

        def make(kind: str, **spec: Any) -> str:
            body = {"create_spec": {"description": "", **spec}}
            return str(api.send("POST", f"{TAGGING}/{kind}", body, tried=f"make a {kind}")["value"])

        for category, tags in carried.items():
            kept = make("category", name=category, cardinality="MULTIPLE", associable_types=[])
            for name, machines in tags.items():
                place_of = f"{TAGGING}/tag-association/id:{make('tag', name=name, category_id=kept)}?~action=attach"
                for machine in machines:
                    who = {"object_id": {"type": "VirtualMachine", "id": ids[machine]}}
                    api.send("POST", place_of, who, tried="attach a tag")
    vcenter.clear()


def tenants(ansible: Ansible, category: str) -> dict[str, str]:
    """Who has which virtual machine, by the tags of a category."""
    outcome = ansible.module("gpu_usage", **{**BY_TAG, "tag_category": category})
    assert outcome.rc == 0 and outcome.result["usage"]["group_by"] == category, outcome.out
    return {one["vm"]: one["tenant"] for gpu in outcome.result["usage"]["gpus"] for one in gpu["users"]}


def test_groups_tenants_by_tags_of_one_category(vcenter: Simulator, ansible: Ansible) -> None:
    team = {"green": ["half-a", "whole"], "dark": ["whole"], "spare": []}
    tag(vcenter, team=team, other={"loud": ["half-a", "half-b"]}, empty={})
    assert tenants(ansible, "team") == {"half-a": "green", "half-b": "", "whole": "dark, green"}
    assert tenants(ansible, "other") == {"half-a": "loud", "half-b": "loud", "whole": ""}
    assert set(tenants(ansible, "empty").values()) == {""}
    assert vcenter.writes() == []


def test_names_a_missing_category_and_the_existing_ones(vcenter: Simulator, ansible: Ansible) -> None:
    assert "tag_category" in ansible.module("gpu_usage", cluster="gpu", group_by="tag").msg
    none = ansible.module("gpu_usage", **BY_TAG)
    assert "could not find its tag category team: it has none; name one of them, or create it" in none.msg
    tag(vcenter, teams={"green": ["half-a"]}, other={})
    lacking = ansible.module("gpu_usage", **BY_TAG)
    assert "could not find its tag category team: it has other, teams; name one of them" in lacking.msg


@pytest.mark.parametrize(
    ("call", "status", "words"),
    [
        ("GET /api/cis/tagging/category", 404, "could not list its tag categories: the server said 404"),
        (
            "POST /api/cis/tagging/tag-association?action=list-attached-tags-on-objects",
            403,
            "could not read which virtual machines carry which tags: the server said 403",
        ),
    ],
)
def test_refused_tag_request_shows_no_secrets(
    vcenter: Simulator, ansible: Ansible, call: str, status: int, words: str
) -> None:
    tag(vcenter, team={"green": ["half-a"]})
    vcenter.fault(call, status=status)
    refused = ansible.module("gpu_usage", **BY_TAG)
    assert refused.rc == 1 and words in refused.msg, refused.msg
    assert PASSWORD not in refused.out and vcenter.writes() == []
