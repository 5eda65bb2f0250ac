"""The pseudonyms with which a recording of a site begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.site.acceptance import collect
from plugins.module_utils.vsphere import properties


@pytest.mark.parametrize("hostname", ["vcenter.acme.org", "vcenter.acme.org:8443"])
def test_replaces_the_host_name_of_the_connection(monkeypatch: pytest.MonkeyPatch, hostname: str) -> None:
    monkeypatch.setattr(properties, "find_all", lambda *_arguments: [])
    session: Any = SimpleNamespace(params={"hostname": hostname})

    pseudonyms = collect._pseudonyms(session)

    assert pseudonyms.text("GET https://vcenter.acme.org/api/vcenter/host") == (
        "GET https://vcenter.domain-1.example/api/vcenter/host"
    )
