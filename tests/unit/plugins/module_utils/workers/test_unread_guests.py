"""Which guests count as busy because their training jobs are unknown."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.vsphere import custom_fields, inventory, properties
from plugins.module_utils.workers import unread_guests, worker_mark
from plugins.module_utils.workers.unread_guests import NOT_IN_INVENTORY, Guest, nodes_of, refusal, unread

WORKER = Guest("worker01", frozenset({"worker01", "renamed", "node-a.example.com", "10.0.1.11", "fe80::1"}), True)
OTHER = Guest("other", frozenset({"other", "10.0.1.99"}), False)
LOST = {"unreachable": True, "msg": "Task failed: Failed to connect\n  to the host via ssh: Permission denied."}
IDLE: dict[str, Any] = {"jobs": []}
HERE = vim.HostSystem("host-1")
NOW = datetime(2026, 3, 1, 8, tzinfo=UTC)


def reasons(answers: dict[str, Any], addresses: dict[str, Any], names: tuple[str, ...] = ()) -> dict[str, str]:
    found = unread([WORKER, OTHER], nodes_of(answers, addresses), names)
    return {guest.name: guest.reason for guest in found}


@pytest.mark.parametrize(
    ("name", "address"),
    [("worker01", None), ("Renamed", None), ("a", "10.0.1.11"), ("a", "FE80::1"), ("node-a.example.com", "gate")],
)
def test_matches_guests_to_nodes_by_name_or_address(name: str, address: str | None) -> None:
    assert reasons({name: IDLE}, {name: address}) == {}
    assert reasons({name: LOST}, {name: address}) == {
        "worker01": "Task failed: Failed to connect to the host via ssh: Permission denied"
    }


def test_a_worker_that_no_node_matches_is_unread() -> None:
    assert reasons({}, {}) == reasons({"a": IDLE}, {"a": "10.0.1.1"}) == {"worker01": NOT_IN_INVENTORY}


def test_accepts_one_answer_from_a_guests_two_nodes() -> None:
    assert reasons({"worker01": LOST, "a": IDLE}, {"a": "10.0.1.11"}) == {}


@pytest.mark.parametrize("answer", [{"skipped": True}, {}, {"msg": ""}])
def test_gives_a_reason_for_nodes_without_a_message(answer: dict[str, Any]) -> None:
    assert reasons({"worker01": answer}, {}) == {"worker01": "this run did not ask for them"}


def test_counts_unmarked_guests_only_as_named_or_nodes() -> None:
    assert reasons({"worker01": IDLE}, {}, ("other", "missing")) == {"other": NOT_IN_INVENTORY}
    assert list(reasons({"worker01": IDLE, "other": LOST}, {})) == ["other"]


def marked(key: str, name: str, cluster: str, host: Any) -> tuple[Any, dict[str, Any]]:
    """A running machine with a mark."""
    mark = vim.CustomFieldsManager.StringValue(key=1, value=json.dumps({"name": name, "cluster": cluster}))
    values = {"name": name, "runtime.host": host, "runtime.powerState": "poweredOn", "customValue": [mark]}
    return vim.VirtualMachine(key), values


def vcenter(monkeypatch: pytest.MonkeyPatch, machines: list[Any], values: dict[str, Any]) -> Any:
    """A session with a vCenter that has these machines, and these values of their guests."""
    fields = [SimpleNamespace(name=worker_mark.ATTRIBUTE, key=1)]
    monkeypatch.setattr(custom_fields, "definitions", lambda _session: fields)
    monkeypatch.setattr(inventory, "find_cluster", lambda *_: (None, {"host": [HERE]}))
    monkeypatch.setattr(properties, "find_all", lambda *_: machines)
    monkeypatch.setattr(properties, "read_many", lambda *_: values)
    monkeypatch.setattr(unread_guests, "_gpu_loads", lambda *_: {})
    monkeypatch.setattr(unread_guests, "server_time", lambda _session: NOW)
    return SimpleNamespace()


def test_reports_foreign_workers_on_these_hosts_as_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its job is not asked, because its mark names the other cluster: it moved here, or the cluster was renamed."""
    elsewhere = vim.HostSystem("host-9")
    machines = [
        marked("vm-1", "w1", "gpu", elsewhere),
        marked("vm-2", "w2", "gpu-2025", HERE),
        marked("vm-3", "w3", "other", elsewhere),
    ]
    session = vcenter(monkeypatch, machines, {})

    found = unread(unread_guests.read_guests(session, "gpu"), nodes_of({}, {}), ())

    reason = (
        "it runs on a host of this cluster, but is a worker of cluster gpu-2025, whose workers this run does not ask"
    )
    assert {guest.name: guest.reason for guest in found} == {"w1": NOT_IN_INVENTORY, "w2": reason}


