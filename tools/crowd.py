# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs fifty clients against the simulator with Go's race detector.

DML_CROWD_SECONDS=600 DML_CROWD_HOSTS=20 python -m tools.crowd

A data race is a bug of this project unless VMware's simulator has it too. Such a race is listed in INHERITED, with the
function that reads or writes without the lock.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS, HOSTS, PATIENCE = "600", "20", "120m"
INHERITED = {
    "simulator.(*Datastore).resolve()": "copies a datastore to check whether it is a vSAN datastore, within one call",
}
REPORT = re.compile(r"^WARNING: DATA RACE$(.*?)^={18}$", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"^(?:Previous )?(?:read|write) at .*\n  (\S+)$", re.MULTILINE | re.IGNORECASE)
MESSAGE = re.compile(r"^ +\w+_test\.go:\d+: (?!.* rounds$).*$", re.MULTILINE)
RACED = "race detected during execution of test"


def new_races(output: str) -> list[str]:
    """Return the races that are not inherited, each with the two functions that race."""
    races = [PLACE.findall(report) for report in REPORT.findall(output)]
    return [" and ".join(places) for places in races if not any(place.endswith(tuple(INHERITED)) for place in places)]


def faults(output: str, code: int) -> list[str]:
    """Return the errors of a run as lines; empty after a good run."""
    found = [f"data race: {race}" for race in new_races(output)] + [line.strip() for line in MESSAGE.findall(output)]
    if code and not found and (RACED not in output or "panic: " in output):
        found.append(f"go test ended with exit code {code}")
    return found


def main() -> int:
    given = {"DML_CROWD_SECONDS": SECONDS, "DML_CROWD_HOSTS": HOSTS, **os.environ, "CGO_ENABLED": "1"}
    command = ["go", "test", "-race", "-run", "TestACrowdOfClients", "-count=1", f"-timeout={PATIENCE}", "-v", "."]
    where, lines = ROOT / "lab" / "vcenter", list[str]()
    with subprocess.Popen(
        command, cwd=where, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as go:
        for line in go.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    found = faults("".join(lines), go.returncode)
    print(
        "\n".join(found)
        or "No client ended early, no read failed, and there were no races except those listed in tools/crowd.py."
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
