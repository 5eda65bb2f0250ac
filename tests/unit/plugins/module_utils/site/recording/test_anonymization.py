"""Recordings lose the names of a site, based on the API type of each field, and keep the words of vSphere."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.site.recording import anonymization
from plugins.module_utils.site.recording.pseudonyms import Pseudonyms
from plugins.module_utils.site.recording.recording import (
    CallAnswer,
    EsxcliCommand,
    RecordedObject,
    Recording,
    RestRequest,
)
from plugins.module_utils.vsphere.sdk import vim


def anonymized(kind: str, path: str, value: Any) -> Any:
    """Return an anonymized property of an object."""
    recording = Recording(objects={"one": RecordedObject(kind, {"name": "granite", path: value})})
    anonymization.replace_names(recording, Pseudonyms())
    return recording.objects["one"].values[path]


def test_adapters_lose_their_world_wide_names_and_secrets() -> None:
    secret = vim.host.InternetScsiHba.AuthenticationProperties(chapName="obsidian-chap", chapSecret="hunter2")
    iscsi = vim.host.InternetScsiHba(
        device="vmhba64", iScsiName="iqn.1998-01.com.vmware:anvil-7f", authenticationProperties=secret
    )
    fibre = vim.host.FibreChannelHba(device="vmhba2", nodeWorldWideName=2305843009213693953, portWorldWideName=7)
    bus, fabric = anonymized("HostSystem", "config.storageDevice.hostBusAdapter", [iscsi, fibre])
    assert (bus.device, bus.iScsiName, bus.authenticationProperties.chapName) == ("vmhba64", "initiator-1", "user-1")
    assert bus.authenticationProperties.chapSecret == ""
    assert (fabric.nodeWorldWideName, fabric.portWorldWideName, fabric.device) == (0, 0, "vmhba2")


def test_anonymizes_network_names_but_not_gpu_names() -> None:
    backing = vim.vm.device.VirtualEthernetCard.NetworkBackingInfo(deviceName="granite")
    card = vim.vm.device.VirtualVmxnet3(
        key=4000, backing=backing, deviceInfo=vim.Description(label="Network adapter 1", summary="granite")
    )
    (card,) = anonymized("Network", "config.hardware.device", [card])
    assert (card.backing.deviceName, card.deviceInfo.summary) == ("network-1", "network-1")
    gpu = vim.host.GraphicsInfo(deviceName="NVIDIA granite", graphicsType="sharedDirect")
    (gpu,) = anonymized("HostSystem", "config.graphicsInfo", [gpu])
    assert (gpu.deviceName, gpu.graphicsType) == ("NVIDIA granite", "sharedDirect")


def test_anonymizes_servers_of_time_rules_and_alarms() -> None:
    time = vim.host.DateTimeInfo(ntpConfig=vim.host.NtpConfig(server=["ntp.acme.org", "10.9.8.7"]))
    replaced = anonymized("HostSystem", "config.dateTimeInfo", time)
    assert replaced.ntpConfig.server == ["host-2.domain-1.example", "198.18.0.1"]
    rule = vim.cluster.AntiAffinityRuleSpec(name="keep payroll apart")
    assert anonymized("ClusterComputeResource", "configurationEx", [rule])[0].name == "object-1"
    assert anonymized("Alarm", "info.name", "ACME GPU is hot") == "title-1"


def test_anonymizes_own_notes_partly_and_foreign_notes_completely() -> None:
    custom = vim.CustomFieldsManager.StringValue
    ours = custom(key=1, value='{"name": "granite", "cluster": "granite", "role": "worker"}')
    theirs = custom(key=2, value="Wilhelmina Feldspar")
    own, other = anonymized("VirtualMachine", "customValue", [ours, theirs])
    assert own.value == '{"name": "guest-1", "cluster": "guest-1", "role": "worker"}'
    assert other.value == "value-1"


def test_anonymizes_answers_of_esxcli_and_rest() -> None:
    recording = Recording(
        objects={"h": RecordedObject("HostSystem", {"name": "anvil.acme.org"})},
        calls={'HostSystem h Query ["anvil"]': CallAnswer(["anvil.acme.org says 10.1.2.3"])},
        commands=[
            EsxcliCommand(
                "h", "network nic list", {"nic": "<nic>anvil</nic>"}, "<obj><N>anvil &amp; 10.1.2.3</N></obj>"
            ),
            EsxcliCommand("h", "software vib list", {}, "<obj><Name>anvil</Name></obj>"),
        ],
        requests=[
            RestRequest("GET", "/api/cis/tagging/tag/1", None, 200, '{"name": "Basalt", "category_id": "c"}'),
            RestRequest("GET", "/api/x", None, 200, '{"version": "10.1.2.3", "of": "anvil", "tag": "basalt"}'),
        ],
    )
    anonymization.replace_names(recording, Pseudonyms())
    assert list(recording.calls) == ['HostSystem h Query ["host-1"]']
    assert recording.calls['HostSystem h Query ["host-1"]'].value == ["host-1.domain-1.example word-1 198.18.0.1"]
    assert recording.commands[0].response == "<obj><N>host-1 &amp; 198.18.0.1</N></obj>"
    assert recording.commands[0].arguments == {"nic": "<nic>host-1</nic>"}
    assert recording.commands[1].response == "<obj><Name>anvil</Name></obj>"
    assert recording.requests[0].text == '{"name": "tag-1", "category_id": "c"}'
    assert recording.requests[1].text == '{"version": "10.1.2.3", "of": "host-1", "tag": "tag-1"}'


def test_anonymizes_entities_and_labels_of_licences() -> None:
    value = vim.KeyValue(key="vgpu", value="vGPU")
    licence = vim.LicenseManager.LicenseInfo(
        licenseKey="0A1B2-C3D4E-5F6G7-H8I9J-K0L1M",
        editionKey="vc.standard.instance",
        name="vCenter",
        total=1,
        properties=[vim.KeyAnyValue(key="feature", value=value)],
        labels=[vim.KeyValue(key="VpxClientLicenseLabel", value="Feldspar")],
    )
    assignment = vim.LicenseAssignmentManager.LicenseAssignment(
        entityId="a0e1f3b2-0000-4c3d-9e8f-112233445566", entityDisplayName="vcenter.acme.org", assignedLicense=licence
    )
    key = "LicenseAssignmentManager LicenseAssignmentManager QueryAssignedLicenses [null]"
    recording, pseudonyms = Recording(calls={key: CallAnswer([assignment])}), Pseudonyms()

    anonymization.replace_names(recording, pseudonyms)

    assert recording.calls[key].value[0].entityDisplayName == "vcenter.domain-1.example"
    assert [label.value for label in licence.labels] == ["label-1"]
    assert licence.properties[0].value.value == "vGPU"
    assert pseudonyms.left_in("Feldspar, vcenter.acme.org") == ["feldspar", "vcenter.acme.org"]


def test_anonymizes_deleted_machines_snapshots_and_files() -> None:
    task = vim.TaskInfo(key="task-1", entityName="quartz-old", descriptionId="VirtualMachine.destroy")
    replaced = anonymized("Task", "info", task)
    assert (replaced.entityName, replaced.descriptionId) == ("object-2", "VirtualMachine.destroy")
    snapshot = vim.vm.SnapshotTree(name="before the Feldspar audit", description="by Wilhelmina")
    (replaced,) = anonymized("VirtualMachine", "snapshot.rootSnapshotList", [snapshot])
    assert replaced.name == "snapshot-1" and "Wilhelmina" not in replaced.description
    disk = vim.vm.device.VirtualDisk.FlatVer2BackingInfo(fileName="[granite] quartz/opal_1-000002.vmdk")
    assert anonymized("Datastore", "config.hardware.device", disk).fileName == (
        "[datastore-1] file-1/file-2-000002.vmdk"
    )
    plain = anonymized("Datastore", "summary.config.vmPathName", "[granite] quartz/quartz.vmx")
    assert plain == "[datastore-1] file-1/file-1.vmx"


def test_anonymizes_switches_and_stacks_named_by_a_site() -> None:
    switch = vim.host.VirtualSwitch(key="key-vim.host.VirtualSwitch-basalt", name="basalt", portgroup=[])
    (replaced,) = anonymized("HostSystem", "config.network.vswitch", [switch])
    assert (replaced.name, replaced.key) == ("switch-1", "key-vim.host.VirtualSwitch-switch-1")
    stacks = [vim.host.NetStackInstance(key="opal", name="opal"), vim.host.NetStackInstance(key="vmotion")]
    own, usual = anonymized("HostSystem", "config.network.netStackInstance", stacks)
    assert (own.key, own.name, usual.key) == ("stack-1", "stack-1", "vmotion")


@pytest.mark.parametrize(
    ("version", "plain"),
    [("1.2.3-4feldspar2026", "1.2.3-4x2026"), ("2.0-1OEM.800.1", "2.0-1OEM.800.1"), ("1.0", "1.0"), ("basalt", "x")],
)
def test_anonymizes_words_in_versions_of_custom_packages(version: str, plain: str) -> None:
    row = f"<ID>Opal_bootbank_tool_{version}</ID><Name>tool</Name><Vendor>Opal</Vendor><Version>{version}</Version>"
    answer = f"<obj><DataObject>{row}</DataObject></obj>"
    recording = Recording(commands=[EsxcliCommand("h", "software vib list", {}, answer)])

    anonymization.replace_names(recording, Pseudonyms())

    assert f"<Version>{plain}</Version>" in (recording.commands[0].response or "")
    assert f"_{plain}</ID>" in (recording.commands[0].response or "")


def test_anonymizes_custom_packages_but_keeps_those_of_vendors() -> None:
    def package(name: str, vendor: str) -> str:
        row = f"<ID>{vendor}_bootbank_{name}_1.0</ID><Name>{name}</Name><Vendor>{vendor}</Vendor>"
        return f"<DataObject>{row}<Summary>Opal</Summary></DataObject>"

    theirs = package("nmlx5-core", "MEL")
    answer = f"<obj>{theirs}{package('basalt-agent', 'Feldspar')}</obj>"
    recording = Recording(commands=[EsxcliCommand("h", "software vib list", {}, answer)])
    anonymization.replace_names(recording, Pseudonyms())
    reported = recording.commands[0].response or ""
    assert theirs in reported
    assert (
        "<Name>package-1</Name><Vendor>vendor-1</Vendor>" in reported
        and "basalt" not in reported
        and "Feldspar" not in reported
    )
    assert reported.count("<Summary>Opal</Summary>") == reported.count("<Summary>word-1</Summary>") == 1
