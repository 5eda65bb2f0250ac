"""Checks of answers that no type table defines: required fields, and unknown words."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, cast

import pytest

from plugins.module_utils.site.acceptance import acceptance, reader, shapes
from plugins.module_utils.site.acceptance.acceptance import OPEN, PROVEN, REFUTED
from plugins.module_utils.site.acceptance.assumption_checks import Assumption
from plugins.module_utils.site.acceptance.assumptions import ASSUMPTIONS
from plugins.module_utils.site.acceptance.reader import ReadRequest
from plugins.module_utils.site.acceptance.readers import READERS
from plugins.module_utils.site.recording.recording import (
    CallAnswer,
    EsxcliCommand,
    RecordedObject,
    Recording,
    RestRequest,
)
from plugins.module_utils.vsphere.sdk import VmomiSupport, vim
from plugins.module_utils.vsphere.session import Session
from tests.unit.test_documents import ROOT

HOSTS = {"host-1": "esx01"}
STATS = "network nic stats get"
DCB, PFC = "network nic dcb status get", "PFCConfiguration"
HOST, VM = "HostSystem", "VirtualMachine"
PROFILES, ENCRYPTION = "config.sharedPassthruGpuTypes", "config.migrateEncryption"
TRAFFIC = {"NICname": "vmnic2", "Packetsreceived": "1", "Packetssent": "2", "Bytesreceived": "3", "Bytessent": "4"}


def answered(command: str, row: dict[str, str], **arguments: str) -> Recording:
    """Return a recording of one command."""
    fields = "".join(f"<{key}>{value}</{key}>" for key, value in row.items())
    response = f"<obj><DataObject>{fields}</DataObject></obj>" if row else None
    return Recording(commands=[EsxcliCommand("host-1", command, arguments, response)])


def requested(path: str, answer: Any) -> Recording:
    """Return a recording of one request."""
    return Recording(requests=[RestRequest("GET", path, None, 200, json.dumps(answer))])


def test_compares_fields_by_letters_only() -> None:
    answer = answered(STATS, TRAFFIC)
    assert list(shapes.missing_fields(answer, HOSTS)) == [] and list(shapes.unknown_words(answer)) == []
    spelled = answered(STATS, {"NICname": "x", "packetsReceived": "1", "PACKETSSENT": "2", "BytesReceived": "3"})
    assert list(shapes.missing_fields(spelled, HOSTS)) == [
        (
            "esxcli network nic stats get on esx01 lacks Bytes sent; it has BytesReceived, NICname, PACKETSSENT, "
            "packetsReceived"
        )
    ]


def test_an_unknown_field_is_reported() -> None:
    answer = answered(STATS, {**TRAFFIC, "Flux": "7"})
    assert list(shapes.missing_fields(answer, HOSTS)) == []
    assert list(shapes.unknown_words(answer)) == ["esxcli network nic stats get has Flux"]
    assert list(shapes.unknown_words(answered("system uptime get", {"Days": "1"}))) == ["esxcli system uptime get"]


def test_checks_answers_of_the_rest_api() -> None:
    path = "/api/esx/settings/clusters/domain-c9/enablement/software"
    assert list(shapes.missing_fields(requested(path, {"enabled": True}), HOSTS)) == []
    assert list(shapes.missing_fields(requested(path, {"active": True}), HOSTS)) == [
        f"GET {path} lacks enabled; it has active"
    ]
    compliance = "/api/esx/settings/clusters/domain-c9/software/compliance"
    assert list(shapes.unknown_words(requested(compliance, {"status": "COMPLIANT"}))) == []
    assert "'ODD'" in next(shapes.unknown_words(requested(compliance, {"status": "ODD"})))


def test_finds_words_outside_their_enumeration() -> None:
    gpu = vim.host.GraphicsInfo(graphicsType="sharedDirect", pciId="0000:3b:00.0", vgpuMode="sameSize")
    known = Recording(objects={"host-1": RecordedObject("HostSystem", {"config.graphicsInfo": gpu})})
    assert list(shapes.unknown_words(known)) == []
    gpu.graphicsType = "sharedTwice"
    assert list(shapes.unknown_words(known)) == ["vim.host.GraphicsInfo.graphicsType is 'sharedTwice'"]


def test_every_enumeration_that_is_named_exists() -> None:
    for (kind, field), words in shapes._ENUMERATED.items():
        assert VmomiSupport.GetVmodlType(kind)._GetPropertyInfo(field)
        assert VmomiSupport.GetVmodlType(words).values


def test_finds_a_missing_field_that_types_promise() -> None:
    switch = vim.dvs.VmwareDistributedVirtualSwitch.ConfigInfo(name="rdma")
    seen = Recording(objects={"dvs-1": RecordedObject("DistributedVirtualSwitch", {"config": switch})})
    assert any(text.endswith("ConfigInfo.defaultPortConfig") for text in shapes.missing_fields(seen, HOSTS))


@pytest.mark.parametrize("one", ASSUMPTIONS, ids=lambda one: one.name)
def test_each_assumption_names_code_that_rests_on_it(one: Assumption) -> None:
    path, words = one.where
    assert words in (ROOT / path).read_text()
    assert one.text.endswith(".") and one.proof


def test_without_answers_every_assumption_is_open() -> None:
    assert {one["status"] for one in acceptance.judged_assumptions(Recording())} == {OPEN}
    assert len({one.name for one in ASSUMPTIONS}) == len(ASSUMPTIONS)


def status(name: str, recording: Recording) -> str:
    return next(str(one["status"]) for one in acceptance.judged_assumptions(recording) if one["name"] == name)


def happened(*events: Any) -> Recording:
    """Return a recording of events."""
    return Recording(calls={"EventManager e QueryEvents []": CallAnswer(list(events))})


def moved(began_in: int) -> Recording:
    """Return a recording of the two events of a move that ended in the chain 7."""
    began = vim.event.VmBeingHotMigratedEvent(chainId=began_in, key=1)
    return happened(began, vim.event.VmMigratedEvent(chainId=7, key=2))


def encrypted(*arguments: Any) -> Recording:
    """Return a recording of the event of an encrypted move."""
    return happened(vim.event.EventEx(eventTypeId=ENCRYPTED, arguments=list(arguments)))


def of_one(kind: str, path: str, value: Any) -> Recording:
    """Return a recording of one property."""
    return Recording(objects={"one": RecordedObject(kind, {path: value})})


def executer(name: str) -> Recording:
    """Return a recording of a server with an executer of this type."""
    return Recording(server={"executer": name})


ENCRYPTED = "com.vmware.vc.vm.VmHotMigratingWithEncryptionEvent"


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("esxcli executer", executer("ManagedMethodExecuter"), executer("Somebody")),
        ("counters of network cards", answered(STATS, TRAFFIC), answered(STATS, {"Bytesout": "1"})),
        ("flags of flow control", answered(DCB, {PFC: "0 0 0 1 0 0 0 0"}), answered(DCB, {PFC: "priority 3"})),
        ("names of profiles", of_one(HOST, PROFILES, ["grid_t4-16c"]), of_one(HOST, PROFILES, ["teslaprofile"])),
        ("encryption of moves", of_one(VM, ENCRYPTION, "opportunistic"), of_one(VM, ENCRYPTION, "perhaps")),
        ("target of an encrypted move", encrypted(vim.KeyAnyValue(key="destHost", value="esx02")), encrypted()),
        ("chain of a move", moved(7), moved(8)),
    ],
)
def test_answers_confirm_or_refute_each_assumption(name: str, good: Recording, bad: Recording) -> None:
    assert (status(name, good), status(name, bad)) == (PROVEN, REFUTED)


def test_the_error_of_a_group_is_reported_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "esx01: could not reach its esxcli: the server said NotFound"
    monkeypatch.setattr(reader.host_info, "gather", lambda *_: [{"host": "esx01", "failed": True, "msg": answer}])
    expected = ReadRequest(hosts={"esx01": None}, vms={}, clusters={})
    (management,) = (one for one in READERS if one.name == "esxi_info: management")
    assert acceptance._attempt(cast(Session, None), management, expected, "esx01") == (
        acceptance.NOT_UNDERSTOOD,
        [answer],
    )


def test_refuted_assumptions_and_unknown_answers_are_an_error() -> None:
    row = {"reader": "esxi_info: rdma", "object": "esx01", "status": acceptance.NEVER_SEEN, "what": ["a field"]}
    assumed = [{"name": "x", "text": "All is well.", "status": REFUTED, "said": "it is not"}]
    assert acceptance.error([row], [], accept_new=True) == ""
    assert acceptance.error([row], [], accept_new=False) == "esxi_info: rdma of esx01 is never seen by us: a field"
    assert acceptance.error([], assumed, accept_new=True) == "an assumption is refuted: All is well. But it is not"


def test_esxi_info_does_not_import_preflight_only_modules() -> None:
    """In a new process, because this one has imported all readers."""
    program = "import sys; from plugins.modules import esxi_info; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "plugins.module_utils.hosts.host_info" in done.stdout.split()
    assert [name for name in done.stdout.split() if name.startswith("plugins.module_utils.site")] == []
