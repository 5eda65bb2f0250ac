# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lets fifty clients work on the simulator under Go's race detector; DML_CROWD_SECONDS and _HOSTS say more.

python -m tools.crowd

A data race is a fault of this project unless VMware's simulator has it by itself: then it is listed here, by the
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
    "simulator.(*Datastore).resolve()": "copies a whole datastore to learn whether it is one of vSAN, within one call",
}
REPORT = re.compile(r"^WARNING: DATA RACE$(.*?)^={18}$", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"^(?:Previous )?(?:read|write) at .*\n  (\S+)$", re.MULTILINE | re.IGNORECASE)
SAID = re.compile(r"^ +\w+_test\.go:\d+: (?!.* rounds$).*$", re.MULTILINE)
RACED = "race detected during execution of test"


def strange(output: str) -> list[str]:
    """The races that are not inherited, each by the two functions that meet."""
    met = [PLACE.findall(report) for report in REPORT.findall(output)]
    return [" and ".join(places) for places in met if not any(place.endswith(tuple(INHERITED)) for place in places)]


def faults(output: str, code: int) -> list[str]:
    """Why a run is no good, as lines; empty for a good one."""
    found = [f"data race: {one}" for one in strange(output)] + [line.strip() for line in SAID.findall(output)]
    if code and not found and (RACED not in output or "panic: " in output):
        found.append(f"it ended with {code}")
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
    print("\n".join(found) or "Nothing ended, no read failed, and no race but those that are listed in tools/crowd.py.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
