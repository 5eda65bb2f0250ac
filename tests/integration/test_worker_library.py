"""Workers from content libraries, which stock govc fills: OVF items and VM templates, local and subscribed."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyVmomi import vim

from lab import world
from lab.simulator import ROOT, Simulator
from tests.govc import govc, output
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.releases import NEWEST
from tests.integration.sites import Site, datacentre
from tests.integration.workers import DEFAULTS, HOSTS, TEMPLATE, desired, do, host_of, machine, states

OVF = Path(__file__).parents[1] / "fixtures" / "library" / "dlvm.ovf"
ITEM = {"library": "images", "item": "dlvm", "accept_eula": True}
MAKING = {"AddCustomFieldDef", "MarkAsTemplate", "CloneVM_Task", "PowerOnVM_Task", "ReconfigVM_Task", "SetField"}


def call(template: Any, count: int = 2, **more: Any) -> dict[str, Any]:
    """Return the options for workers of a template."""
    defaults = {**DEFAULTS, "template": template, **more}
    return {**desired(count), "defaults": defaults}


def imported(vcenter: Simulator, folder: Path, path: str) -> None:
    """Import the OVF into a library, or into an item that exists, as a person does with govc."""
    ovf = folder / OVF.name
    shutil.copy(OVF, ovf)
    (folder / "dlvm.mf").write_text(f"SHA256({ovf.name})= {hashlib.sha256(ovf.read_bytes()).hexdigest()}\n")
    output(vcenter, "library.import", path, str(ovf))


@pytest.fixture
def vcenter(start: Start, tmp_path: Path) -> Simulator:
    vcenter = start(text=HOSTS)
    output(vcenter, "library.create", "-pub", "-ds", "shared", "images")
    imported(vcenter, tmp_path, "images")
    vcenter.clear()
    return vcenter


def methods(vcenter: Simulator) -> set[str]:
    return {write["method"] for write in vcenter.writes()}


def machines(vcenter: Simulator) -> list[str]:
    return sorted(output(vcenter, "find", "/", "-type", "m").split())


@pytest.mark.every_release
def test_an_item_is_deployed_once_for_all_workers(vcenter: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("worker_vm", check=True, **call(ITEM))
    assert (planned.rc, planned.changed, vcenter.writes()) == (0, True, []), planned.out
    assert any("version 2 of images/dlvm is deployed" in line for line in planned.result["plan_lines"]), planned.out
    done = ansible.module("worker_vm", **call(ITEM))
    assert done.rc == 0, done.out
    assert sum("action=deploy" in method for method in [write["method"] for write in vcenter.writes()]) == 1
    made = states(done)["worker01"]
    assert {**made["template"], "id": ""} == {"library": "images", "item": "dlvm", "version": "2", "id": ""}
    assert made["address"] == "10.0.1.1", "cloud-init took the properties of the OVF in place of guestinfo"
    (template,) = [name for name in machines(vcenter) if "/dml-gpu-dlvm-" in name]
    (read,) = govc(vcenter, "collect", "-json", template, "config.template")
    assert read["val"] is True
    vcenter.clear()
    again = ansible.module("worker_vm", **call(ITEM))
    assert (again.rc, again.changed, vcenter.writes()) == (0, False, []), again.out


def test_warns_of_properties_next_to_guest_options(vcenter: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("worker_vm", check=True, **call({**ITEM, "properties": {"vgpu-license": "x"}}, 1))

    assert "worker01: cloud-init prefers the properties of its template to its guest options" in planned.out


def test_the_last_worker_takes_all_versions_of_its_template(
    vcenter: Simulator, ansible: Ansible, tmp_path: Path
) -> None:
    before = machines(vcenter)
    assert ansible.module("worker_vm", **call(ITEM)).rc == 0
    imported(vcenter, tmp_path, "images/dlvm")
    vcenter.clear()
    drifted = ansible.module("worker_vm", **call(ITEM))
    assert (drifted.changed, vcenter.writes()) == (False, []), drifted.out
    assert "built from version 2 of images/dlvm, and images/dlvm has version 3" in drifted.out
    third = ansible.module("worker_vm", **call(ITEM, 3))
    assert states(third)["worker03"]["template"]["version"] == "3", third.out

    names = [{"name": f"worker0{number}"} for number in (1, 2, 3)]
    gone = {"cluster": "gpu", "state": "absent", "power_cycle": True}
    assert ansible.module("worker_vm", **gone, workers=names[:2]).rc == 0
    assert sum("/dml-gpu-dlvm-" in name for name in machines(vcenter)) == 2
    vcenter.clear()
    shown = ansible.module("worker_vm", check=True, **gone, workers=names)
    assert (shown.changed, vcenter.writes()) == (True, []) and len(shown.result["templates"]) == 2
    assert ansible.module("worker_vm", **gone, workers=names).rc == 0
    assert machines(vcenter) == before
    assert not ansible.module("worker_vm", **gone, workers=names).changed


def test_a_copy_of_the_template_outlives_the_workers(vcenter: Simulator, ansible: Ansible) -> None:
    """It has the record of the item, as the original has: a person made it from that."""
    assert ansible.module("worker_vm", **call(ITEM, 1)).rc == 0
    (template,) = [name for name in machines(vcenter) if "/dml-gpu-dlvm-" in name]
    output(vcenter, "vm.clone", "-vm", template, "-on=false", "-pool", "gpu/Resources", "-ds", "shared", "dml-gpu-mine")
    output(vcenter, "vm.markastemplate", "dml-gpu-mine")

    gone = ansible.module("worker_vm", cluster="gpu", state="absent", power_cycle=True, workers=[{"name": "worker01"}])

    assert gone.rc == 0, gone.out
    assert [name.rpartition("/")[2] for name in machines(vcenter) if "/dml-gpu-" in name] == ["dml-gpu-mine"]


def test_subscribed_item_is_fetched_and_reported(vcenter: Simulator, ansible: Ansible, tmp_path: Path) -> None:
    url = output(vcenter, "library.info", "-U", "images").strip()
    output(vcenter, "library.create", "-ds", "shared", "-sub", url, "-sub-ondemand=true", "mirror")
    vcenter.clear()
    options = call({**ITEM, "library": "mirror"}, 1)
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": [{"dml.vsphere.worker_vm": options}]}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(play))

    done = ansible.playbook(tmp_path / "play.yml", "-i", "localhost,", "-c", "local")

    assert done.rc == 0, done.out
    written = [write["method"] for write in vcenter.writes() if write["method"].startswith("POST")]
    assert [method.rpartition("?")[2] for method in written] == ["action=sync", "action=deploy"]
    shown = [line.split(" [")[0] for line in done.out.splitlines() if line.startswith("  mirror/dlvm: ")]
    assert shown[0] == "  mirror/dlvm: is synchronized from its publisher" and "is deployed as dml-" in shown[1]
    again = ansible.module("worker_vm", **options)
    assert not again.changed and states(again)["worker01"]["template"]["library"] == "mirror"


def test_a_library_vm_template_is_cloned_unchanged(vcenter: Simulator, ansible: Ansible) -> None:
    output(
        vcenter,
        "library.clone",
        "-vm",
        TEMPLATE,
        "-ds",
        "shared",
        "-folder",
        "vm",
        "-pool",
        "Resources",
        "images",
        "deb",
    )
    before = machines(vcenter)
    vcenter.clear()
    done = ansible.module("worker_vm", **call({"library": "images", "item": "deb"}, 1))
    assert done.rc == 0, done.out
    assert methods(vcenter) <= MAKING - {"MarkAsTemplate"}
    assert states(done)["worker01"]["template"]["item"] == "deb"
    assert not ansible.module("worker_vm", **call({"library": "images", "item": "deb"}, 1)).changed
    gone = ansible.module("worker_vm", cluster="gpu", state="absent", power_cycle=True, workers=[{"name": "worker01"}])
    assert gone.rc == 0 and machines(vcenter) == before, gone.out


def test_a_killed_deployment_is_continued(vcenter: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("worker_vm", check=True, **call(ITEM, 1))
    name = planned.result["templates"][0]["state"]["name"]
    networks = json.dumps({"NetworkMapping": [{"Name": "nat", "Network": "VM Network"}], "Name": name})
    options = Path(vcenter.facts["ca_file"]).parent / "options.json"
    options.write_text(networks)
    output(vcenter, "library.deploy", "-options", str(options), "-ds", "shared", "/images/dlvm", name)
    vcenter.clear()
    done = ansible.module("worker_vm", **call(ITEM, 1))
    assert done.rc == 0 and "MarkAsTemplate" in methods(vcenter), done.out
    assert not any("deploy" in method for method in methods(vcenter))


@pytest.mark.slow
@pytest.mark.release(NEWEST)
def test_site_builds_and_removes_library_workers_with_keys(
    start: Start, ansible_for: AnsibleFor, tmp_path: Path
) -> None:
    vcenter = start(text=datacentre(prepared=True))
    store = Path(output(vcenter, "find", "/", "-type", "s").split()[0]).name
    output(vcenter, "library.create", "-ds", store, "images")
    imported(vcenter, tmp_path, "images")
    add_sealed(vcenter, store)
    before, site = world.state(vcenter), Site(vcenter, ansible_for(vcenter))
    inventory = site.ansible.module("site", gather="discovery").result["inventory"]
    assert "dlvm (in the content library images)" in inventory
    lab = yaml.safe_load((ROOT / "inventories" / "lab" / "group_vars" / "clusters.yml").read_text())
    site.variables["worker_defaults"] = {
        **lab["worker_defaults"],
        "template": ITEM,
        "firmware": "bios",
        "datastore": store,
        "storage_policy": "vSAN Default Storage Policy",
    }
    guests = ("--skip-tags", "guests")
    site.variables["worker_vms"][1].update(template={"library": "images", "item": "sealed"}, firmware="efi")
    site.good("site", *guests, unreachable_is_idle=True)
    assert [one["vm_template"]["item"] for one in workers_of(site)] == ["dlvm", "sealed"]
    with machine(vcenter, "worker02") as vm:
        assert any(isinstance(device, vim.vm.device.VirtualTPM) for device in vm.ref.config.hardware.device)
    site.quiet("site", *guests, unreachable_is_idle=True)
    site.good("teardown", confirm=True, unreachable_is_idle=True)
    left = world.differences(before, world.state(vcenter))
    # Without their evidence, hosts keep the profile that the site gave them.
    assert {key for key in left if not key.endswith(": inside")} == set()


def add_sealed(vcenter: Simulator, store: str) -> None:
    """Give vCenter a key provider, and the library a VM template with a virtual TPM."""
    with machine(vcenter, TEMPLATE) as vm:
        vm.session.content.cryptoManager.RegisterKmsCluster(vim.encryption.KeyProviderId(id="native"), "nativeProvider")
        on = host_of(vm, "esx01.lab")
        vm.ref.MarkAsVirtualMachine(on.parent.resourcePool, on)
        tpm = vim.vm.device.VirtualDeviceSpec(operation="add", device=vim.vm.device.VirtualTPM(key=-1))
        do(vm, vm.ref.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[tpm])))
    where = ("-ds", store, "-folder", "vm", "-pool", "Resources")
    output(vcenter, "library.clone", "-vm", TEMPLATE, *where, "images", "sealed")


def workers_of(site: Site) -> list[dict[str, Any]]:
    """Return the workers as worker_vm_info shows them."""
    found: list[dict[str, Any]] = site.ansible.module("worker_vm_info", cluster="gpu").result["workers"]
    return found


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"library": "images"}, {}, "it has no item"),
    ({**ITEM, "libary": "x"}, {}, "libary is unknown"),
    ({**ITEM, "disk_format": "fat"}, {}, "disk_format is 'fat', not one of thin, thick, eagerZeroedThick"),
    ({**ITEM, "accept_eula": False}, {}, "it has 1 licence agreements, beginning 'Terms of use'"),
    (
        {**ITEM, "properties": {"licence": "x"}},
        {},
        "it has no property licence; it has password, user-data, vgpu-license",
    ),
    (ITEM, {"management_nic": None, "guest": None}, "no port group is named for its network 'nat'"),
    ({**ITEM, "networks": {"nat": "nosuch"}}, {}, "find one port group named 'nosuch'"),
]


@pytest.mark.parametrize(("template", "more", "words"), REFUSED)
def test_a_wrong_item_is_refused_before_any_write(
    vcenter: Simulator, ansible: Ansible, template: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    options = call(template, 1, **more)
    options["defaults"] = {key: value for key, value in options["defaults"].items() if value is not None}
    options["workers"] = options["workers"] if "guest" in options["defaults"] else [{"name": "worker01"}]
    for check in (True, False):
        refused = ansible.module("worker_vm", check=check, **options)
        assert refused.rc == 1 and words in refused.msg, refused.out
    assert vcenter.writes() == []
