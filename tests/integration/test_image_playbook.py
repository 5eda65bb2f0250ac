"""playbooks/hosts.yml and playbooks/depot.yml on a cluster that an image manages."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import PASSWORD, USERNAME, Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.releases import NEWEST
from tests.integration.rolling import arguments, datacentre, run, times

pytestmark = pytest.mark.release(NEWEST)

COMPONENT, VERSION = "NVD-AIE-800", "550.127.06-1OEM.800.1.0.20613240"
GIVEN: dict[str, Any] = {
    "esxi_host_image": {"components": {COMPONENT: VERSION}, "accept_eula": True},
    "esxi_host_profile": {},
}


def remediate(vcenter: Simulator, host: str) -> None:
    """Start a remediation of a host, as another administrator does."""
    account = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
    cluster, moid = (vcenter.ask("GET", path)["moid"] for path in ("/clusters/gpu", f"/hosts/{host}"))
    context = ssl.create_default_context(cafile=vcenter.facts["ca_file"])

    def send(path: str, body: Any, **headers: str) -> Any:
        address = f"https://{vcenter.facts['hostname']}:{vcenter.facts['port']}{path}"
        content = {"Content-Type": "application/json", **headers}
        request = urllib.request.Request(address, json.dumps(body).encode(), content)
        with urllib.request.urlopen(request, context=context) as answer:
            return json.load(answer)

    token = send("/api/session", None, Authorization=f"Basic {account}")
    path = f"/api/esx/settings/clusters/{cluster}/software?action=apply&vmw-task=true"
    send(path, {"hosts": [moid], "accept_eula": True}, **{"vmware-api-session-id": token})


@pytest.mark.slow
def test_rollback_restores_the_image_that_vlcm_replaced(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 2', ha=True))
    vcenter.set_cluster("gpu", image_managed=True)
    ansible = ansible_for(vcenter)
    planned = run(ansible, "--check", **GIVEN)
    assert planned.rc == 0 and vcenter.writes() == [], planned.out
    assert f"the image of cluster gpu changes, components: none -> {COMPONENT} {VERSION}" in planned.out

    done = run(ansible, **GIVEN, max_out_of_service=99)

    assert done.rc == 0 and "vLCM applies the image, " in done.out, done.out
    assert "max_out_of_service is 99, but at most 1 leave service at once: " in " ".join(done.out.split())
    writes = vcenter.writes()
    assert [write["method"].partition("?")[2] for write in writes if "?" in write["method"]] == [
        "action=commit",
        "action=apply",
        "action=apply",
    ]
    assert times(writes, "EnterMaintenanceMode_Task") == {"esx01.lab": 1, "esx02.lab": 1}
    assert times(writes, "RebootHost_Task") == {}, "vLCM boots the hosts"
    info = ansible.module("esxi_info", cluster="gpu", gather=["vib"]).result["hosts"]
    assert all(VERSION in [vib["version"] for vib in host["vibs"]["running"]] for host in info)
    vcenter.clear()
    again = run(ansible, **GIVEN)
    assert again.rc == 0 and vcenter.writes() == [], again.out
    _roll_back(vcenter, ansible)


def _roll_back(vcenter: Simulator, ansible: Ansible) -> None:
    """Bring the hosts back to the image of the evidence."""
    (file,) = (ansible.folder / "evidence").glob("gpu-*.json")
    assert json.loads(file.read_text())["image"]["components"] == {}
    vcenter.clear()

    def rolled_back(evidence: Path, *options: str, **variables: Any) -> Any:
        given = {"rollback_evidence": str(evidence), "esxi_host_profile": {}, **variables}
        return ansible.playbook("playbooks/rollback.yml", *arguments(ansible, *options, **given))

    refused = rolled_back(file, rollback_accept_eula=False)
    assert refused.rc != 0 and vcenter.writes() == [], refused.out
    assert "in a rollback with rollback_accept_eula=true" in " ".join(refused.out.split()), refused.out

    done = rolled_back(file, rollback_accept_eula=True)

    assert done.rc == 0, done.out
    writes = vcenter.writes()
    assert times(writes, "EnterMaintenanceMode_Task") == {"esx01.lab": 1, "esx02.lab": 1}
    info = ansible.module("esxi_info", cluster="gpu", gather=["vib"]).result["hosts"]
    assert all(VERSION not in [vib["version"] for vib in host["vibs"]["running"]] for host in info)
    vcenter.clear()
    again = rolled_back(file, rollback_accept_eula=True)
    assert again.rc == 0 and vcenter.writes() == [], again.out


def test_another_users_remediation_stops(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 2'))
    vcenter.set_cluster("gpu", image_managed=True, image_components={COMPONENT: VERSION})
    vcenter.set_host("esx02.lab", maintenance=True, reboot_seconds=600)
    remediate(vcenter, "esx02.lab")
    found = ansible_for(vcenter).module("cluster_info", cluster="gpu", leaving=["esx01.lab"])
    sentence = f"vLCM applies its image, in a remediation of esx02.lab by {USERNAME}; wait"
    assert sentence in str(found.result["stops"]), found.out


def test_imports_a_bundle_once_if_the_checksum_matches(start: Start, ansible_for: AnsibleFor, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.zip"
    bundle.write_bytes(b"the vGPU manager")
    url = bundle.as_uri()
    vib = f'{{name: a, version: "2", vendor: NVIDIA, component: {COMPONENT}}}'
    text = datacentre("name: esx01.lab").replace("depots:\n", f"depots:\n  - {{paths: [{url}], vibs: [{vib}]}}\n")
    vcenter = start(text=text)
    ansible = ansible_for(vcenter)

    def imported(checksum: str, *options: str) -> Any:
        given = {"depot_url": url, "depot_checksum": checksum}
        return ansible.playbook("playbooks/depot.yml", *options, "-e", json.dumps(given))

    wrong = imported("sha256:" + "0" * 64)
    assert wrong.rc != 0 and "did not match" in " ".join(wrong.out.split()), wrong.out
    right = "sha256:" + hashlib.sha256(bundle.read_bytes()).hexdigest()
    assert imported(right, "--check").rc == 0 and vcenter.writes() == []
    done = imported(right)
    assert done.rc == 0 and [write["method"] for write in vcenter.writes()] == ["POST /api/esx/settings/depots/offline"]
    vcenter.clear()
    assert imported(right).rc == 0 and vcenter.writes() == []
