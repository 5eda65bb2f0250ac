"""Faults that hit playbooks/hosts.yml, and the bench on which it happens: break, run, look, mend, run again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from lab.simulator import Simulator
from plugins.module_utils.vsphere import session
from tests.integration.ansible import Ansible, Outcome
from tests.integration.killing import has_started, wait_for
from tests.integration.rolling import PLAYBOOK, arguments, run, times

HOST, CLUSTER = "esx01.lab", "gpu"
PROFILE: dict[str, Any] = {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}]}
DRIVER = {
    "name": "NVD-AIE_ESXi_8.0.0_Driver",
    "version": "550.90.05",
    "source": "[shared] NVD-AIE-800_550.90.05-1OEM.800.1.0.20613240_24012345.zip",
}
CONNECTION: dict[str, Any] = {"validate_certs": True, "tls_fingerprint": None, "proxy": None, "timeout": 60}
FATAL = re.compile(r"^fatal: \[[^\]]+\]: FAILED! => ?\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    ``do`` breaks it, at once or when the first call of ``at`` is seen; ``mend`` repairs it where ending all planned
    faults does not; ``words`` stand in the one sentence; ``out`` is whether the host is in maintenance mode afterwards.
    """

    name: str
    do: Callable[[Simulator], None]
    words: tuple[str, ...]
    out: bool = True
    at: str = ""
    mend: Callable[[Simulator], None] = Simulator.heal
    variables: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


class Bench:
    """One data centre with the playbook run on it again and again, and all calls to the server meanwhile."""

    def __init__(self, vcenter: Simulator, ansible: Ansible, profile: dict[str, Any] | None = None) -> None:
        self.vcenter, self.ansible, self.profile = vcenter, ansible, profile or PROFILE
        self.earlier: list[dict[str, Any]] = []

    @property
    def writes(self) -> list[dict[str, Any]]:
        """Every mutating call of all runs."""
        return [*self.earlier, *self.vcenter.writes()]

    def boots(self) -> Counter[str]:
        """How often each host was rebooted."""
        return times(self.writes, "RebootHost_Task")

    def next_run(self) -> None:
        """Return what is seen from now on belongs to the next run."""
        self.earlier = self.writes
        self.vcenter.clear()

    def run(self, **variables: Any) -> Outcome:
        """Run the playbook to its end."""
        return run(self.ansible, esxi_host_profile=self.profile, **variables)

    def begin(self, **variables: Any) -> Any:
        """Begin the playbook without waiting for it."""
        return self.ansible.start(PLAYBOOK, *arguments(self.ansible, esxi_host_profile=self.profile, **variables))

    def suffer(self, fault: Fault) -> str:
        """Run with the fault; the sentence that the user reads, after all that must hold was seen to hold."""
        self.next_run()
        if fault.at:
            running = self.begin(**fault.variables)
            wait_for(has_started(self.vcenter, fault.at))
            fault.do(self.vcenter)
            text, code = running.communicate(timeout=600)[0], running.returncode
        else:
            fault.do(self.vcenter)
            outcome = self.run(**fault.variables)
            text, code = outcome.out, outcome.rc
        assert code == 2, text
        sentence = last_sentence(text)
        for words in fault.words:
            assert words in sentence, sentence
        assert sentence.count("could not") <= 1, sentence
        assert self.lock() == "free"
        assert self.vcenter.ask("GET", f"/hosts/{HOST}")["maintenance"] is fault.out, text
        return sentence

    def lock(self) -> str:
        """The state of the cluster's lock as someone else sees it: free, or the sentence that says who holds it."""
        requested = self.ansible.module("cluster_lock", check=True, cluster=CLUSTER, state="free", run="looking")
        return requested.msg if requested.rc else "held" if requested.changed else "free"

    def finish(self, *hosts: str, killed: bool = False) -> None:
        """Nothing is broken any more: one run ends it all, no host was booted more often than it had to be."""
        self.next_run()
        done = self.run()
        assert done.rc == 0, done.out
        if killed:
            self.free_of_the_dead()
        self.must_be_done(*hosts)

    def free_of_the_dead(self) -> None:
        """A run with nothing to do needs no lock: that of a dead run stays until someone on its machine wants it."""
        if self.lock() == "held":
            assert self.ansible.module("cluster_lock", cluster=CLUSTER, run="next").changed
            assert self.ansible.module("cluster_lock", cluster=CLUSTER, run="next", state="free").changed

    def must_be_done(self, *hosts: str) -> None:
        """Everything is in force, in service and free, and a look at it writes nothing."""
        assert self.boots() == dict.fromkeys(hosts or (HOST,), 1)
        assert self.lock() == "free"
        self.next_run()
        state = self.ansible.module("esxi_profile", check=True, cluster=CLUSTER, profile=self.profile)
        assert (state.changed, state.result["needs"]) == (False, []), state.out
        left = self.ansible.module("esxi_power", check=True, cluster=CLUSTER, state="in_service")
        assert not left.changed, left.out
        assert not any(entry["state"]["maintenance"] for entry in left.result["hosts"])
        assert self.vcenter.writes() == []


def last_sentence(text: str) -> str:
    """The last sentence with which ansible ended; it holds the sentence of the task that failed, once."""
    messages = [" ".join(str(yaml.safe_load(block).get("msg", "")).split()) for block in FATAL.findall(text)]
    assert messages, text
    first, last = messages[0], messages[-1]
    assert first.rstrip(".") in last, messages
    return last


def power_off(vcenter: Simulator, name: str) -> None:
    """Someone powers a virtual machine off."""
    with session.session({**CONNECTION, **vcenter.connection}) as opened:
        view = opened.content.viewManager.CreateContainerView(opened.content.rootFolder, None, True)
        (machine,) = [one for one in view.view if one.name == name]
        machine.PowerOffVM_Task()
        wait_for(lambda: machine.runtime.powerState == "poweredOff")
