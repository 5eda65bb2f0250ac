"""A site recorded, its names gone, replayed to the readers; and what the readers say where an answer has changed."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.replay.server import NotRecorded, accept, replayed
from lab.simulator import Simulator
from plugins.module_utils.errors import Refused
from plugins.module_utils.site.acceptance import acceptance
from plugins.module_utils.vsphere import properties, session, tasks
from plugins.module_utils.vsphere.inventory import Host, find_hosts
from plugins.module_utils.vsphere.sdk import vim
from tests.integration import callers
from tests.integration.ansible import Ansible, AnsibleFor, Start

SITE = """
version: 8.0.3
datacenter: quarry-centre
datastores: [basalt-store]
vcenter_options: {vgpu.hotmigrate.enabled: true}
switches:
  - {name: quartz-fabric, mtu: 9000, uplinks: [vmnic2], portgroups: [{name: granite-vmk, vlan: 216}]}
host_defaults:
  hardware: t4_cx5
  vmotion_seconds: 0.1
  graphics: {default: sharedDirect, policy: performance}
  vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: 550.90.05, vendor: NVIDIA}]
  vmkernel:
    - {device: vmk0, portgroup: Management Network, address: "10.77.0.{n}", mtu: 1500, services: [management]}
    - {device: vmk1, switch: quartz-fabric, portgroup: granite-vmk, address: "10.78.0.{n}", mtu: 9000}
clusters:
  - name: marble-cluster
    drs: {enabled: true, behaviour: partiallyAutomated}
    image_managed: true
    hosts: [{name: "anvil%02d.forge.acme.org", count: 3}]
vms:
  - {name: "obsidian%02d", count: 2, host: "anvil%02d.forge.acme.org", powered_on: true, memory_mb: 4096,
     vgpu: grid_t4-16c, owner: "Wilhelmina Feldspar"}
"""
HOSTS = ["anvil01.forge.acme.org", "anvil03.forge.acme.org"]
NAMED = {"hosts": HOSTS, "vms": ["obsidian01"], "switch": "quartz-fabric"}
NAMES = ("anvil", "forge", "acme", "quarry", "basalt", "quartz", "granite", "marble", "obsidian", "feldspar")
GOOD = (acceptance.UNDERSTOOD, acceptance.NOTHING)
CHANGED = Callable[[str, str, str], Path]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """A site with distinctive names, on which a worker was just moved. All tests here only read it."""
    folder = tmp_path_factory.mktemp("quarry")
    (folder / "site.yml").write_text(SITE)
    vcenter = Simulator(folder / "site.yml", folder=folder)
    with session.session({"validate_certs": True, "timeout": 60, **vcenter.connection}) as opened:
        refs = {values["name"]: ref for ref, values in properties.find_all(opened, vim.VirtualMachine, ("name",))}
        hosts = {values["name"]: ref for ref, values in properties.find_all(opened, vim.HostSystem, ("name",))}
        move = refs["obsidian01"].RelocateVM_Task(vim.vm.RelocateSpec(host=hosts[HOSTS[1]]))
        tasks.wait(opened, tasks.Started(move, "obsidian01", "move it"), 30)
    vcenter.clear()
    yield vcenter
    callers.note(vcenter)
    vcenter.stop()


@pytest.fixture(scope="module")
def recorded(place: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording of that site."""
    folder = tmp_path_factory.mktemp("kept")
    outcome = Ansible(place.environment, folder).module("site", gather="recording", folder=str(folder), **NAMED)
    assert outcome.rc == 0, outcome.out
    assert outcome.result["manifest"]["left"] == [] and outcome.result["manifest"]["not_understood"] == []
    return folder / "recording.tar.xz"


@pytest.fixture
def changed(recorded: Path, tmp_path: Path) -> CHANGED:
    """The recording as a folder, with a text in one of its files replaced."""

    def make(name: str, before: str, after: str) -> Path:
        folder = tmp_path / "changed"
        folder.mkdir()
        texts = texts_of(recorded)
        assert before in texts[name]
        texts[name] = texts[name].replace(before, after)
        for file, text in texts.items():
            (folder / file).write_text(text)
        return folder

    return make


def texts_of(recorded: Path) -> dict[str, str]:
    """The files of a recording, by their names."""
    with tarfile.open(recorded) as archive:
        return {one.name: str(archive.extractfile(one).read().decode()) for one in archive}  # type: ignore[union-attr]


def doubts(folder: Path) -> Iterator[str]:
    """Return what the readers do not understand of a recording."""
    with replayed(folder) as opened:
        for row in accept(opened).rows:
            if row["status"] not in GOOD:
                yield from (f"{row['status']}: {text}" for text in row["what"])


