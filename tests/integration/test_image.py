"""esxi_image, and esxi_vib on its cluster, against the simulated data centre."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible

COMPONENT, VERSION = "NVD-AIE-800", "550.90.05-1OEM.800.1.0.20613240"
DESIRED: dict[str, Any] = {"cluster": "gpu", "components": {COMPONENT: VERSION}}


@pytest.fixture
def managed(vcenter: Simulator) -> Simulator:
    """The lab's cluster, managed by an image."""
    vcenter.set_cluster("gpu", image_managed=True)
    return vcenter


def changes(vcenter: Simulator) -> list[str]:
    """The kinds of writes, in order."""
    return [write["method"].split()[0] + write["method"].partition("?")[2] for write in vcenter.writes()]


def test_drafts_and_commits_the_image_once(managed: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("esxi_image", check=True, **DESIRED)
    assert planned.changed, planned.out
    assert managed.writes() == []
    applied = ansible.module("esxi_image", **DESIRED)
    assert applied.rc == 0, applied.out
    assert applied.result["diff"] == planned.result["diff"]
    assert changes(managed) == ["POST", "PATCH", "POSTaction=commit"]
    assert applied.result["state"]["components"] == {COMPONENT: VERSION}
    managed.clear()
    again = ansible.module("esxi_image", **DESIRED)
    assert (again.changed, managed.writes()) == (False, [])
    assert again.result["why"] == ["hosts run the image after a window with it, or when vLCM remediates the cluster"]
    gone = ansible.module("esxi_image", cluster="gpu", absent=[COMPONENT])
    assert (gone.changed, gone.result["state"]["components"]) == (True, {})
    assert gone.result["state"]["compliance"] == "compliant"


def test_failed_commit_leaves_no_draft(managed: Simulator, ansible: Ansible) -> None:
    drafts = f"/api/esx/settings/clusters/{managed.ask('GET', '/clusters/gpu')['moid']}/software/drafts"
    managed.fault(f"POST {drafts}/1?action=commit", "fault", status=500)
    failed = ansible.module("esxi_image", **DESIRED)
    assert "the server said 500" in failed.msg
    assert changes(managed) == ["POST", "PATCH", "POSTaction=commit", "DELETE"]
    assert ansible.module("esxi_image", **DESIRED).rc == 0


def test_rest_session_checks_the_certificate_fingerprint(managed: Simulator, ansible: Ansible) -> None:
    pinned = ansible.module("esxi_image", tls_fingerprint=managed.facts["fingerprint"], **DESIRED)
    assert pinned.rc == 0, pinned.out
    assert "fingerprint" in ansible.module("esxi_image", tls_fingerprint="00" * 32, **DESIRED).msg.lower()


HOST: dict[str, Any] = {"hosts": ["esx01.lab"]}


def test_applies_the_image_to_one_emptied_host(managed: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("esxi_image", check=True, accept_eula=True, **DESIRED, **HOST)
    assert planned.rc == 0 and planned.result["hosts"][0]["needs"] == ["maintenance", "reboot"], planned.out
    assert planned.result["hosts"][0]["why"] == ["the image of its cluster is applied by vLCM (probably 1 reboot)"]
    assert managed.writes() == []
    early = ansible.module("esxi_image", accept_eula=True, **DESIRED, **HOST)
    assert "the image is applied only in maintenance mode: enter it first" in early.msg
    assert ansible.module("esxi_power", state="maintenance", **HOST).changed
    managed.clear()

    applied = ansible.module("esxi_image", accept_eula=True, **DESIRED, **HOST)

    assert applied.rc == 0 and changes(managed) == ["POSTaction=apply"], applied.out
    (host,) = applied.result["hosts"]
    assert host["changed"] and (host["state"]["compliance"], host["needs"]) == ("compliant", [])
    info = ansible.module("esxi_info", cluster="gpu", gather=["vib"]).result["hosts"]
    with_manager = [one["host"] for one in info if any(vib["version"] == VERSION for vib in one["vibs"]["running"])]
    assert with_manager == ["esx01.lab"]
    managed.clear()
    again = ansible.module("esxi_image", accept_eula=True, **DESIRED, **HOST)
    assert (again.changed, managed.writes()) == (False, []), again.out


def test_refuses_to_apply_with_another_policy(managed: Simulator, ansible: Ansible) -> None:
    policy = {"pre_remediation_power_action": "POWER_OFF_VMS", "disable_hac": True}
    managed.set_cluster("gpu", image_components={COMPONENT: VERSION}, image_policy=policy)
    refused = ansible.module("esxi_image", cluster="gpu", accept_eula=True, **HOST)
    reason = "virtual machines (POWER_OFF_VMS), and disables the admission control of HA"
    assert refused.rc == 1 and reason in refused.msg and managed.writes() == [], refused.out


def test_refuses_a_base_image_missing_from_the_depot(managed: Simulator, ansible: Ansible) -> None:
    failed = ansible.module("esxi_image", cluster="gpu", base_image="9.9.9-0.0.1")
    assert "Base image with version 9.9.9-0.0.1 cannot be found in depot" in failed.msg
    add_on = ansible.module("esxi_image", cluster="gpu", add_on={"name": COMPONENT, "version": VERSION})
    assert add_on.rc == 0 and add_on.result["state"]["add_on"] == {"name": COMPONENT, "version": VERSION}, add_on.out


def test_imports_a_bundle_once(managed: Simulator, ansible: Ansible) -> None:
    url = "http://depot.lab/NVD-AIE-800_550.90.05.zip"
    assert ansible.module("esxi_image", check=True, depot=url).changed and managed.writes() == []
    assert ansible.module("esxi_image", depot=url).changed
    managed.clear()
    assert not ansible.module("esxi_image", depot=url).changed and managed.writes() == []
    failed = ansible.module("esxi_image", depot="http://depot.lab/none.zip")
    assert "Cannot download the bundle" in failed.msg and "check that vCenter can reach this URL" in failed.msg
