"""The demo: from bare hosts to a training whose hosts are upgraded meanwhile, and back; each chapter is checked."""

from __future__ import annotations

import argparse
import contextlib
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

from lab import chapters, demo_end, digest
from lab.chapters import Chapter
from lab.kubernetes.images import has_horovod
from lab.machines import host
from lab.nodes.network import requested_or_free
from lab.nodes.programs import LabError, require
from lab.person import encrypt_template
from lab.prebuild import PLAYBOOK, Prebuild
from lab.running import HOROVOD, SUBNET, Desired, Lab
from lab.simulator import BYTECODE, DATACENTRES, ROOT, Centre, Simulator, add_site, site_options
from lab.world import differences, state

BOLD, DIM, RED, PLAIN = ("\033[1m", "\033[2m", "\033[31m", "\033[0m") if sys.stdout.isatty() else ("", "", "", "")
World = dict[str, str]
SHARED = f"{HOROVOD}:/opt/dml/horovod:rw"
TRAINING = f"{ROOT / 'lab' / 'training'}:/opt/dml/lab"  # training code for pods and, as a disk, for machines
MOVE = {"precopy_seconds": 1.5, "stun_seconds": 1.5}
REBOOT_SECONDS = 0.5  # of a simulated host
VM, KUBERNETES, TIED = "vm", "kubernetes", "tied"
TEMPLATE = "debian-12"
INVENTORIES = {
    "nodes": ("inventories/lab",),
    VM: ("inventories/lab", "inventories/lab_machines"),
    KUBERNETES: ("inventories/lab", "inventories/lab_kubernetes"),
    TIED: ("inventories/lab", "inventories/lab_tied"),
}
CHAPTERS = {"nodes": chapters.NODES, VM: chapters.MACHINES, KUBERNETES: chapters.KUBERNETES, TIED: chapters.TIED}
IMAGES_SINCE = 9  # the major release whose clusters have no baselines: an image manages them
SIMULATED = "SIMULATED: {} bare ESXi hosts in VMware's extended vCenter simulator on this machine, without GPUs."


@dataclass
class Demo:
    """A run of all chapters against one data centre."""

    vcenter: Centre
    environment: dict[str, str]
    work: Path
    inventories: Sequence[str] = INVENTORIES["nodes"]
    memory: Callable[[], int] = int  # bytes used by guests and their hosts
    prebuild: Prebuild | None = None  # until a chapter needs its result
    without_guests: bool = False
    most_memory: int = field(default=0, init=False)

    @property
    def evidence(self) -> Path:
        """Return the folder for the state recorded before each change."""
        return self.work / "evidence"

    def play(self, number: int, chapter: Chapter) -> tuple[str, bool]:
        """Run a chapter, and return a summary line and whether the result is as expected."""
        print(f"\n{BOLD}{number}. {chapter.title}{PLAIN}")
        if chapter.harm:
            print(f"   {chapter.harm[0]}")
            chapter.harm[1](self.vcenter)
        command = self._command(chapter)
        print(f"{DIM}   ansible-playbook {' '.join(command[1:])}{PLAIN}", flush=True)
        if chapter.needs_horovod and self.prebuild:
            self.prebuild.finish()
            self.prebuild = None
        self.vcenter.clear()
        began = time.monotonic()
        log = self.work / f"chapter-{number:02}.log"
        code = self._run(command, log)
        writes = self.vcenter.writes()
        self.most_memory = max(self.most_memory, self.memory())
        kept = code == 0 and bool(writes) == chapter.writes
        print(f"\n{DIM}   {_summary(writes)}{PLAIN}", flush=True)
        if not kept:
            print(f"{RED}   This is not as expected. The full output is in {log}.{PLAIN}")
        seconds = time.monotonic() - began
        return f"{seconds:4.0f} s  {len(writes):3} writes  exit code {code}  {chapter.title}", kept

    def _run(self, command: list[str], log: Path) -> int:
        # A kept connection to a worker that was powered off meanwhile would delay the next chapter by its timeout.
        with tempfile.TemporaryDirectory(prefix="dml-") as sockets:
            own = {
                "DML_EVIDENCE_DIR": str(self.evidence),
                "ANSIBLE_SSH_CONTROL_PATH_DIR": sockets,
                "PYTHONPATH": os.pathsep.join(filter(None, [str(BYTECODE), os.environ.get("PYTHONPATH")])),
            }
            return digest.run(command, ROOT, {**os.environ, **self.environment, **own}, log)

    def _command(self, chapter: Chapter) -> list[str]:
        """Return the command line; a restore uses the first evidence, recorded before the first change."""
        first = next(iter(sorted(self.evidence.glob("*Z.json"))), None)
        values = {
            "{evidence}": f"rollback_evidence={first}",
            "{runs}": f"training_results={self.work / 'runs'} report_dir={self.work / 'report'}",
            "{moves}": f"vmotion_test_dir={self.work / 'vmotion'}",
            "{report}": f"report_results={self.work / 'runs'} report_vmotion_tests={self.work / 'vmotion'}",
        }
        arguments = [values.get(argument, argument) for argument in chapter.arguments]
        if self.without_guests and chapter.asks_guests:
            arguments += ["-e", "unreachable_is_idle=true"]
        inventories = [word for inventory in self.inventories for word in ("-i", inventory)]
        return [str(PLAYBOOK), *inventories, f"playbooks/{chapter.playbook}", *arguments]


