"""esxcli is used on several hosts at once, also by the first calls of a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[5]
# The types of pyVmomi exist once in a process, so each try needs a separate process.
FIRST_CALLS = """
import threading
from concurrent.futures import ThreadPoolExecutor
from plugins.module_utils.vsphere import esxcli

types, both = esxcli.VmomiSupport, threading.Barrier(2)

def beside_another_thread(create):
    # If a second thread registers the types too, both create them before one of them uses them.
    def created(*values):
        made = create(*values)
        try:
            both.wait(1)
        except threading.BrokenBarrierError:
            pass
        return made
    return created

types.CreateDataType = beside_another_thread(types.CreateDataType)
types.CreateManagedType = beside_another_thread(types.CreateManagedType)
with ThreadPoolExecutor(2) as pool:
    print(len([*pool.map(esxcli.executer_of, ["one", "two"], [None, None])]))
"""


def test_parallel_first_calls_register_the_types_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALLS], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("2\n", 0), done.stderr
