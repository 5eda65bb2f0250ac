"""A lab with Kubernetes that was killed goes without a trace, and the machine's settings stay as they are."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path

from lab.running import Lab
from lab.simulator import ROOT
from tests.lab.places import Traces, until

SETTINGS = Path("/proc/sys")
# A counter, and what is written to rather than set.
NO_SETTINGS = {"kernel/ns_last_pid", "kernel/random/write_wakeup_threshold", "vm/drop_caches", "vm/compact_memory"}
START_SECONDS = 300


def settings() -> dict[str, str]:
    """Everything that can be set for the whole machine, and for its own network; cards come and go."""
    found = {}
    for path in SETTINGS.rglob("*"):
        name = path.relative_to(SETTINGS).as_posix()
        if "/conf/" in name or "/neigh/" in name or name in NO_SETTINGS:
            continue
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & stat.S_IWUSR and mode & stat.S_IRUSR:
            try:
                found[name] = path.read_text(errors="replace")
            except OSError:  # one that this machine does not let anybody read
                continue
    return found


def changed(before: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return what is set otherwise than before; a module that was loaded meanwhile adds some."""
    now = settings()
    return {name: (value, now[name]) for name, value in before.items() if now.get(name, value) != value}


def test_killed_up_is_taken_down(bare: Lab) -> None:
    traces, before_settings = Traces(bare), settings()
    before = traces()
    command = [sys.executable, "-m", "lab", "--name", bare.folder.name, "--kubernetes", "node", "n1"]
    starting = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    until(lambda: any("kube-apiserver" in line for line in traces()["processes"]), "it starts", START_SECONDS)
    assert not bare.kubernetes.answers()
    starting.send_signal(signal.SIGKILL)
    starting.wait()
    assert traces()["processes"] != before["processes"]
    bare.down()
    assert traces() == before
    assert changed(before_settings) == {}