def main(arguments: Sequence[str]) -> int:
    """Run all chapters, and return 0 if all results are as expected."""
    requested = _parsed(arguments)
    try:
        return _play_all(requested)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1


def _play_all(arguments: argparse.Namespace) -> int:
    work, began = _folder(arguments), time.monotonic()
    with _place(arguments, work) as (demo, left_out):
        for host_name in demo.vcenter.ask("GET", "/hosts"):
            demo.vcenter.set_host(host_name, reboot_seconds=REBOOT_SECONDS)
        before = state(demo.vcenter)
        shown = _chapters(arguments, bool(left_out))
        kept = [*_played(demo, chapters.meanwhile(shown) if demo.prebuild else shown)]
        if not arguments.keep and all(good for _line, good in kept):
            kept.append(_as_before(before, state(demo.vcenter)))
    took = f"in {time.monotonic() - began:.0f} s"
    if demo.most_memory:
        took += f"; virtual machines and their hosts used up to {demo.most_memory >> 20} MiB of memory"
    print(f"\n{BOLD}Summary{PLAIN}, {took}")
    for line, good in kept:
        print(f"  {'yes' if good else RED + 'NO ' + PLAIN}  {line}")
    if left_out:
        print(f"\n{BOLD}Not shown: guests, training, and vMotion under load.{PLAIN} {left_out}")
    print("\n".join(["", *demo_end.results(work), "", *demo_end.next_steps(arguments.keep, arguments.lab == TIED)]))
    return 0 if all(good for _line, good in kept) else 1


def _folder(arguments: argparse.Namespace) -> Path:
    """Return a new folder for reports and logs."""
    if arguments.folder:
        arguments.folder.mkdir(parents=True)
        return Path(arguments.folder)
    (ROOT / "reports").mkdir(exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=time.strftime("demo-%Y%m%dT%H%M%S-"), dir=ROOT / "reports"))


def _chapters(arguments: argparse.Namespace, without_guests: bool) -> list[Chapter]:
    return [
        chapter
        for chapter in CHAPTERS[arguments.lab]
        if not ((without_guests and chapter.in_guests) or (arguments.keep and chapter.is_teardown))
    ]


def _played(demo: Demo, shown: Sequence[Chapter]) -> Iterator[tuple[str, bool]]:
    """Yield the result of each chapter; after a failed one, the others would only repeat the failure."""
    for number, chapter in enumerate(shown, start=1):
        result = demo.play(number, chapter)
        yield result
        if not result[1]:
            return


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.demo", description=__doc__)
    add_site(parser)
    parser.add_argument("--encrypted", action="store_true", help="encrypt the workers, by their template")
    parser.add_argument("--lab", choices=list(CHAPTERS), default="nodes", help="kind of workers; tied: none can move")
    parser.add_argument("--without-guests", action="store_true", help="show only the chapters that need no guests")
    parser.add_argument("--keep", action="store_true", help="do not remove the workers and the data centre at the end")
    parser.add_argument("--folder", type=Path, help="new folder for reports and logs")
    return parser.parse_args(arguments)


