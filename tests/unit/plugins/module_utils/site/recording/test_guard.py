"""The guard: reads pass, everything else is refused before it is sent."""

from __future__ import annotations

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.site.recording import recorder

HANDLER, URN = "ha-cli-handler-software-vib", "urn:vim25/5.0"


@pytest.mark.parametrize(
    "method",
    [
        "RetrievePropertiesEx",
        "ContinueRetrievePropertiesEx",
        "QueryEvents",
        "QueryPerf",
        "Fetch",
        "CurrentTime",
        "CreateContainerView",
        "DestroyView",
        "RetrieveManagedMethodExecuter",
        "FindByInventoryPath",
        "DirectPathProfileManagerQueryCapacity",
    ],
)
def test_allows_methods_that_read(method: str) -> None:
    recorder.must_read(method)


@pytest.mark.parametrize(
    "method",
    [
        "RebootHost_Task",
        "UpdateOptions",
        "CreateFolder",
        "Destroy_Task",
        "SetField",
        "CreateFilter",
        "Logout",
        "RelocateVM_Task",
        "DestroyPropertyCollector",
        "EnterMaintenanceMode_Task",
        "CheckRelocate_Task",
        "DirectPathProfileManagerCreate",
    ],
)
def test_refuses_methods_that_may_write(method: str) -> None:
    with pytest.raises(Refused, match=method):
        recorder.must_read(method)


def test_only_esxcli_commands_that_get_or_list_pass() -> None:
    recorder.must_read("ExecuteSoap", (HANDLER, URN, "vim.EsxCLI.software.vib.list", []))
    recorder.must_read("ExecuteSoap", (HANDLER, URN, "vim.CLIInfo.FetchCLIInfo", []))
    for method in ("vim.EsxCLI.software.vib.install", "vim.EsxCLI.system.module.parameters.set", "vim.Other.list"):
        with pytest.raises(Refused, match=method):
            recorder.must_read("ExecuteSoap", (HANDLER, URN, method, []))


def test_allows_only_requests_that_read() -> None:
    recorder.must_request("GET", "/api/esx/settings/clusters/domain-c9/software")
    recorder.must_request("POST", "/api/session")
    recorder.must_request("POST", "/api/cis/tagging/tag-association?action=list-attached-tags-on-objects")
    for verb, path in (
        ("POST", "/api/esx/settings/clusters/domain-c9/software/drafts"),
        ("DELETE", "/api/cis/tagging/tag/1"),
        ("POST", "/api/cis/tagging/tag-association/1?action=attach"),
    ):
        with pytest.raises(Refused, match=verb):
            recorder.must_request(verb, path)
