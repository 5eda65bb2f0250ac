"""Boots a simulated host the way its own console would, for tests of what a boot takes."""

from __future__ import annotations

from lab.simulator import Simulator
from plugins.module_utils.vsphere import inventory, session

DEFAULTS = {"validate_certs": True, "tls_fingerprint": None, "proxy": None, "timeout": 30}


def boot(vcenter: Simulator, name: str) -> None:
    """Put a host into maintenance mode, boot it, and return when it is back with a new boot time."""
    vcenter.set_host(name, maintenance=True, reboot_seconds=0.2)
    with session.session({**DEFAULTS, **vcenter.connection}) as opened:
        found = inventory.find_hosts(opened, {"hosts": [name]})
        found.refresh()
        (host,) = found.hosts
        before = host["runtime.bootTime"]
        host.ref.RebootHost_Task(force=False)
        host.settle(
            ("runtime.bootTime", "runtime.connectionState"),
            lambda now: now["runtime.connectionState"] == "connected" and now["runtime.bootTime"] != before,
            30,
        )
        found.refresh()
        assert host.reachable
        assert host["runtime.bootTime"] != before
