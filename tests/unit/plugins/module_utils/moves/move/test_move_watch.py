"""The host and GPUs of a worker, and the events about it."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim, vmodl
from pyVmomi.SoapAdapter import Deserialize

from plugins.module_utils.moves.checks import move_events
from plugins.module_utils.moves.move.move import move_watch
from plugins.module_utils.vsphere import properties
from tests.fakes import hardware
from tests.fakes.worker_cluster import machine

BEFORE = move_watch.WorkerRuntime("esx1", ("esx1/0000:3b:00.0",), "on", "2026-01-01T00:00:00+00:00", "opportunistic")


@pytest.mark.parametrize(
    ("after", "kinds", "cycled"),
    [
        ({}, [], False),
        ({"host": "esx2"}, ["VmMigratedEvent"], False),
        ({"power": "off"}, [], True),
        ({"powered_on": "2026-01-02T00:00:00+00:00"}, [], True),
        ({}, ["VmPoweredOffEvent"], True),
        # vCenter unsets the time of the boot as a machine moves.
        ({"powered_on": None}, ["VmMigratedEvent"], False),
        ({"powered_on": None}, ["VmGuestRebootEvent"], True),
    ],
)
def test_detects_a_power_cycle_during_a_move(after: dict[str, str], kinds: list[str], cycled: bool) -> None:
    later = move_watch.WorkerRuntime(**{**BEFORE.__dict__, **after})
    assert move_watch.power_cycled(BEFORE, later, [{"kind": kind} for kind in kinds]) == cycled


def test_selects_the_events_of_a_chain() -> None:
    every = [{"chain": 1, "kind": "a"}, {"chain": 2, "kind": "b"}, {"chain": 1, "kind": "c"}]
    assert [one["kind"] for one in move_watch.of_chain(every, 1)] == ["a", "c"]


def test_reads_a_workers_gpus_from_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    host = hardware.host(
        config__graphicsInfo=[
            hardware.graphics("b", "vm-w1", "vm-v1"),
            hardware.graphics("a", "vm-w1"),
            hardware.graphics("c"),
        ]
    )
    objects = {"vm-w1": machine("w1").values, "host-1": host}
    monkeypatch.setattr(
        properties, "read_many", lambda _s, refs, _paths: {one._moId: objects[one._moId] for one in refs}
    )
    session: Any = SimpleNamespace(api_version=(8, 0, 3, 0))
    found = move_watch.runtime_of(session, vim.VirtualMachine("vm-w1"))
    assert (found.host, found.gpus, found.power, found.powered_on) == ("esx1", ("esx1/a", "esx1/b"), "on", None)
    assert found.plain["gpus"] == ["esx1/a", "esx1/b"]


def encrypted(**arguments: Any) -> Any:
    """Return the event of an encrypted vMotion: an EventEx whose destination is an argument."""
    return vim.event.EventEx(
        key=7,
        chainId=5,
        createdTime=datetime(2026, 1, 1, tzinfo=UTC),
        userName="me",
        eventTypeId="com.vmware.vc.vm.VmHotMigratingWithEncryptionEvent",
        fullFormattedMessage="Migrating w1 off host esx1 with encryption",
        arguments=[vmodl.KeyAnyValue(key=key, value=value) for key, value in arguments.items()],
    )


def test_reads_an_encrypted_hot_migration_with_its_target() -> None:
    found = move_watch._plain(encrypted(destHost="esx5.lab", destDatacenter="dc1"))
    assert (found["kind"], found["target"]) == (move_events.HOT_ENCRYPTED, "esx5.lab")
    assert move_events.HOT_ENCRYPTED in move_events.KINDS, "the server is asked for it"
    assert move_watch._plain(encrypted())["target"] == ""


# The messages of a move of a virtual machine with a vGPU that stood still for more than 100 s (Broadcom's KB 320352 and
# 307365), in an event as vCenter sends it. A message has a text only if the server knows its key.
FAILED = b"""
<event xmlns="urn:vim25" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="VmFailedMigrateEvent">
  <key>7</key><chainId>5</chainId><createdTime>2026-01-01T00:00:00Z</createdTime><userName>me</userName>
  <fullFormattedMessage>Migration of w1 from esx1 to esx5 failed</fullFormattedMessage>
  <reason>
    <fault xsi:type="SystemError">
      <faultMessage>
        <key>msg.checkpoint.migration.maxSwitchoverTimeExceeded</key>
        <message>The migration has exceeded the maximum switchover time of 100 second(s).</message>
      </faultMessage>
      <faultMessage><key>msg.checkpoint.migration.nodata</key></faultMessage>
      <reason>Source detected that destination failed to resume.</reason>
    </fault>
    <localizedMessage>A general system error occurred</localizedMessage>
  </reason>
</event>"""


def test_reads_all_messages_of_a_failed_move() -> None:
    event = Deserialize(FAILED, vim.event.Event)
    event.host = None

    text = move_watch._plain(event)["text"]

    assert text == (
        "the server said SystemError: A general system error occurred; "
        "The migration has exceeded the maximum switchover time of 100 second(s); msg.checkpoint.migration.nodata"
    )
