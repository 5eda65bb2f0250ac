"""The end of the demo: its results, and the next commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

# As env.sh names them; govc has other names for the same variables.
GOVC = (
    "GOVC_URL=https://$VMWARE_HOST:$VMWARE_PORT GOVC_USERNAME=$VMWARE_USER GOVC_PASSWORD=$VMWARE_PASSWORD "
    "GOVC_TLS_CA_CERTS=$VMWARE_CA_PATH .cache/govc"
)
KEPT = (
    "The simulated data centre and its workers still run; make demo-down removes them. Try next:",
    "  . .cache/lab/demo/env.sh                                           # the address and login of its vCenter",
    "  .venv/bin/ansible-playbook -i inventories/lab playbooks/hosts.yml -e lab_vgpu_manager=550.127.06 --check",
    f"  {GOVC} ls -l /dc1/vm",
)
GONE = (
    "Try next:",
    "  make demo KEEP=1              # the same, and the data centre keeps running, so that you can work with it",
    "  make demo RELEASE=9.1         # the same with another release of vSphere",
    "  {other}",
    "  less docs/cluster.md          # the same with your cluster, step by step",
)
TIED = "make demo TIED=1              # workers that cannot move: the job restarts from a checkpoint"
MOVES = "make demo                     # workers that can move: the job continues while its hosts change"


def results(work: Path) -> Iterator[str]:
    """Yield the verdict on the training and the files of the demo."""
    for path in sorted(work.glob("vmotion/*/verdict.json")):
        # Only a maintenance window writes the times of its hosts.
        changed = "its hosts changed" if path.with_name("window.json").exists() else "its workers moved"
        yield f"The training while {changed}: {sentence(json.loads(path.read_text()))}"
    for path in sorted(work.glob("vmotion/*/restart.json")):
        yield from (json.loads(path.read_text()).get("verdict") or {}).get("lines") or []
    for path in sorted(work.glob("report/*.html")):
        yield f"Report: {path}"
    yield f"Evidence from before each change, outputs of the training, and the full output of each chapter: {work}"


def sentence(verdict: dict[str, object]) -> str:
    """Return a verdict in one sentence."""
    moves = verdict.get("moves")
    gaps = [move["gap_s"] for move in moves if move["gap_s"] is not None] if isinstance(moves, list) else []
    longest = f", longest silence {max(gaps):.1f} s" if gaps else ""
    return f"{verdict['verdict']}, moved: {verdict['moved']}{longest}."


def next_steps(kept: bool, tied: bool) -> tuple[str, ...]:
    """Return the commands that a user may try after the demo."""
    return KEPT if kept else tuple(line.format(other=MOVES if tied else TIED) for line in GONE)
