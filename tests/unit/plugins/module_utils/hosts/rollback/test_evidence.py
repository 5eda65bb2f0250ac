"""Evidence contains the data for a rollback, and no secret."""

from __future__ import annotations

import json

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.hosts.rollback.evidence import digest, document, without_secrets

HOSTS = {"changed": False, "hosts": [{"host": "esx1", "vibs": {"running": []}}]}
CLUSTER = {"changed": False, "cluster": {"name": "gpu"}, "stops": [], "invocation": {"module_args": {"username": "me"}}}


def test_document_contains_hosts_cluster_and_profiles_only() -> None:
    desired = {"profile": {"pvrdma": {"vmk": "vmk1"}}, "host_profiles": {}}
    kept = document(HOSTS, CLUSTER, desired, "2026-01-02T03:04:05Z")
    assert kept == {
        "digest": digest(kept),
        "format": 2,
        "taken": "2026-01-02T03:04:05Z",
        "wanted": desired,
        "cluster": {"name": "gpu"},
        "hosts": HOSTS["hosts"],
    }


def test_refuses_to_save_a_partly_masked_name() -> None:
    masked = {**HOSTS, "hosts": [{"host": "esx01.********"}]}

    with pytest.raises(Refused, match=r"write it: esx01\.\*{8} is a masked name: .* password; choose a password"):
        document(masked, CLUSTER, {"profile": {}, "host_profiles": {}}, "now")


def test_accounts_in_urls_and_secrets_are_left_out() -> None:
    vib = {
        "name": "N",
        "source": "https://me:hush@depot.lab/x.zip",
        "password": "hush",
        "api_token": "hush",
        "tokens": [],
    }
    kept = without_secrets({"vibs": [vib], "addresses": ("10.0.0.1", 5, None, True)})
    assert "hush" not in json.dumps(kept)
    assert kept["vibs"][0]["source"] == "https://HIDDEN@depot.lab/x.zip"
    assert kept["vibs"][0]["name"] == "N" and kept["vibs"][0]["tokens"] == []
    assert kept["addresses"] == ["10.0.0.1", 5, None, True]


def test_every_part_of_the_evidence_is_without_secrets() -> None:
    url = "https://me:hush@depot.lab/x.zip"
    parts = ({"hosts": [{"host": "esx1", "seen": url}]}, {"cluster": {"seen": url}}, {"profile": {"seen": url}})
    kept = json.dumps(document(*parts, when="now"))
    assert "hush" not in kept and kept.count("HIDDEN") == len(parts)
