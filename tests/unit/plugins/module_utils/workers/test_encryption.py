"""Encrypted templates, and templates with a virtual TPM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.errors import Refused
from plugins.module_utils.vsphere import properties
from plugins.module_utils.workers import encryption
from plugins.module_utils.workers.machine import Machine
from plugins.module_utils.workers.worker_spec import WorkerSpec
from tests.fakes.worker_cluster import FakeWorkerCluster, disk, machine

MANAGER = vim.encryption.CryptoManagerKmip("CryptoManager")


def encrypted() -> Machine:
    """Return a template with an encrypted disk."""
    second = disk("golden", "golden_1.vmdk", 1)
    second.backing.keyId = vim.encryption.CryptoKeyId(keyId="key-1")
    return machine("golden", second)


def with_tpm() -> Machine:
    """Return a template with a virtual TPM."""
    return machine("golden", vim.vm.device.VirtualTPM(key=11000))


def provider(name: str) -> Any:
    return vim.encryption.KmipClusterInfo(clusterId=vim.encryption.KeyProviderId(id=name))


def refusal(monkeypatch: pytest.MonkeyPatch, template: Machine, **server: Any) -> str:
    """Return why a clone is refused by a server with these key providers, state of the host, and version."""
    cluster = FakeWorkerCluster(template)
    cluster.session.content = SimpleNamespace(cryptoManager=server.get("manager", MANAGER))
    cluster.session.api_version = server.get("version", (8, 0, 3))  # type: ignore[misc]
    values = {
        "CryptoManager": {"kmipServers": [provider(name) for name in server.get("providers", ["native"])]},
        "host-1": {"runtime.cryptoState": server.get("state", "safe")},
    }
    monkeypatch.setattr(properties, "read_many", lambda _s, refs, _p: {one._moId: values[one._moId] for one in refs})
    try:
        encryption.refuse_unable(cluster, "w1", template, "esx1")
    except Refused as error:
        return str(error)
    return ""


def test_shows_encryption_and_tpm_of_a_machine() -> None:
    shown = [encryption.facts(one) for one in (machine("golden"), encrypted(), with_tpm())]
    assert [(one["encrypted"], one["vtpm"]) for one in shown] == [(False, False), (True, False), (False, True)]


@pytest.mark.parametrize(
    ("requested", "has", "words"),
    [
        ("disabled", {"encrypted": True, "vtpm": False}, "is encrypted, and vSphere always encrypts its moves"),
        ("opportunistic", {"encrypted": False, "vtpm": True}, "has a virtual TPM, and vSphere always encrypts its"),
        ("required", {"encrypted": True, "vtpm": True}, ""),
        ("disabled", {"encrypted": False, "vtpm": False}, ""),
        (None, {"encrypted": True, "vtpm": True}, ""),
    ],
)
def test_refuses_plain_moves_of_encrypted_workers(requested: str | None, has: dict[str, bool], words: str) -> None:
    try:
        encryption.refuse_plain_moves(WorkerSpec("w1", {"vmotion_encryption": requested}), has)
        found = ""
    except Refused as error:
        found = str(error)
    assert words in found and bool(words) == bool(found)


def test_a_clone_gets_a_new_virtual_tpm() -> None:
    assert [encryption.tpm_policy(one) for one in (encrypted(), with_tpm())] == [{}, {"tpmProvisionPolicy": "replace"}]


@pytest.mark.parametrize(
    ("template", "server", "words"),
    [
        (encrypted, {}, ""),
        (with_tpm, {"state": "incapable"}, ""),
        (
            encrypted,
            {"providers": []},
            "clone it from golden, which is encrypted: vcenter.lab shows this account no key",
        ),
        (
            with_tpm,
            {"manager": None},
            "clone it from golden, which has a virtual TPM: vcenter.lab shows this account no key",
        ),
        (with_tpm, {"version": (7, 0, 3)}, "before vCenter 8.0, it would have the secrets of the template's TPM"),
        (encrypted, {"version": (7, 0, 3)}, ""),
        (encrypted, {"state": "pendingIncapable"}, "esx1 gives up its key at the next boot; reboot esx1"),
        (lambda: machine("golden"), {"providers": []}, ""),
    ],
)
def test_refuses_a_template_that_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch, template: Any, server: dict[str, Any], words: str
) -> None:
    found = refusal(monkeypatch, template(), **server)
    assert words in found and bool(words) == bool(found)