def _no_guests(arguments: argparse.Namespace) -> str:
    """Return the reason why machines have no guests, or an empty string if they have guests."""
    if arguments.without_guests:
        return "The option --without-guests is set."
    try:
        require(machines=arguments.lab == VM)
    except LabError as error:
        return str(error)
    return ""


@contextmanager
def _place(arguments: argparse.Namespace, work: Path) -> Iterator[tuple[Demo, str]]:
    """Yield the demo on its data centre, and the reason why its machines have no guests, if so."""
    print(f"{BOLD}{SIMULATED.format('four' if arguments.lab == TIED else 'five')}{PLAIN}")
    options, inventories, is_vm = site_options(arguments), INVENTORIES[arguments.lab], arguments.lab == VM
    left_out = _no_guests(arguments)
    if left_out and not arguments.keep:
        with Simulator(_datacentre(arguments), *options, folder=work / "vcenter") as vcenter:
            environment = {**vcenter.environment, **_arranged(arguments, vcenter)}
            yield Demo(vcenter, environment, work, inventories, without_guests=True), left_out
        return
    with _lab(arguments, _desired(arguments, options, nodes=not left_out)) as lab, contextlib.ExitStack() as stack:
        if not left_out:
            lab.hypervisor.ask("PUT", "/moves", MOVE)
        memory = (lambda: host.memory_bytes(lab.lab)) if is_vm else int
        arranged = _arranged(arguments, lab.control)
        if arguments.keep:
            lab.export(arranged)
        environment = {**lab.environment, **arranged}
        demo = Demo(lab.control, environment, work, inventories, memory, without_guests=bool(left_out))
        if arguments.lab == "nodes" and not left_out and not has_horovod(HOROVOD):
            demo.prebuild = Prebuild(lab, work)
            stack.enter_context(demo.prebuild.running())
        yield demo, left_out


def _datacentre(arguments: argparse.Namespace) -> Path:
    return DATACENTRES / ("tied.yml" if arguments.lab == TIED else "lab.yml")


def _arranged(arguments: argparse.Namespace, vcenter: Centre) -> dict[str, str]:
    """Have an image manage the cluster if the release has no other way, and return the variable of the inventory.

    With ``--encrypted``, the template of the workers is encrypted.
    """
    if arguments.encrypted:
        encrypt_template(vcenter, TEMPLATE)
    major = (arguments.release or "").partition(".")[0]
    # Hosts with GPUs in passthrough need no manager.
    if arguments.lab == TIED or not major.isdigit() or int(major) < IMAGES_SINCE:
        return {}
    vcenter.set_cluster("gpu", image_managed=True)
    return {"LAB_IMAGE_MANAGED": "yes"}


def _desired(arguments: argparse.Namespace, options: Sequence[str], nodes: bool) -> Desired:
    HOROVOD.mkdir(parents=True, exist_ok=True)
    return Desired(
        _datacentre(arguments),
        subnet=requested_or_free(SUBNET),
        shares=[SHARED if arguments.lab == "nodes" else TRAINING],
        options=options,
        nodes=nodes,
        machines=arguments.lab == VM,
        kubernetes=arguments.lab == KUBERNETES,
    )


@contextmanager
def _lab(arguments: argparse.Namespace, desired: Desired) -> Iterator[Lab]:
    """Yield the running lab, and remove it unless it is to be kept."""
    lab = Lab("demo")
    lab.down()
    lab.up(desired)
    with contextlib.ExitStack() as stack:
        if not arguments.keep:
            stack.callback(lab.down)
        yield lab


def _as_before(before: World, after: World) -> tuple[str, bool]:
    """Return a summary line, and whether every property of every object has its initial value."""
    changed = differences(before, after)
    for name, (was, now) in changed.items():
        print(f"{RED}   {name}: was {was}, is {now}{PLAIN}")
    return f"vCenter compared with its initial state: {len(before)} properties, {len(changed)} differ", not changed


def _summary(writes: list[dict[str, Any]]) -> str:
    if not writes:
        return "The server received no writes."
    counted = Counter(write["method"] for write in writes)
    return "Writes in the server's log: " + ", ".join(f"{count} x {method}" for method, count in counted.most_common())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
