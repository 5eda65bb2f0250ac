"""The data centre in memory, on which histories are explored, answers as modules do on the simulated data centre."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start, this_run
from tests.unit.simulation.modules import SimulatedCalls
from tests.unit.simulation.site import CLUSTER, Host, Profile, Site

HOSTS = ["esx01.lab", "esx02.lab", "esx03.lab", "esx04.lab"]
STEPS = 16
SITE = """
version: 8.0.3
datacenter: dc1
datastores: [shared]
host_defaults: {reboot_seconds: 0.2, hardware: t4_cx5}
clusters:
  - name: gpu
    drs: {enabled: true, behaviour: fullyAutomated}
    hosts: [{name: "esx%02d.lab", count: 4}]
"""


class Both:
    """The same calls to the modules on the simulated data centre and to the model."""

    def __init__(self, vcenter: Simulator, ansible: Ansible) -> None:
        self.vcenter, self.ansible = vcenter, ansible
        self.site = Site({name: Host() for name in HOSTS}, {})
        self.model = SimulatedCalls(self.site, "run 1", {})
        self.story: list[str] = []

    def ask(self, module: str, options: Mapping[str, Any], *, check: bool = False) -> dict[str, Any]:
        """Ask both, compare their answers, and return that of the model."""
        given = dict(options)
        self.story.append(f"{module} {given}{' in check mode' if check else ''}")
        modelled = (self.model.planned if check else self.model.here)(module, given)
        if module == "esxi_profile":
            given["profile"] = real_profile(Profile.of(options["profile"]))
        real = self.ansible.module(module, check=check, **given)
        if options.get("state") == "rebooted":
            # Its state is that of the reboot; the next call shows the host.
            assert bool(real.result.get("failed")) == bool(modelled.get("failed")), f"{self.story}: {real.out}"
            return modelled
        assert seen(module, real.result) == seen(module, modelled), f"{self.story}: {real.out}"
        return modelled


def real_profile(profile: Profile) -> dict[str, Any]:
    """Return a profile that needs one boot, as a real host takes it."""
    return {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": profile.level}}]}


# The keys of each host by which programs decide.
KEYS = {"esxi_profile": ("host", "changed", "needs", "reboots", "out_of_service"), "esxi_power": ("host", "changed")}


def seen(module: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what programs decide by in the answer of a module."""
    cluster = result.get("cluster") or {}
    hosts = [
        {
            **{key: host[key] for key in KEYS[module]},
            **({key: host["state"][key] for key in ("maintenance", "ours")} if module == "esxi_power" else {}),
        }
        for host in result.get("hosts") or []
    ]
    members = [{key: host[key] for key in ("host", "maintenance", "ours")} for host in cluster.get("hosts", [])]
    return {
        "failed": bool(result.get("failed")),
        "hosts": hosts,
        "members": sorted(members, key=lambda host: str(host["host"])),
        "out": sorted(host["host"] for host in cluster.get("out_of_service", [])),
        "stops": sorted((stop["rule"], stop["object"]) for stop in result.get("stops") or []),
    }


def leave(both: Both, choice: random.Random) -> None:
    """Take a host out of service if the stop rules allow it, as a program does."""
    host = choice.choice(HOSTS)
    stops = both.ask("cluster_info", {"cluster": CLUSTER, "leaving": [host], "max_out_of_service": 1})["stops"]
    if not stops:
        both.ask("esxi_power", {"hosts": [host], "state": "maintenance", "rollout": True})


def change(both: Both, choice: random.Random) -> None:
    """Apply the requested profile to the hosts that this collection took out of service, and reboot them."""
    profile = {"profile": both.site.requested.option}
    for name, host in both.site.hosts.items():
        if host.by == "us" and choice.random() < 0.8:
            both.ask("esxi_profile", {"hosts": [name], **profile})
            both.ask("esxi_power", {"hosts": [name], "state": "rebooted", "rollout": True})


def plan(both: Both, _choice: random.Random) -> None:
    both.ask("esxi_profile", {"hosts": HOSTS, "profile": both.site.requested.option}, check=True)


def return_host(both: Both, choice: random.Random) -> None:
    both.ask("esxi_power", {"hosts": [choice.choice(HOSTS)], "state": "in_service", "rollout": True})


def request(both: Both, _choice: random.Random) -> None:
    both.site.requested = Profile(both.site.requested.level + 1, boots=1)


def another_user(both: Both, choice: random.Random) -> None:
    """Another user takes a host into maintenance mode, or returns one."""
    name = choice.choice(HOSTS)
    host = both.site.hosts[name]
    if host.by != "us":
        host.is_out = not host.is_out
        host.by = "bob" if host.is_out else ""
        both.story.append(f"another user: maintenance of {name} is {host.is_out}")
        both.vcenter.set_host(name, maintenance=host.is_out)


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 4))])
def test_model_answers_like_the_modules(start: Start, ansible_for: AnsibleFor, seed: int) -> None:
    vcenter = start(text=SITE)
    both, choice = Both(vcenter, ansible_for(vcenter, **this_run())), random.Random(seed)
    both.ask("cluster_lock", {"cluster": CLUSTER, "state": "held"})
    request(both, choice)
    for _step in range(STEPS):
        choice.choice([leave, change, plan, return_host, request, another_user, leave, change])(both, choice)
    plan(both, choice)
