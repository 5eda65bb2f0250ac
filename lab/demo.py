# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The demo: a data centre from bare hosts to a training that outlives vMotion, and back; each promise is counted."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import chapters, digest
from lab.chapters import Chapter
from lab.machines import host
from lab.nodes.network import wanted_or_free
from lab.nodes.programs import LabError, require
from lab.running import HOROVOD, SUBNET, Desired, Lab
from lab.simulator import DATACENTRES, ROOT, Centre, Simulator, add_site, site_options
from lab.world import differences, state

PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"
BOLD, DIM, RED, PLAIN = ("\033[1m", "\033[2m", "\033[31m", "\033[0m") if sys.stdout.isatty() else ("", "", "", "")
# What the playbooks say comes through a pipe, by which Ansible would not know of the terminal.
COLOUR = {"ANSIBLE_FORCE_COLOR": "1"} if sys.stdout.isatty() else {}
World = dict[str, str]
SHARED = f"{HOROVOD}:/opt/dml/horovod:rw"
TRAINING = f"{ROOT / 'lab' / 'training'}:/opt/dml/lab"  # what machines and pods train; for machines a disk of its own
MOVE = {"precopy_seconds": 4, "stun_seconds": 2}
VM, KUBERNETES = "vm", "kubernetes"
INVENTORIES = {
    "nodes": ("inventories/lab",),
    VM: ("inventories/lab", "inventories/lab_machines"),
    KUBERNETES: ("inventories/lab", "inventories/lab_kubernetes"),
}
CHAPTERS = {"nodes": chapters.NODES, VM: chapters.MACHINES, KUBERNETES: chapters.KUBERNETES}


@dataclass
class Demo:
    """A run of all chapters against one data centre."""

    vcenter: Centre
    environment: dict[str, str]
    work: Path
    inventories: Sequence[str] = INVENTORIES["nodes"]
    memory: Callable[[], int] = int  # bytes that guests and their hosts take
    most_memory: int = field(default=0, init=False)

    @property
    def evidence(self) -> Path:
        """Where the state of before each change is kept."""
        return self.work / "evidence"

    def tell(self, number: int, chapter: Chapter) -> tuple[str, bool]:
        """Run a chapter; what happened in one line, and whether it is what was promised."""
        print(f"\n{BOLD}{number}. {chapter.title}{PLAIN}")
        if chapter.harm:
            print(f"   {chapter.harm[0]}")
            chapter.harm[1](self.vcenter)
        command = self._command(chapter)
        print(f"{DIM}   ansible-playbook {' '.join(command[1:])}{PLAIN}\n", flush=True)
        self.vcenter.clear()
        began = time.monotonic()
        environment = {**os.environ, **COLOUR, **self.environment, "DML_EVIDENCE_DIR": str(self.evidence)}
        code = digest.run(command, ROOT, environment, self.work / f"chapter-{number:02}.log")
        writes = self.vcenter.writes()
        self.most_memory = max(self.most_memory, self.memory())
        kept = (code != 0) == chapter.fails and bool(writes) == chapter.writes
        print(f"\n{DIM}   {_summary(writes)}{PLAIN}", flush=True)
        seconds = time.monotonic() - began
        return f"{seconds:4.0f} s  {len(writes):3} writes  exit code {code}  {chapter.title}", kept

    def _command(self, chapter: Chapter) -> list[str]:
        """The command line; the evidence is the first that was taken, the one of before the first change."""
        first = next(iter(sorted(self.evidence.glob("*Z.json"))), None)
        said = {
            "{evidence}": f"rollback_evidence={first}",
            "{runs}": f"training_results={self.work / 'runs'} report_dir={self.work / 'report'}",
            "{moves}": f"vmotion_test_dir={self.work / 'vmotion'}",
            "{report}": f"report_results={self.work / 'runs'} report_vmotion_tests={self.work / 'vmotion'}",
        }
        arguments = [said.get(one, one) for one in chapter.arguments]
        inventories = [word for each in self.inventories for word in ("-i", each)]
        return [str(PLAYBOOK), *inventories, f"playbooks/{chapter.playbook}", *arguments]


