"""Storage policies by vCenter's REST API: compliance in batches, and only what lacks a policy gets it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.vsphere import rest
from plugins.module_utils.workers import storage

POLICIES = "/api/vcenter/storage/policies"


@pytest.fixture
def sent() -> list[tuple[str, str, Any]]:
    return []


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, sent: list[tuple[str, str, Any]]) -> rest.Rest:
    """Return a session with a server where vm-1 has a policy on its home and on one disk, and vm-2 does not comply."""
    of = {"vm-1": {"vm_home": "COMPLIANT", "disks": {"2000": "COMPLIANT"}}, "vm-2": {"disks": {"2000": "OUT_OF_DATE"}}}

    def exchange(_self: rest.Rest, verb: str, path: str, body: Any, _headers: Any) -> tuple[int, str]:
        sent.append((verb, path.partition("?")[0], json.loads(body) if body else path.count("vms=")))
        if "compliance" in path:
            return 200, json.dumps({vm: one for vm, one in of.items() if f"vms={vm}&" in f"{path}&"})
        return (200, json.dumps({"vm-1": {"vm_home": True, "disks": ["2000"]}})) if verb == "GET" else (204, "")

    monkeypatch.setattr(rest.Rest, "_exchange", exchange)
    params = {"hostname": "vc", "port": 443, "username": "root", "password": "secret", "timeout": 5}
    session: Any = SimpleNamespace(server="vc:443", params=params, exchange=None)
    return rest.Rest(session)


def test_reads_the_worst_compliance_of_many_machines(api: rest.Rest, sent: list[tuple[str, str, Any]]) -> None:
    found = storage.compliance(api, [f"vm-{number}" for number in range(1, 451)])
    assert found == {"vm-1": "COMPLIANT", "vm-2": "OUT_OF_DATE"}
    assert [number for _verb, _path, number in sent] == [200, 200, 50]


@pytest.mark.parametrize(
    ("machine", "disks", "changed"),
    [
        ("vm-1", ["2000"], None),
        ("vm-1", ["2000", "2001"], {"disks": ["2001"]}),
        ("vm-3", ["2000"], {"vm_home": [], "disks": ["2000"]}),
    ],
)
def test_only_parts_without_the_policy_get_it(
    api: rest.Rest, sent: list[tuple[str, str, Any]], machine: str, disks: list[str], changed: Any
) -> None:
    storage.assign(api, machine, "p1", disks)
    written = [body for verb, _path, body in sent if verb == "PATCH"]
    chosen = {"type": "USE_SPECIFIED_POLICY", "policy": "p1"}
    expected = {key: dict.fromkeys(keys, chosen) if keys else chosen for key, keys in (changed or {}).items()}
    assert written == ([expected] if changed else [])


@pytest.mark.parametrize(
    ("status", "words"), [("COMPLIANT", ""), (None, ""), ("NON_COMPLIANT", "'gold': non compliant")]
)
def test_warns_of_a_worker_that_does_not_comply(status: str | None, words: str) -> None:
    found = storage.warning({"storage_policy": "gold", "storage_compliance": status})
    assert found.endswith(words) and bool(words) == bool(found)
