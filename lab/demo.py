# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The demo: a data centre from bare hosts to a training that outlives vMotion, and back; each promise is counted."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import digest
from lab.nodes.programs import LabError, require
from lab.person import lose_rdma_nic, power_off
from lab.running import HOROVOD, Desired, Lab
from lab.simulator import DATACENTRES, ROOT, Centre, Simulator, add_site, site_options
from lab.world import differences, state

PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"
BOLD, DIM, RED, PLAIN = ("\033[1m", "\033[2m", "\033[31m", "\033[0m") if sys.stdout.isatty() else ("", "", "", "")
# What the playbooks say comes through a pipe, by which Ansible would not know of the terminal.
COLOUR = {"ANSIBLE_FORCE_COLOR": "1"} if sys.stdout.isatty() else {}
World = dict[str, str]
SHARED = f"{HOROVOD}:/opt/dml/horovod:rw"
MOVE = {"precopy_seconds": 4, "stun_seconds": 2}


@dataclass(frozen=True)
class Chapter:
    """One run of a playbook, and what must be true of the server's log of writes afterwards."""

    title: str
    playbook: str
    arguments: tuple[str, ...] = ()
    writes: bool = True
    fails: bool = False
    harm: tuple[str, Callable[[Centre], None]] | None = None
    in_guests: bool = False


def _harm(vcenter: Centre) -> None:
    power_off(vcenter, "worker02")
    lose_rdma_nic(vcenter, "worker03")


CHAPTERS = (
    Chapter(
        "What would be done, from bare hosts to workers? (--check --diff)", "site.yml", ("--check", "--diff"), False
    ),
    Chapter("Do it: network, hosts one out of service at a time, workers", "site.yml"),
    Chapter("The same again: nothing is left to do", "site.yml", writes=False),
    Chapter(
        "Into the guests: OpenMPI, Horovod, and an allreduce over all four",
        "guests.yml",
        ("-e", "stack=lab-cpu"),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Train on one, two and four workers (steps are paced: this shows that it works, not how it scales)",
        "scaling.yml",
        ("-e", "{runs}", "-e", "{sweep}"),
        writes=False,
        in_guests=True,
    ),
    Chapter(
        "Move every worker to another host while they train, and judge",
        "vmotion_test.yml",
        ("-e", "{moves}"),
        in_guests=True,
    ),
    Chapter(
        "Show it: one page with all of that", "report.yml", ("-e", "{runs}", "-e", "{report}"), False, in_guests=True
    ),
    Chapter(
        "Somebody is careless: what is not as described? (--check --diff)",
        "workers.yml",
        ("--check", "--diff"),
        writes=False,
        harm=("Somebody switches worker02 off and takes the PVRDMA card out of worker03.", _harm),
    ),
    Chapter("Repair it, with the permission to shut a worker down", "workers.yml", ("-e", "power_cycle=true")),
    Chapter("Take it away? Not without a confirmation", "teardown.yml", writes=False, fails=True),
    Chapter("Take it away, and set the hosts back", "teardown.yml", ("-e", "confirm=true", "-e", "{evidence}")),
)


@dataclass
class Demo:
    """A run of all chapters against one data centre."""

    vcenter: Centre
    environment: dict[str, str]
    work: Path

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
        kept = (code != 0) == chapter.fails and bool(writes) == chapter.writes
        print(f"\n{DIM}   {_summary(writes)}{PLAIN}", flush=True)
        seconds = time.monotonic() - began
        return f"{seconds:4.0f} s  {len(writes):3} writes  exit code {code}  {chapter.title}", kept

    def _command(self, chapter: Chapter) -> list[str]:
        """The command line; the evidence is the first that was taken, the one of before the first change."""
        first = next(iter(sorted(self.evidence.glob("*Z.json"))), None)
        said = {
            "evidence": f"rollback_evidence={first}",
            "runs": f"training_results={self.work / 'runs'} report_dir={self.work / 'report'}",
            "sweep": json.dumps({"training_sweep_nodes": [1, 2, 4], "training_sweep_repeats": 1}),
            "moves": f"vmotion_test_dir={self.work / 'vmotion'}",
            "report": f"report_results={self.work / 'runs'} report_vmotion_tests={self.work / 'vmotion'}",
        }
        arguments = [one.format(**said) for one in chapter.arguments]
        return [str(PLAYBOOK), "-i", "inventories/lab", f"playbooks/{chapter.playbook}", *arguments]


def main(arguments: Sequence[str]) -> int:
    """Run all chapters; the exit code says whether every promise was kept."""
    asked = _asked(arguments)
    work, began = Path(tempfile.mkdtemp(prefix="dml-demo-")), time.monotonic()
    with _place(work, site_options(asked), asked.without_guests) as (vcenter, environment, left_out):
        chapters = [chapter for chapter in CHAPTERS if not (left_out and chapter.in_guests)]
        demo = Demo(vcenter, environment, work)
        before = state(vcenter)
        kept = [demo.tell(number, chapter) for number, chapter in enumerate(chapters, start=1)]
        kept.append(_as_before(before, state(vcenter)))
    print(f"\n{BOLD}What was kept{PLAIN}, in {time.monotonic() - began:.0f} s")
    for line, good in kept:
        print(f"  {'yes' if good else RED + 'NO ' + PLAIN}  {line}")
    print(f"\nThe evidence taken before the change, the reports, and all that each chapter said, lie in {work}.")
    if left_out:
        print(f"{BOLD}Not shown: the guests, training, and vMotion under load.{PLAIN} {left_out}")
    return 0 if all(good for _line, good in kept) else 1


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.demo", description=__doc__)
    add_site(parser)
    parser.add_argument(
        "--without-guests", action="store_true", help="show what needs no guests, even where they can be"
    )
    return parser.parse_args(arguments)


def _no_guests(unwanted: bool) -> str:
    """Why machines have no guests; empty where they have them."""
    if unwanted:
        return "They are not wanted."
    try:
        require()
    except LabError as error:
        return str(error)
    return ""


@contextmanager
def _place(work: Path, options: list[str], unwanted: bool) -> Iterator[tuple[Centre, dict[str, str], str]]:
    """The data centre, what leads to it, and why its machines have no guests if they have none."""
    print(f"{BOLD}A data centre of five bare ESXi hosts starts on this machine (VMware's simulator, extended).{PLAIN}")
    if left_out := _no_guests(unwanted):
        with Simulator(DATACENTRES / "lab.yml", *options, folder=work / "vcenter") as vcenter:
            yield vcenter, vcenter.environment, left_out
        return
    lab = Lab("demo")
    lab.down()
    HOROVOD.mkdir(parents=True, exist_ok=True)
    lab.up(Desired(shares=[SHARED], options=options))
    try:
        lab.hypervisor.ask("PUT", "/moves", MOVE)
        yield lab.control, lab.environment, ""
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