def identities(place: Simulator) -> set[str]:
    """Addresses, hardware addresses, serials and UUIDs of the recorded hosts and the virtual machine."""
    with session.session({"validate_certs": True, "timeout": 60, **place.connection}) as opened:
        hosts = find_hosts(opened, {"hosts": HOSTS}, ("hardware.systemInfo", "config.network"))
        hosts.refresh()
        found = {opened.content.about.instanceUuid}
        for host in hosts.hosts:
            info, net = host["hardware.systemInfo"], host["config.network"]
            found |= {info.uuid, info.serialNumber, *(one.identifierValue for one in info.otherIdentifyingInfo or [])}
            found |= {card.mac for card in net.pnic} | {nic.spec.mac for nic in net.vnic}
            found |= {nic.spec.ip.ipAddress for nic in net.vnic} | {one.dvsUuid for one in net.proxySwitch}
        for _ref, values in properties.find_all(opened, vim.VirtualMachine, ("config.uuid", "config.instanceUuid")):
            found |= set(values.values())
    return {one for one in found if one}


def test_recording_contains_no_site_names_and_writes_nothing(place: Simulator, recorded: Path) -> None:
    assert place.writes() == [] and recorded.stat().st_mode & 0o777 == 0o600
    texts = texts_of(recorded)
    everything = "\n".join(texts.values()).lower()
    originals = identities(place)
    assert len(originals) >= 10
    assert [one for one in (*NAMES, *originals) if one.lower() in everything] == []
    manifest = json.loads(texts["manifest.json"])
    assert manifest["objects"]["HostSystem"] == 2 and manifest["objects"]["VirtualMachine"] == 1
    assert "config.extraConfig" not in manifest["properties"]["VirtualMachine"]
    assert {"software vib list", "network nic stats get"} <= set(manifest["esxcli"])
    assert "CommandInfo" in json.loads(texts["esxcli_schemas.json"])["software vib"]


def test_readers_understand_the_recording_like_the_site(recorded: Path) -> None:
    with replayed(recorded) as opened:
        seen = accept(opened)
        proven = {one["name"] for one in acceptance.judged_assumptions(seen.recording) if one["status"] == "proven"}
    states = {(row["reader"], row["status"]) for row in seen.rows}
    assert [text for row in seen.rows if row["status"] not in GOOD for text in row["what"]] == []
    for reader in ("esxi_info: rdma", "cluster_info", "gpu_usage", "esxi_image", "events of moves", "worker_vm"):
        assert (reader, acceptance.UNDERSTOOD) in states
    assert {"counters of RDMA devices", "chain of a move", "users of a GPU", "managed by an image"} <= proven


@pytest.mark.parametrize(
    ("file", "before", "after", "expected"),
    [
        ("esxcli.json", "<Bytessent>0</Bytessent>", "<Octets>0</Octets>", "network nic stats get on host-"),
        ("esxcli.json", "AcceptanceLevel>", "Trust>", "software vib list on host-"),
        ("objects.json", "<pciId>", "<pciIdent>", "pciIdent"),
        ("objects.json", "<graphicsType>sharedDirect", "<graphicsType>sharedTwice", "graphicsType is 'sharedTwice'"),
        ("rest.json", '\\"enabled\\"', '\\"active\\"', "lacks enabled"),
    ],
)
def test_names_a_renamed_field(changed: CHANGED, file: str, before: str, after: str, expected: str) -> None:
    folder = changed(file, before, after)
    if after.startswith("<pciIdent"):
        text = (folder / file).read_text()
        (folder / file).write_text(text.replace("</pciId>", "</pciIdent>"))
    try:
        found = list(doubts(folder))
    except Refused as error:
        found = [str(error)]
    assert any(expected in text for text in found), found


def test_reports_calls_that_were_never_recorded(recorded: Path) -> None:
    with replayed(recorded) as opened:
        with pytest.raises(NotRecorded, match=r"property config\.fileSystemVolume of HostSystem"):
            properties.find_all(opened, vim.HostSystem, ("config.fileSystemVolume",))
        (host, *_others) = properties.find_all(opened, vim.HostSystem, ("name",))
        with pytest.raises(NotRecorded, match="system uptime get"):
            Host(opened, host[0], "x").esxcli.rows("system uptime get")


def test_check_mode_shows_the_manifest_and_writes_nothing(
    place: Simulator, ansible_for: AnsibleFor, tmp_path: Path
) -> None:
    outcome = ansible_for(place).module("site", gather="recording", check=True, folder=str(tmp_path / "none"), **NAMED)
    assert outcome.rc == 0 and outcome.changed and not (tmp_path / "none").exists()
    assert any("replaced with pseudonyms: " in line and " host," in line for line in outcome.result["lines"])


def test_accepts_the_site_by_reads_alone(place: Simulator, ansible_for: AnsibleFor) -> None:
    call, desired = ansible_for(place).module, {"cluster": "marble-cluster"}
    answer = call("site", gather="acceptance", vms=["obsidian01"], **desired).result
    assert answer["error"] == "" and place.writes() == []
    assert {row["status"] for row in answer["readers"]} <= {acceptance.UNDERSTOOD, acceptance.NOTHING}
    checked = call("esxi_info", gather=["vib"], acceptance=True, **desired).result["acceptance"]
    assert checked["error"] == "" and 0 < len(checked["readers"]) < len(answer["readers"])
    assert call("site", gather="acceptance", short=True, **desired).result["readers"] == checked["readers"]


