"""The API version of a session: the newest that both sides know."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from plugins.module_utils.vsphere.session import Session


@pytest.mark.parametrize(
    ("server", "client", "both"),
    [
        ("9.1.0.0", "vim.version.v8_0_3_0", (8, 0, 3, 0)),
        ("8.0.3.0", "vim.version.v8_0_3_0", (8, 0, 3, 0)),
        ("7.0.2.0", "vim.version.v7_0_2_0", (7, 0, 2, 0)),
    ],
)
def test_uses_the_older_version_of_server_and_client(server: str, client: str, both: tuple[int, ...]) -> None:
    content = SimpleNamespace(about=SimpleNamespace(apiVersion=server))
    assert Session("vc", content, SimpleNamespace(version=client), {}).api_version == both
