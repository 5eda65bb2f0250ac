# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""esxi_image, and esxi_vib on its cluster, against the simulated data centre."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible

COMPONENT, VERSION = "NVD-AIE-800", "550.90.05-1OEM.800.1.0.20613240"
DESIRED: dict[str, Any] = {"cluster": "gpu", "component": COMPONENT, "version": VERSION}


@pytest.fixture
def managed(vcenter: Simulator) -> Simulator:
    """The lab's cluster, managed by an image."""
    vcenter.set_cluster("gpu", image_managed=True)
    return vcenter


def changes(vcenter: Simulator) -> list[str]:
    """The kinds of writes, in order."""
    return [write["method"].split()[0] + write["method"].partition("?")[2] for write in vcenter.writes()]


def test_the_image_is_drafted_and_committed_once(managed: Simulator, ansible: Ansible) -> None:
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
    assert again.result["why"] == [f"hosts take {COMPONENT} when vLCM remediates the cluster"]
    gone = ansible.module("esxi_image", cluster="gpu", component=COMPONENT, state="absent")
    assert (gone.changed, gone.result["state"]["components"]) == (True, {})
    assert gone.result["state"]["compliance"] == "compliant"


def test_a_component_that_no_depot_has_leaves_no_draft(managed: Simulator, ansible: Ansible) -> None:
    failed = ansible.module("esxi_image", **{**DESIRED, "version": "1.0"})
    assert "cannot be found in depot; import the bundle in Lifecycle Manager" in failed.msg
    assert ansible.module("esxi_image", **DESIRED).changed


def test_a_commit_that_fails_leaves_no_draft(managed: Simulator, ansible: Ansible) -> None:
    drafts = f"/api/esx/settings/clusters/{managed.ask('GET', '/clusters/gpu')['moid']}/software/drafts"
    managed.fault(f"POST {drafts}/1?action=commit", "fault", status=500)
    failed = ansible.module("esxi_image", **DESIRED)
    assert "the server said 500" in failed.msg
    assert changes(managed) == ["POST", "PATCH", "POSTaction=commit", "DELETE"]
    assert ansible.module("esxi_image", **DESIRED).rc == 0


def test_single_vibs_and_an_image_exclude_each_other(vcenter: Simulator, ansible: Ansible) -> None:
    by_image = ansible.module("esxi_image", **DESIRED)
    assert "not managed by an image; install the VIB on its hosts with esxi_vib" in by_image.msg
    vcenter.set_cluster("gpu", image_managed=True)
    by_hand = ansible.module(
        "esxi_vib", hosts=["esx01.lab"], name="NVD-AIE_ESXi_8.0.0_Driver", version=VERSION, source="[shared] X.zip"
    )
    assert "esx01.lab" in by_hand.msg
    assert "change the component in the cluster's image with esxi_image" in by_hand.msg
    assert vcenter.writes() == []


def test_the_rest_session_checks_the_certificate_as_the_other_does(managed: Simulator, ansible: Ansible) -> None:
    pinned = ansible.module("esxi_image", tls_fingerprint=managed.facts["fingerprint"], **DESIRED)
    assert pinned.rc == 0, pinned.out
    assert "fingerprint" in ansible.module("esxi_image", tls_fingerprint="00" * 32, **DESIRED).msg.lower()