@pytest.mark.parametrize(
    "release", ["8.0 U2", *(pytest.param(one, marks=pytest.mark.slow) for one in ("8.0 U3", "9.0")), "9.1"]
)
def test_accepts_every_version(start: Start, ansible_for: AnsibleFor, release: str) -> None:
    vcenter = start(text=SITE.replace("version: 8.0.3", f"release: {release}", 1))
    desired = {"cluster": "marble-cluster", "vms": ["obsidian01"], "switch": "quartz-fabric"}
    outcome = ansible_for(vcenter).module("site", gather="acceptance", **desired)
    assert outcome.rc == 0 and outcome.result["error"] == "", outcome.out


INVENTORY = """
all:
  vars: {ansible_connection: local, ansible_python_interpreter: "{{ ansible_playbook_python }}"}
  children: {clusters: {hosts: {marble-cluster: }}}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    """An inventory with the cluster of the site."""
    path = tmp_path / "inventory.yml"
    path.write_text(INVENTORY)
    return str(path)


@pytest.mark.every_release
def test_shows_a_recording_before_it_is_kept(
    start: Start, ansible_for: AnsibleFor, inventory: str, tmp_path: Path
) -> None:
    place = start(text=SITE)
    variables = {"record_hosts": HOSTS[:1], "record_dir": str(tmp_path / "shown"), "record_keep": False}
    done = ansible_for(place).playbook("playbooks/record.yml", "-i", inventory, "-e", json.dumps(variables))
    assert done.rc == 0, done.out
    assert "replaced with pseudonyms: " in done.out and "never read: config.extraConfig" in done.out
    assert list((tmp_path / "shown" / "marble-cluster").iterdir()) == []
    assert place.writes() == []


@pytest.mark.every_release
def test_restores_the_named_canary_after_writing_to_it(ansible_for: AnsibleFor, start: Start, inventory: str) -> None:
    vcenter = start(text=SITE)
    variables = {"acceptance_canary": HOSTS[0], "acceptance_switch": "quartz-fabric"}
    done = ansible_for(vcenter).playbook("playbooks/acceptance.yml", "-i", inventory, "-e", json.dumps(variables))
    assert done.rc == 0, done.out
    methods = [write["method"] for write in vcenter.writes()]
    assert methods.count("UpdateOptions") == 2 and "CreateFolder" in methods
    assert vcenter.calls()["QueryEvents"] == 1  # only of the lock: no virtual machine is named
    option = {"UserVars.SuppressShellWarning": 0}
    left = ansible_for(vcenter).module("esxi_advanced_option", check=True, hosts=[HOSTS[0]], options=option)
    assert not left.changed
    assert not ansible_for(vcenter).module("cluster_info", cluster="marble-cluster").result["cluster"]["lock"]["held"]


def test_never_writes_to_a_canary_without_lock_event(ansible_for: AnsibleFor, start: Start, inventory: str) -> None:
    vcenter = start(text=SITE)
    vcenter.fault("QueryEvents", fault="NotSupported", count=-1)
    variables = {"acceptance_canary": HOSTS[0], "acceptance_switch": "quartz-fabric"}
    done = ansible_for(vcenter).playbook("playbooks/acceptance.yml", "-i", inventory, "-e", json.dumps(variables))
    assert done.rc != 0 and "Read the event of the lock" in done.out
    assert "UpdateOptions" not in [write["method"] for write in vcenter.writes()]
    assert not ansible_for(vcenter).module("cluster_info", cluster="marble-cluster").result["cluster"]["lock"]["held"]


def test_refuses_an_unknown_canary_before_the_lock(ansible_for: AnsibleFor, start: Start, inventory: str) -> None:
    vcenter = start(text=SITE)
    desired = json.dumps({"acceptance_canary": "granite09.quarry.example"})
    done = ansible_for(vcenter).playbook("playbooks/acceptance.yml", "-i", inventory, "-e", desired)
    assert done.rc == 2 and "acceptance_canary granite09.quarry.example: the clusters of this run have" in done.out
    assert vcenter.writes() == []


def test_refuses_names_that_do_not_exist(place: Simulator, ansible_for: AnsibleFor) -> None:
    reported: dict[str, Any] = {"hosts": HOSTS, "vms": ["basalt01"]}
    assert (
        "could not find one virtual machine named 'basalt01'"
        in ansible_for(place).module("site", gather="acceptance", **reported).msg
    )
    for gather, more in (("acceptance", {"cluster": "marble-cluster"}), ("recording", {"folder": "/none", **NAMED})):
        refused = ansible_for(place).module("site", gather=gather, **{**more, "switch": "slate-fabric"})
        assert "could not find the distributed switch 'slate-fabric': it has quartz-fabric" in refused.msg, refused.out
