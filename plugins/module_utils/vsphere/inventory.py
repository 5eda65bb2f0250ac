"""The hosts of one call: found once, read in one go, each with its properties at hand."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..errors import NotFound, Unreachable
from . import properties
from .escaped_names import plain
from .esxcli import Esxcli
from .sdk import ApiObject, vim
from .session import Session

ARGUMENTS: dict[str, Any] = {"hosts": {"type": "list", "elements": "str"}, "cluster": {"type": "str"}}
EXACTLY_ONE = [("hosts", "cluster")]
ALWAYS = ("name", "runtime.connectionState", "runtime.inMaintenanceMode", "runtime.bootTime")
SETTLE_SECONDS = 5


class Host:
    """One ESXi host: its reference, its name, and its properties as last read."""

    def __init__(self, session: Session, ref: ApiObject, name: str) -> None:
        self.session, self.ref, self.name = session, ref, name
        self.properties: properties.Values = {}

    def __getitem__(self, path: str) -> Any:
        """Return a property that was read; None if it is not set."""
        return self.properties.get(path)

    @property
    def reachable(self) -> bool:
        return bool(self["runtime.connectionState"] == "connected")

    @property
    def in_maintenance(self) -> bool:
        return bool(self["runtime.inMaintenanceMode"])

    @property
    def boot_time(self) -> str | None:
        """Return the time of the host's last boot, as ISO text in UTC."""
        moment = self["runtime.bootTime"]
        return moment.isoformat(timespec="seconds") if moment else None

    @cached_property
    def esxcli(self) -> Esxcli:
        return Esxcli(self.session, self.ref, self.name)

    def must_answer(self, tried: str) -> None:
        """Refuse a host that vCenter cannot reach."""
        if not self.reachable:
            raise Unreachable(
                self.name,
                tried,
                f"vCenter shows it as {self['runtime.connectionState']}",
                "bring it back and run again",
            )

    def settle(
        self, paths: Sequence[str], done: Callable[[Mapping[str, Any]], bool], seconds: float = SETTLE_SECONDS
    ) -> bool:
        """Wait until vCenter's copy of the host shows a change; False if the time runs out first."""
        deadline = time.monotonic() + seconds
        for values in properties.watch(self.session, [self.ref], paths, deadline):
            if done(values[self.ref._moId]):
                return True
        return False


class HostSet:
    """The hosts of one call."""

    def __init__(self, session: Session, hosts: Iterable[Host], paths: Sequence[str]) -> None:
        self.session, self.hosts = session, tuple(hosts)
        self.paths = tuple(dict.fromkeys((*ALWAYS, *paths)))

    def refresh(self, hosts: Iterable[Host] | None = None) -> None:
        """Read the properties of all the hosts, or of some, in one go."""
        chosen = tuple(self.hosts if hosts is None else hosts)
        values = properties.read_many(self.session, [host.ref for host in chosen], self.paths)
        for host in chosen:
            host.properties = values.get(host.ref._moId, {})

    def refresh_for(self, subjects: Iterable[Any]) -> None:
        """Read the hosts of the given subjects again."""
        self.refresh(dict.fromkeys(subject.host for subject in subjects))


def find_hosts(session: Session, params: Mapping[str, Any], paths: Sequence[str] = ()) -> HostSet:
    """Return the hosts that ``hosts`` or ``cluster`` names; every name must match exactly one host."""
    if params.get("cluster"):
        refs = find_cluster(session, params["cluster"], ("host",))[1].get("host", [])
        named = properties.read_many(session, refs, ("name",))
        hosts = [Host(session, ref, named[ref._moId]["name"]) for ref in refs]
    else:
        hosts = _by_name(session, params["hosts"])
    return HostSet(session, sorted(hosts, key=lambda host: host.name), paths)


def find_cluster(session: Session, name: str, paths: Sequence[str] = ()) -> properties.Found:
    """Return the only cluster with this name, with properties."""
    name = plain(name)
    found = properties.find_all(session, vim.ClusterComputeResource, ("name", *paths))
    return _one(session, "cluster", name, [(ref, values) for ref, values in found if values["name"] == name], found)


def _by_name(session: Session, names: Sequence[str]) -> list[Host]:
    found = properties.find_all(session, vim.HostSystem, ("name",))
    count = Counter(names)
    for name in names:
        if count[name] > 1:
            raise NotFound(name, "take it as a host", "it is named twice in this call", "name it once")
    matching = {name: [(ref, values) for ref, values in found if values["name"] == name] for name in names}
    return [Host(session, _one(session, "host", name, matching[name], found)[0], name) for name in names]


def _one(
    session: Session, kind: str, name: str, matching: list[properties.Found], found: list[properties.Found]
) -> properties.Found:
    if len(matching) == 1:
        return matching[0]
    known = ", ".join(sorted(values["name"] for _ref, values in found)[:10]) or "none"
    reason = f"{len(matching)} objects have that name" if matching else f"there is none; it has {known}"
    raise NotFound(session.server, f"find one {kind} named {name!r}", reason, f"correct the name of the {kind}")
