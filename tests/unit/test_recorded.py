"""The readers read what no one of this project made: recordings of real systems, and what others wrote down of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.replay.server import Replay
from plugins.module_utils.core.vgpu_manager import is_manager
from plugins.module_utils.guests import nvidia
from plugins.module_utils.hosts import vib
from plugins.module_utils.maintenance import recent_tasks
from plugins.module_utils.moves.move.move import move_watch
from plugins.module_utils.site.recording.recording import RecordedObject, key_of_link
from plugins.module_utils.training.output import log
from plugins.module_utils.training.output.log import parse as parse_log
from plugins.module_utils.vsphere import counters, properties
from plugins.module_utils.vsphere.esxcli import parse
from plugins.module_utils.vsphere.sdk import vim
from plugins.module_utils.vsphere.session import Session
from plugins.module_utils.watch import transport_program
from plugins.module_utils.workers.hardware_limits import HardwareLimits, limits_of
from tests.recorded import FOLDER, INDEX, data, ruby, text, value

LICENCES = {"Apache-2.0", "facts"}
SINCE = datetime(2022, 1, 1, tzinfo=UTC)


def files() -> list[str]:
    """Every fixture, by its path from the index."""
    return sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file() and path != INDEX)


def test_every_fixture_is_listed_once_with_its_source() -> None:
    listed = [name for entry in data("index.yml") for name in entry["files"]]
    assert sorted(listed) == files()
    for entry in data("index.yml"):
        assert entry["licence"] in LICENCES and entry["kind"] in ("recording", "facts")
        assert (entry["licence"] == "facts") == (entry["kind"] == "facts")
        assert entry["source"] and entry["kept"] and str(entry["date"])


@pytest.mark.parametrize("name", files())
def test_every_fixture_is_read_by_a_test(name: str) -> None:
    # The test reads a tree of kernel files as a whole.
    known = "gpud/sys" if name.startswith("gpud/sys/") else name
    assert known in Path(__file__).read_text()


def replay(**objects: Any) -> tuple[Replay, Session]:
    """A session with a vCenter 9.0.1 that has these objects."""
    stub = Replay()
    stub.recording.content = value("manageiq/service_content.xml", stub)
    stub.recording.objects = objects
    return stub, Session("vcenter", stub.recording.content, stub, {})


def catalogue(name: str, group: str) -> counters.Catalogue:
    """The counters of a group as the reader understands a recording."""
    known = {"perfCounter": value(name), "historicalInterval": None}
    stub, session = replay(PerfMgr=RecordedObject("PerformanceManager", known))
    stub.recording.requested = {"PerformanceManager": set(known)}
    return counters.catalogue(session, group)


def test_vcenter_9_reports_its_version_and_managers() -> None:
    _stub, session = replay()
    assert session.api_version == (9, 0, 0, 0)
    assert isinstance(session.content.vmProvisioningChecker, vim.vm.check.ProvisioningChecker)
    assert session.content.hostProfileManager._moId == "HostProfileManager"


def test_uses_the_average_of_counters_with_one_name() -> None:
    cpu = catalogue("manageiq/counters.xml", "cpu").counters
    assert cpu == {"usage": counters.Counter(2, 3), "utilization": counters.Counter(409, 3)}
    # These newer counters of GPUs are the latest values, not the averages of the same names.
    assert catalogue("manageiq/counters.xml", "gpu").counters == {}


def test_reads_gpu_counters_of_a_host() -> None:
    found = catalogue("govmomi/gpu_counters.xml", "gpu").counters
    assert {name: one.key for name, one in found.items()} == {
        "utilization": 1310721,
        "mem.used": 1310725,
        "mem.usage": 1310729,
        "temperature": 1310732,
    }
    assert all(one.level == 1 for one in found.values())


def test_reads_an_extended_event_with_empty_fields() -> None:
    event = ruby("manageiq/event_ex.txt")
    assert isinstance(event, vim.event.EventEx)
    manager = SimpleNamespace(QueryEvents=lambda _spec: [event])
    session: Any = SimpleNamespace(server="vcenter", content=SimpleNamespace(eventManager=manager))
    (found,) = move_watch.events_since(session, vim.VirtualMachine("vm-1"), "worker", SINCE)
    assert found["kind"] == "EventEx" and found["by"] == "" and found["chain"] == 13784001
    assert found["at"].startswith("2022-10-20T19:16:43.173941") and found["target"] == ""


def test_vm_event_has_the_kind_of_its_type() -> None:
    event = ruby("manageiq/vm_event_ex.txt")
    manager = SimpleNamespace(QueryEvents=lambda _spec: [event])
    session: Any = SimpleNamespace(server="vcenter", content=SimpleNamespace(eventManager=manager))
    (found,) = move_watch.events_since(session, vim.VirtualMachine("vm-67544"), "worker", SINCE)
    assert found["kind"] == "com.vmware.vc.HA.VmUnprotectedEvent" and found["text"].endswith(
        "is not vSphere HA Protected."
    )


@pytest.mark.parametrize("name", ["manageiq/power_on_task_event.txt", "manageiq/power_off_task_event.txt"])
def test_task_event_begins_a_chain_unknown_to_tasks(name: str) -> None:
    event = ruby(name)
    assert isinstance(event, vim.event.TaskEvent) and event.chainId == event.key != 0
    assert (event.info.state, event.info.eventChainId) == ("queued", 0)


def test_reads_the_first_values_of_a_watched_object() -> None:
    update, values = value("manageiq/update_set.xml"), {"CustomizationSpecManager": dict[str, Any]()}
    properties._merge(values, update, lambda _ref: False)
    assert update.version == "0_1" and not update.truncated
    assert list(values["CustomizationSpecManager"]) == ["info"] and values["CustomizationSpecManager"]["info"] == []


def test_reads_a_queued_task() -> None:
    info = ruby("manageiq/power_on_task_event.txt").info
    names = ("entity", "descriptionId", "state", "reason", "error", "queueTime")
    values = {f"info.{name}": getattr(info, name) for name in names}
    stub, session = replay(**{"task-783503": RecordedObject("Task", values)})
    centre = vim.Datacenter("datacenter-6548", stub)
    stub.recording.requested = {"Task": set(values)}
    stub.recording.links = {key_of_link([centre], "recentTask", "Task"): ["task-783503"]}
    (task,) = recent_tasks.recent(session, [centre])
    assert (task.what, task.running, task.user, task.error) == ("powerOnVm", True, "root", "")
    assert task.queued == info.queueTime is not None


def test_tasks_of_a_vcenter_have_the_expected_names() -> None:
    keys = text("govmomi/task_descriptions.txt").split()
    last = {key.rsplit(".", maxsplit=1)[-1] for key in keys}
    assert {*recent_tasks.MOVES, recent_tasks.ENTER, recent_tasks.REBOOT} <= last
    moves = [key for key in keys if key.startswith(("VirtualMachine.", "Drm.")) and _is_of_a_move(key)]
    strange = {key.rsplit(".", maxsplit=1)[-1] for key in moves} - set(recent_tasks.MOVES)
    assert strange == {"ExecuteStorageVmotionLro"}  # moves only disks: the machine stays on its host


def _is_of_a_move(key: str) -> bool:
    return any(word in key.lower() for word in ("migrat", "relocat", "vmotion"))


def test_reads_answers_of_esxcli() -> None:
    machines = parse(text("govmomi/network_vm_list.xml"))
    assert [(one["Name"], one["Networks"]) for one in machines] == [
        ("foo", ["VM Network", "dougm"]),
        ("bar", "VM Network"),
    ]
    (port,) = parse(text("govmomi/network_vm_port_list.xml"))
    assert port["DVPortID"] == "" and port["MACAddress"] == "00:0c:29:12:b2:cf"
    assert parse(text("govmomi/system_hostname_get.xml"))["FullyQualifiedDomainName"] == "esxbox.localdomain"


@pytest.mark.parametrize("reported", data("esxcli/vib_install.yml"), ids=lambda reported: reported["name"])
def test_recognizes_the_installed_manager_and_always_boots(reported: dict[str, str]) -> None:
    assert is_manager(reported["name"]) and reported["reboot_required"] == "false"
    desired = vib.VibSpec(name=reported["name"], version=reported["version"])
    assert vib._is_vib(reported["installed"], desired)
    assert not vib._is_vib(reported["installed"], vib.VibSpec(name=reported["name"], version="1"))
    assert vib._boots({"rehearsal": {"reboot": False}}, desired, changed=True)


def test_reads_a_passthrough_gpu_inside_the_guest() -> None:
    assert nvidia.report(text("gpud/nvidia-smi-query.535.129.03.a10.txt")) == {
        "driver": "535.129.03",
        "cuda_at_most": "12.2",
        "gpus": [
            {
                "address": "00000000:07:00.0",
                "name": "NVIDIA A10",
                "uuid": "GPU-73d12ef7-f589-f867-4259-c7090ab44736",
                "mode": "Pass-Through",
                "persistent": True,
                "licensed_product": "",
                "licence": "",
                "error": "",
            }
        ],
    }


def test_reads_gpus_of_a_physical_machine() -> None:
    found = nvidia.report(text("gpud/nvidia-smi-query.535.161.08.h100.txt"))
    assert (found["driver"], found["cuda_at_most"]) == ("535.161.08", "12.2")
    assert [(one["address"], one["name"], one["mode"], one["persistent"]) for one in found["gpus"]] == [
        ("00000000:19:00.0", "NVIDIA H100 80GB HBM3", "None", True),
        ("00000000:3b:00.0", "NVIDIA H100 80GB HBM3", "None", True),
    ]
    assert len({one["uuid"] for one in found["gpus"]}) == 2


@pytest.mark.parametrize("one", data("training/vgpu_licence.yml"), ids=lambda one: one["licence"])
def test_reads_licences_of_virtual_gpus(one: dict[str, str]) -> None:
    (gpu,) = nvidia.report(f"Driver Version : 1\nGPU 00000000:02:01.0\n{one['said']}")["gpus"]
    assert (gpu["licensed_product"], gpu["licence"]) == (one["product"], one["licence"])


def test_reports_no_counters_for_devices_without_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_program, "SYS", str(FOLDER / "gpud/sys"))
    assert transport_program.devices() == [
        {"device": name, "driver": None, "sent_bytes": None} for name in ("mlx5_0", "mlx5_1", "mlx5_bond_0")
    ]


def test_reads_steps_of_unnamed_ranks() -> None:
    log = parse_log(text("training/tf_cnn_two_nodes.txt"))
    assert sorted({record.step for record in log.steps}) == [1, 10]
    assert {record.images_per_sec for record in log.steps} == {47.9, 47.3}
    one = parse_log(text("training/tf_cnn_one_gpu.txt"))
    assert [record.step for record in one.steps] == [1, 10, 100] and one.totals == {0: 97.4} and not one.problems


@pytest.mark.parametrize("reported", data("training/nccl.yml"), ids=lambda reported: reported["line"][-40:])
def test_reads_the_transport_of_nccl_between_nodes(reported: dict[str, str]) -> None:
    assert log._ways(reported["line"]) == ({reported["way"]} if reported["way"] else set())


def test_reads_the_transport_from_nccl_2_4_rings() -> None:
    result = text("training/nccl_2_4.txt")
    found, rings = result.splitlines()[:4], result.splitlines()[4:]
    assert log._ways("\n".join(found)) == {"NET/Socket", "NET/IB"}
    assert log._ways(result) == log._ways("\n".join(rings)) == {"NET/IB"}


def test_hardware_limits_match_those_of_a_real_host() -> None:
    read = {option.version: limits_of(option.version, option) for option in value("vm_operator/config_options.xml")}

    assert read["vmx-13"] == HardwareLimits("vmx-13", 1, ("rocev1",), 1, 16)
    assert read["vmx-19"] == HardwareLimits("vmx-19", 10, ("rocev1", "rocev2"), 4, 16)
    assert read["vmx-22"] == HardwareLimits("vmx-22", 10, ("rocev2",), 16, 128)
    assert limits_of("vmx-21", value("vm_operator/config_options.xml")[0]) == HardwareLimits("vmx-21")
