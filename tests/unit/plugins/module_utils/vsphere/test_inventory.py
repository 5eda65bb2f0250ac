"""A name must mean exactly one object: of two data centres, each may have one of that name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.errors import NotFound
from plugins.module_utils.vsphere import inventory, properties

SERVER: Any = SimpleNamespace(server="vcenter.lab")


def there_are(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    found = [(SimpleNamespace(_moId=f"object-{number}"), {"name": name}) for number, name in enumerate(names)]
    monkeypatch.setattr(properties, "find_all", lambda _session, _kind, _paths: found)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("gpu", "gpu", "other"), "2 objects have that name"),
        (("GPU", "other"), "there is none; it has GPU, other"),
        ((), "there is none; it has none"),
    ],
)
def test_a_cluster_must_be_exactly_one(monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], expected: str) -> None:
    there_are(monkeypatch, *names)
    with pytest.raises(NotFound) as error:
        inventory.find_cluster(SERVER, "gpu")
    assert str(error.value) == (
        f"vcenter.lab: could not find one cluster named 'gpu': {expected}; correct the name of the cluster"
    )


def test_a_host_must_be_exactly_one(monkeypatch: pytest.MonkeyPatch) -> None:
    there_are(monkeypatch, "esx01", "esx02", "esx02")
    with pytest.raises(NotFound, match="one host named 'esx02': 2 objects have that name"):
        inventory.find_hosts(SERVER, {"hosts": ["esx01", "esx02"]})
    assert [host.name for host in inventory.find_hosts(SERVER, {"hosts": ["esx01"]}).hosts] == ["esx01"]
