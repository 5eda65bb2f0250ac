"""The inventory of workers ends the run after an error, and caches the workers of each connection separately."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from plugins.inventory import workers
from plugins.module_utils.vsphere import session
from plugins.module_utils.workers import existing_workers

OPTIONS: dict[str, Any] = {
    **dict.fromkeys(session.arguments()),
    "hostname": "vcenter.lab",
    "port": 443,
    "validate_certs": True,
    "clusters": [],
    "cache": True,
}


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> workers.InventoryModule:
    """The plugin with the options of a source."""
    plugin = workers.InventoryModule()
    monkeypatch.setattr(plugin, "get_option", OPTIONS.get)
    monkeypatch.setattr(plugin, "_cache", {}, raising=False)
    monkeypatch.setattr(session, "session", nullcontext)
    return plugin


def test_unexpected_error_ends_the_run(
    plugin: workers.InventoryModule, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_arguments: object) -> None:
        raise AttributeError("'str' object has no attribute 'get'")

    monkeypatch.setattr(existing_workers, "read_workers", fail)

    with pytest.raises(SystemExit) as ended:
        plugin._read()

    assert ended.value.code == workers.PARSER_ERROR
    sentence = "vcenter.lab: could not read the workers: AttributeError: 'str' object has no attribute 'get'; run dml"
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "changed",
    [{"hostname": "vcenter2.lab"}, {"port": 8443}, {"vcenter_uuid": "5f"}, {"clusters": ["gpu"]}],
    ids=lambda changed: next(iter(changed)),
)
def test_changed_selection_reads_the_workers_again(
    plugin: workers.InventoryModule, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    reads: list[object] = []

    def read_workers(_session: object, clusters: object) -> list[object]:
        reads.append(clusters)
        return []

    monkeypatch.setattr(existing_workers, "read_workers", read_workers)
    monkeypatch.setattr(plugin, "_read_config_data", lambda _path: None)

    for options in (OPTIONS, OPTIONS, {**OPTIONS, **changed}):
        monkeypatch.setattr(plugin, "get_option", options.get)
        plugin.parse(None, None, "lab.workers.yml")

    assert len(reads) == 2