def main(arguments: Sequence[str]) -> int:
    """Run all chapters; the exit code says whether every promise was kept."""
    asked = _asked(arguments)
    try:
        return _tell_all(asked)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1


def _tell_all(asked: argparse.Namespace) -> int:
    work, began = Path(tempfile.mkdtemp(prefix="dml-demo-")), time.monotonic()
    with _place(asked, work) as (demo, left_out):
        before = state(demo.vcenter)
        shown = [one for one in CHAPTERS[asked.lab] if not (left_out and one.in_guests)]
        kept = [demo.tell(number, chapter) for number, chapter in enumerate(shown, start=1)]
        kept.append(_as_before(before, state(demo.vcenter)))
    took = f"in {time.monotonic() - began:.0f} s"
    if demo.most_memory:
        took += f"; virtual machines and their hosts took {demo.most_memory >> 20} MiB of memory at most"
    print(f"\n{BOLD}What was kept{PLAIN}, {took}")
    for line, good in kept:
        print(f"  {'yes' if good else RED + 'NO ' + PLAIN}  {line}")
    print(f"\nThe evidence taken before the change, the reports, and all that each chapter said, lie in {work}.")
    if left_out:
        print(f"{BOLD}Not shown: the guests, training, and vMotion under load.{PLAIN} {left_out}")
    return 0 if all(good for _line, good in kept) else 1


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.demo", description=__doc__)
    add_site(parser)
    parser.add_argument("--lab", choices=list(CHAPTERS), default="nodes", help="what workers are: vm is two machines")
    parser.add_argument(
        "--without-guests", action="store_true", help="show what needs no guests, even where they can be"
    )
    return parser.parse_args(arguments)


def _no_guests(asked: argparse.Namespace) -> str:
    """Why machines have no guests; empty where they have them."""
    if asked.without_guests:
        return "They are not wanted."
    try:
        require(machines=asked.lab == VM)
    except LabError as error:
        return str(error)
    return ""


@contextmanager
def _place(asked: argparse.Namespace, work: Path) -> Iterator[tuple[Demo, str]]:
    """The demo on its data centre, and why its machines have no guests if they have none."""
    print(f"{BOLD}A data centre of five bare ESXi hosts starts on this machine (VMware's simulator, extended).{PLAIN}")
    options, inventories, is_vm = site_options(asked), INVENTORIES[asked.lab], asked.lab == VM
    if left_out := _no_guests(asked):
        with Simulator(DATACENTRES / "lab.yml", *options, folder=work / "vcenter") as vcenter:
            yield Demo(vcenter, vcenter.environment, work, inventories), left_out
        return
    lab = Lab("demo")
    lab.down()
    HOROVOD.mkdir(parents=True, exist_ok=True)
    share, members = SHARED if asked.lab == "nodes" else TRAINING, asked.lab == KUBERNETES
    subnet = wanted_or_free(SUBNET)
    lab.up(Desired(subnet=subnet, shares=[share], options=options, machines=is_vm, kubernetes=members))
    try:
        lab.hypervisor.ask("PUT", "/moves", MOVE)
        memory = (lambda: host.memory_bytes(lab.lab)) if is_vm else int
        yield Demo(lab.control, lab.environment, work, inventories, memory), ""
    finally:
        lab.down()


def _as_before(before: World, after: World) -> tuple[str, bool]:
    """Whether every property of every object is what it was before the first chapter."""
    changed = differences(before, after)
    for name, (was, now) in changed.items():
        print(f"{RED}   {name}: {was} became {now}{PLAIN}")
    return f"vCenter is as it was before: {len(before)} properties compared, {len(changed)} differ", not changed


def _summary(writes: list[dict[str, Any]]) -> str:
    if not writes:
        return "The server saw no write."
    counted = Counter(write["method"] for write in writes)
    return "The server's log of writes: " + ", ".join(f"{count} x {method}" for method, count in counted.most_common())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
