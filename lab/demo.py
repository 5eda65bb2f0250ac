# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The demo: a data centre from bare hosts on; each chapter a real run, each promise counted in the server's log."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lab.simulator import ROOT, Simulator

PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"
BOLD, DIM, RED, PLAIN = ("\033[1m", "\033[2m", "\033[31m", "\033[0m") if sys.stdout.isatty() else ("", "", "", "")


@dataclass(frozen=True)
class Chapter:
    """One run of a playbook, and what must be true of the server's log of writes afterwards."""

    title: str
    playbook: str
    arguments: tuple[str, ...] = ()
    writes_nothing: bool = False


CHAPTERS = (
    Chapter("What would stop the rest? (reads only)", "preflight.yml", writes_nothing=True),
    Chapter("What would change? (--check --diff)", "hosts.yml", ("--check", "--diff"), writes_nothing=True),
    Chapter("Prepare the hosts, one out of service at a time", "hosts.yml"),
    Chapter("The same again: nothing is left to do", "hosts.yml", writes_nothing=True),
)


def main() -> int:
    """Run all chapters; the exit code says whether every promise was kept."""
    work = Path(tempfile.mkdtemp(prefix="dml-demo-"))
    print(f"{BOLD}A data centre of five bare ESXi hosts starts on this machine (VMware's simulator, extended).{PLAIN}")
    with Simulator(folder=work / "vcenter") as vcenter:
        kept = [_tell(number, chapter, vcenter, work) for number, chapter in enumerate(CHAPTERS, start=1)]
    print(f"\n{BOLD}What was kept{PLAIN}")
    for line, good in kept:
        print(f"  {'yes' if good else RED + 'NO ' + PLAIN}  {line}")
    print(f"\nThe evidence taken before the change lies in {work / 'evidence'}.")
    return 0 if all(good for _line, good in kept) else 1


def _tell(number: int, chapter: Chapter, vcenter: Simulator, work: Path) -> tuple[str, bool]:
    print(f"\n{BOLD}{number}. {chapter.title}{PLAIN}")
    command = [str(PLAYBOOK), "-i", "inventories/lab", f"playbooks/{chapter.playbook}", *chapter.arguments]
    print(f"{DIM}   ansible-playbook {' '.join(command[1:])}{PLAIN}\n", flush=True)
    vcenter.clear()
    began = time.monotonic()
    environment = {**os.environ, **vcenter.environment, "DML_EVIDENCE_DIR": str(work / "evidence")}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False)
    writes = vcenter.writes()
    good = done.returncode == 0 and (bool(writes) != chapter.writes_nothing)
    said = f"{chapter.title}: exit code {done.returncode}, {len(writes)} writes, {time.monotonic() - began:.0f} s"
    print(f"\n{DIM}   {_summary(writes)}{PLAIN}", flush=True)
    return said, good


def _summary(writes: list[dict[str, str]]) -> str:
    if not writes:
        return "The server saw no write."
    counted = Counter(write["method"] for write in writes)
    return "The server's log of writes: " + ", ".join(f"{count} x {method}" for method, count in counted.most_common())


if __name__ == "__main__":
    sys.exit(main())
