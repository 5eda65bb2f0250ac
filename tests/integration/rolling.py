"""Runs of playbooks/hosts.yml, and what the server's log of writes reports about them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from lab.simulator import DATACENTRES
from tests.integration.ansible import Ansible, Outcome

PLAYBOOK = "playbooks/hosts.yml"
LAB = ("-i", "inventories/lab")
Writes = Iterable[dict[str, Any]]


def datacentre(*hosts: str, ha: bool = False, more: str = "") -> str:
    """The lab's data centre with other hosts, each the content of a YAML mapping; they boot in a second."""
    text = (
        (DATACENTRES / "ready.yml").read_text().partition("\nvms:")[0].replace("reboot_seconds: 2", "reboot_seconds: 1")
    )
    lines = [line for line in text.splitlines() if '"esx%02d.lab"' not in line]
    if not ha:
        lines = [re.sub(r"ha: \{.*", "ha: {enabled: false}", line) for line in lines]
    return "\n".join([*lines, *(f"      - {{{host}}}" for host in hosts), more, ""])


def arguments(ansible: Ansible, *options: str, **variables: Any) -> list[str]:
    """The command line of a run on the lab's inventory with extra variables."""
    given = {"esxi_host_evidence_dir": str(ansible.folder / "evidence"), **variables}
    return [*LAB, *options, "-e", json.dumps(given)]


def run(ansible: Ansible, *options: str, **variables: Any) -> Outcome:
    """Run the playbook to its end."""
    return ansible.playbook(PLAYBOOK, *arguments(ansible, *options, **variables))


def times(writes: Writes, method: str) -> Counter[str]:
    """How often a method was called with success, by the host's name."""
    return Counter(write["name"] for write in writes if write["method"] == method and write["result"] == "ok")


def recap(outcome: Outcome) -> dict[str, int]:
    """The numbers of the play recap."""
    tail = outcome.out.split("PLAY RECAP")[-1]
    return {key: int(number) for key, number in re.findall(r"(ok|changed|failed)=(\d+)", tail)}


def shown_changes(outcome: Outcome) -> dict[str, set[str]]:
    """The changed lines of all diffs of host profiles that were shown, by host."""
    changes: dict[str, set[str]] = {}
    host = ""
    for line in outcome.out.splitlines():
        if line.startswith("--- before: "):
            host, _colon, what = line.removeprefix("--- before: ").partition(": ")
            host = host if what == "host profile" else ""
        elif host and re.match(r"[-+] {4}", line):
            changes.setdefault(host, set()).add(line)
    return changes
