"""Runs govmomi's test scripts against VMware's simulator program and against this project's simulator.

python tools/suites.py [SUITE ...]

A test that passes against VMware's program and fails here is a bug of this project, unless tests/clients/less.yml lists
it with a reason. A test that is listed there and passes must be removed from the list.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".cache" / "clients"
# The last release that contains the test scripts and the program.
SUITES = "github.com/vmware/govmomi@v0.37.0"
LESS = ROOT / "tests" / "clients" / "less.yml"
SUITE_SECONDS, TEST_SECONDS = 900, 60
TIMED_OUT = 124  # the answer of the program timeout
LINE = re.compile(r"^(ok|not ok) \d+ (.*?)(?: # skip.*)?$")
# `make test` runs FEW, `make test-full` runs ALL. Suites that need a single ESXi host, a real appliance or files from
# the internet, or that test VMware's program itself, are left out.
FEW = ("datacenter", "disk", "events", "fields", "folder")
ALL = (
    *FEW,
    *("cli", "cluster", "datastore", "device", "esxcli", "export", "extension", "firewall", "guest", "host"),
    *("library", "license", "logs", "ls", "metric", "namespace", "network", "object", "pool", "role", "session"),
    *("snapshot", "sso", "storage", "tags", "tasks", "vlcm", "vm", "vm_dataset", "volume", "vsan"),
)
Results = dict[str, bool]


def prepare() -> Path:
    """Build the programs and the start scripts for both simulators, and return the folder with the test scripts."""
    fetched = subprocess.run(["go", "mod", "download", "-json", SUITES], stdout=subprocess.PIPE, check=True, cwd=HOME)
    source = Path(json.loads(fetched.stdout)["Dir"])
    for program in ("vcsim", "govc"):
        if not (HOME / program).exists():
            subprocess.run(["go", "build", "-o", HOME / program, f"./{program}"], cwd=source, check=True)
    for side, command in {"stock": HOME / "vcsim", "ours": f"{sys.executable} {ROOT / 'tools' / 'vcsim.py'}"}.items():
        started = HOME / side / "vcsim"
        started.parent.mkdir(exist_ok=True)
        started.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        started.chmod(0o755)
    return source / "govc" / "test"


def run(side: str, suite: Path) -> Results:
    """Run a suite against one simulator, and return which tests pass."""
    path = os.pathsep.join((str(HOME / side), str(HOME), os.environ["PATH"]))
    limits = {"BATS_TEST_TIMEOUT": str(TEST_SECONDS)}
    env = {**os.environ, **limits, "PATH": path, "GOPATH": str(HOME / "none"), "DML_STOCK": str(HOME / "vcsim")}
    words = ["timeout", str(SUITE_SECONDS), "bats", "--tap", str(suite)]
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    if done.returncode == TIMED_OUT:
        raise SystemExit(f"Suite {suite.stem} did not end within {SUITE_SECONDS} s in {suite}, run with {side}/vcsim.")
    found = (LINE.match(line) for line in done.stdout.splitlines())
    return {f"{suite.stem}: {match[2]}": match[1] == "ok" for match in found if match}


def stock_results(suite: Path) -> Results:
    """Return which tests pass against VMware's program: the same in each run, as its version is."""
    kept = HOME / f"{suite.stem}-{SUITES.rpartition('@')[2]}.json"
    if not kept.exists() and (results := run("stock", suite)):
        kept.write_text(json.dumps(results))
    return dict(json.loads(kept.read_text())) if kept.exists() else {}


def differences(stock: Results, ours: Results, known: dict[str, str]) -> list[str]:
    """Return the tests to fix and the tests to remove from the list, as lines."""
    less = {name for name, good in stock.items() if good and not ours.get(name, False)}
    lines = [f"passes against VMware's simulator and fails here: {name}" for name in sorted(less - known.keys())]
    gone = sorted(name for name in known if name in stock and name not in less)
    return [*lines, *(f"passes now, remove it from tests/clients/less.yml: {name}" for name in gone)]


def main(expected: list[str]) -> int:
    HOME.mkdir(parents=True, exist_ok=True)
    folder = prepare()
    stock, ours = Results(), Results()
    for name in expected or (ALL if os.environ.get("FULL") else FEW):
        here, there = run("ours", folder / f"{name}.bats"), stock_results(folder / f"{name}.bats")
        if not there:
            raise SystemExit(f"Suite {name} returned no result. Check that bats is installed and the suite exists.")
        stock, ours = {**stock, **there}, {**ours, **here}
        print(f"{name}: {sum(here.values())} of {len(here)} here, {sum(there.values())} stock", flush=True)
    lines = differences(stock, ours, yaml.safe_load(LESS.read_text()) or {})
    print("\n".join(lines) or f"{sum(ours.values())} tests pass here, {sum(stock.values())} against VMware's simulator")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
