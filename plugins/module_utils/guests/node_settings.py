"""Settings of a node that differ from the desired settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..core.json_values import JsonObject, parse_json
from ..core.run_request import narrowing_options
from . import stun_timers

PINNED = re.compile(r"^stricthostkeychecking (yes|true)$", re.MULTILINE)
# The first name of each line that the role node has written.
PEERS = re.compile(r"^# BEGIN peers, kept by Ansible$(.*?)^# END peers, kept by Ansible$", re.MULTILINE | re.DOTALL)
PEER = re.compile(r"^[^\s,#]+", re.MULTILINE)
UNLIMITED = {"unlimited": "-1", "infinity": "-1"}


def misfits(found: JsonObject, desired: JsonObject) -> list[str]:
    """Return a sentence for each setting with another value; in a list, every value must match."""
    sentences = []
    for name, value in desired.items():
        there = found.get(name)
        values = there if isinstance(there, list) else [there]
        if {_plain(actual) for actual in values} != {_plain(value)}:
            sentences.append(f"{name} is {' and '.join(str(actual) for actual in values)}, not {value}.")
    return sentences


def sysctls(lines: Sequence[str]) -> dict[str, str]:
    """Return the kernel settings by name from the lines of ``sysctl``."""
    return dict(line.split(" = ", 1) for line in lines if " = " in line)


# A lookup in /etc/hosts takes milliseconds.
SLOW_SECONDS = 1.0


def slow_lookups(printed: str) -> list[str]:
    """Return a sentence if lookups of the peers take long, from the seconds of each as a JSON text."""
    seconds = parse_json(printed)
    times = {str(what): float(each) for what, each in seconds.items()} if isinstance(seconds, Mapping) else {}
    slow = {what: each for what, each in times.items() if each > SLOW_SECONDS}
    if not slow:
        return []
    named = ", ".join(f"{what} {each:.1f} s" for what, each in sorted(slow.items()))
    remedy = "/etc/hosts must have the lines of this role, and come first in nsswitch.conf"
    return [f"Lookups of the peers take long ({named}), and each job makes several before its first step: {remedy}."]


def left_out_peers(known_hosts: str, desired: JsonObject) -> list[str]:
    """Return a sentence if options of the run leave out peers of the node that the inventory still has."""
    options = narrowing_options(desired)
    pinned = [name for block in PEERS.findall(known_hosts) for name in PEER.findall(block)]
    left = [name for name in pinned if name in desired["inventory"] and name not in desired["peers"]]
    if not options or not left:
        return []
    what = f"{options} leaves out {', '.join(left)}, to which the node would lose its connection"
    return [f"{what}: run without {options}, or set node_peers to the nodes that train together."]


def node_misfits(found: JsonObject, desired: JsonObject) -> list[str]:
    """Return a sentence for each wrong kernel setting and limit, each short timer, and unpinned host keys."""
    kernel = sysctls(found["sysctls"])
    sentences = misfits(kernel, desired["sysctls"])
    for limits in found["limits"]:
        sentences += misfits(parse_json(limits), desired["limits"])
    observed = {"ssh": found["ssh"], "sshd": found["sshd"], "sysctls": kernel}
    sentences += stun_timers.risks(observed, float(desired["stun_seconds"]))
    if not PINNED.search(found["ssh"]):
        sentences.append("ssh accepts host keys of peers that are not pinned.")
    return list(dict.fromkeys(sentences))


def _plain(value: object) -> str:
    """Return a value as text, with single blanks instead of the kernel's several."""
    text = " ".join(str(value).split())
    return UNLIMITED.get(text, text)