@pytest.mark.parametrize(
    ("seconds", "power", "tools", "answer", "boots"),
    [
        (20.0, "poweredOn", "guestToolsNotRunning", None, 580.0),
        (20.0, "poweredOn", "guestToolsNotRunning", LOST, 580.0),
        # Tools can start before sshd.
        (20.0, "poweredOn", "guestToolsRunning", LOST, 580.0),
        # The node was reached, or is not in the inventory: a wait for its boot changes nothing.
        (20.0, "poweredOn", "guestToolsRunning", {"failed": True, "msg": "no Python"}, 0.0),
        (20.0, "poweredOn", "guestToolsRunning", None, 0.0),
        (700.0, "poweredOn", "guestToolsNotRunning", LOST, 0.0),
        (20.0, "suspended", "guestToolsNotRunning", LOST, 0.0),
        # The clock of its host is ahead, and a move forgets when it was powered on.
        (-90.0, "poweredOn", "guestToolsNotRunning", LOST, 600.0),
        (None, "poweredOn", "guestToolsNotRunning", LOST, 0.0),
    ],
)
def test_a_guest_that_was_powered_on_recently_boots(
    monkeypatch: pytest.MonkeyPatch, seconds: float | None, power: str, tools: str, answer: Any, boots: float
) -> None:
    began = None if seconds is None else NOW - timedelta(seconds=seconds)
    values = {"runtime.powerState": power, "runtime.bootTime": began, "guest.toolsRunningStatus": tools}
    session = vcenter(monkeypatch, [marked("vm-1", "w1", "gpu", HERE)], {"vm-1": values})

    (found,) = unread(unread_guests.read_guests(session, "gpu"), nodes_of({"w1": answer} if answer else {}, {}), ())

    assert found.boots == boots


def test_refusal_names_guests_per_reason_and_the_option() -> None:
    third = WORKER._replace(name="worker03", known_as=frozenset({"worker03"}))
    found = unread([WORKER, OTHER, third], nodes_of({"other": {"msg": "no route"}}, {}), ())
    assert refusal("gpu", found) == (
        "gpu: could not make sure that no training job is stopped: these guests are not powered off, and their"
        f" training jobs cannot be read: other (no route), worker01, worker03 ({NOT_IN_INVENTORY}); correct the access"
        " to these guests or power them off, or, if they do not train, run again with unreachable_is_idle=true"
    )
    assert refusal("gpu", []) == ""


def test_the_refusal_shows_the_load_that_vcenter_reports() -> None:
    busy, unknown = WORKER._replace(load=0.874), WORKER._replace(name="worker03", known_as=frozenset({"worker03"}))
    on_gpu = WORKER._replace(name="worker02", known_as=frozenset({"worker02"}), load=0.02, gpu_load=0.97)
    found = unread([busy, on_gpu, unknown], nodes_of({}, {}), ())
    assert (
        "worker01 with its processors at 87%, worker02 with its processors at 2% and a GPU of its host at 97%, "
        f"worker03 ({NOT_IN_INVENTORY})"
    ) in refusal("gpu", found)
