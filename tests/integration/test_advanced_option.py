"""esxi_advanced_option against the simulated data centre: alone, in a host's profile, in evidence and rollback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.simulator import Simulator
from plugins.module_utils.hosts.rollback.evidence import document
from tests.integration.ansible import Ansible
from tests.integration.refusals import Case

FAILURES, THREADS = "Security.AccountLockFailures", "VMkernel.Boot.hyperthreading"
# As hosts have it: a key with brackets, whose value is not its default.
LEVEL = "Config.HostAgent.level[Vmsvc].logLevel"
OPTIONS: dict[str, Any] = {
    FAILURES: "3",
    LEVEL: "info",
    "Config.HostAgent.plugins.solo.enableMob": True,
    THREADS: False,
}
DESIRED: dict[str, Any] = {"cluster": "gpu", "options": OPTIONS}
WITHOUT_PRIVILEGE = (Case("esxi_advanced_option", DESIRED, "HostSystem.UpdateOptions", "Host.Config.AdvancedConfig"),)


def updates(vcenter: Simulator) -> list[str]:
    return sorted(write["name"] for write in vcenter.writes() if write["method"] == "UpdateOptions")


def test_check_writes_nothing_and_a_second_run_changes_nothing(vcenter: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("esxi_advanced_option", check=True, **DESIRED)
    assert planned.changed and vcenter.writes() == [], planned.out
    applied = ansible.module("esxi_advanced_option", **DESIRED)
    assert applied.changed and applied.result["diff"] == planned.result["diff"], applied.out
    assert updates(vcenter) == [f"esx{number:02d}.lab" for number in range(1, 6)]
    vcenter.clear()
    again = ansible.module("esxi_advanced_option", **DESIRED)
    assert not again.changed and vcenter.writes() == [] and again.result["needs"] == ["reboot"]
    assert again.host("esx01.lab")["state"] == {**OPTIONS, FAILURES: 3}


def test_refuses_what_the_hosts_do_not_allow_before_any_write(vcenter: Simulator, ansible: Ansible) -> None:
    refused = ansible.module(
        "esxi_advanced_option", cluster="gpu", options={"NFS.MaxVolumes": 7, "Mem.ShareForceSaltin": 0}
    )
    assert refused.rc == 1 and vcenter.writes() == []
    assert "NFS.MaxVolumes: 7 is not within 8 to 256" in refused.msg
    assert "Mem.ShareForceSaltin: the host has no such option; similar options: Mem.ShareForceSalting" in refused.msg


def test_a_deaf_host_is_found_out(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.fault("UpdateOptions", "deaf", name="esx03.lab")
    outcome = ansible.module("esxi_advanced_option", **DESIRED)
    assert outcome.rc == 1 and "accepted the change, yet" in outcome.msg
    assert [entry["host"] for entry in outcome.result["hosts"] if entry.get("failed")] == ["esx03.lab"]


def test_a_profile_sets_them_and_evidence_restores_them(vcenter: Simulator, ansible: Ansible, tmp_path: Path) -> None:
    profile, shown = {"advanced_options": OPTIONS}, {"cluster": "gpu", "gather": ["advanced_options"]}
    before = ansible.module("esxi_info", profile=profile, **shown).result
    cluster = ansible.module("cluster_info", cluster="gpu").result
    file = tmp_path / "before.json"
    file.write_text(json.dumps(document(before, cluster, {"profile": profile, "host_profiles": {}}, "now")))
    done = ansible.module("esxi_profile", cluster="gpu", profile=profile)
    assert done.changed and done.result["needs"] == ["reboot"], done.out
    plan = ansible.adhoc("program", name="rollback", options={"evidence": str(file), "cluster": "gpu"}).result
    assert plan["profiles"]["esx01.lab"] == {"advanced_options": before["hosts"][0]["advanced_options"]}
    assert ansible.module("esxi_profile", cluster="gpu", host_profiles=plan["profiles"]).changed
    assert ansible.module("esxi_info", profile=profile, **shown).result["hosts"][0]["advanced_options"] == {
        FAILURES: 5, LEVEL: "verbose", "Config.HostAgent.plugins.solo.enableMob": False, THREADS: True,
    }  # fmt: skip
