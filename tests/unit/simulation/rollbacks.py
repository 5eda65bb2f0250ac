"""The evidence that a change of hosts saves, and the tasks of roles that read it, on a data centre in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from plugins.module_utils import runner
from plugins.module_utils.durable.calls import required
from plugins.module_utils.hosts.change_hosts import HostChangeOptions
from plugins.plugin_utils import role_programs

from .host import MODULE
from .modules import Result, SimulatedCalls
from .site import CLUSTER, Site


@dataclass(frozen=True)
class Evidence:
    """A file of evidence, with the profile and the machine of each host in it."""

    path: Path
    levels: Mapping[str, int]
    uuids: Mapping[str, str]
    is_complete: bool

    def is_of(self, site: Site) -> bool:
        """Return whether the hosts are still the machines that they were."""
        return all(site.hosts[name].uuid == uuid for name, uuid in self.uuids.items())


class RoleCalls(SimulatedCalls):
    """The calls of the tasks of a role."""

    def run_module(self, module: str, options: Result, is_planned: bool) -> Result:
        """Run a module as a task of a role does."""
        if module == "program":
            gate = cast(runner.Gate, SimpleNamespace(check_mode=is_planned))
            return role_programs.run(options["name"], options["options"], self, gate)
        return (self.planned if is_planned else self.here)(module, options)


def saved(calls: SimulatedCalls, path: Path, change: HostChangeOptions) -> Evidence:
    """Save the state of the hosts before a change, as the role evidence does."""
    profiles = {"profile": dict(change.profile), "host_profiles": dict(change.host_profiles)}
    gate = cast(runner.Gate, SimpleNamespace(check_mode=False))
    result = role_programs.run("evidence", {"cluster": CLUSTER, **profiles, "image": {}}, calls, gate)
    document = required(result)["document"]
    calls.effect("save the evidence", lambda: path.write_text(json.dumps(document)))
    read = [host for host in document["hosts"] if not host.get("failed")]
    levels = {host["host"]: host["kernel_modules"][MODULE]["options"]["level"] for host in read}
    uuids = {host["host"]: host["uuid"] for host in read}
    return Evidence(path, levels, uuids, len(read) == len(document["hosts"]))
