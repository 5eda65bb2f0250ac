"""Start, stop, move and delete workers, and wait for the addresses of their guests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ..core import names
from ..errors import StillDiffers, TimedOut
from ..vsphere import properties, tasks
from ..vsphere.faults import translating_faults
from ..vsphere.sdk import ApiObject
from ..vsphere.session import Session
from .machine import Machine

RUNNING = "guestToolsRunning"
INSTALLED, NEVER = "guest.toolsVersionStatus2", "guestToolsNotInstalled"
OFF, ON, ADDRESS = "poweredOff", "poweredOn", "guest.ipAddress"
# vCenter may update the power state shortly after the task ends.
ON_SECONDS = 10


def stop(machine: Machine, seconds: int, *, force: bool = True) -> None:
    """Shut the guest down; with ``force``, power the machine off if it has no tools or does not shut down in time."""
    is_ready = machine["guest.toolsRunningStatus"] == RUNNING
    if is_ready:
        with translating_faults(machine.name, "shut down its guest"):
            machine.ref.ShutdownGuest()
    if (is_ready or not force or may_be_ending(machine.session, machine.ref)) and _goes_off(machine, seconds):
        return
    if not force:
        remedy = f"see its console, power it off such as with govc vm.power -off '{machine.shown}', and run again"
        raise TimedOut(machine.name, "shut down its guest", f"it is still on after {seconds} s", remedy)
    _run(machine, "power it off", machine.ref.PowerOffVM_Task, seconds)


def may_be_ending(session: Session, ref: ApiObject) -> bool:
    """Return whether a guest whose tools do not run may be shutting down, as an earlier run or another user requested.

    The tools end early in a shutdown. Only a guest that never had them cannot have received the request.
    """
    values = properties.read_many(session, [ref], (INSTALLED,)).get(ref._moId, {})
    return values.get(INSTALLED) != NEVER


def start(machine: Machine, seconds: int) -> None:
    """Power the machine on, and verify that it is on, before a wait for its guest."""
    _run(machine, "power it on", machine.ref.PowerOnVM_Task, seconds, "see which resources its host has left")
    machine.refresh()
    if machine.on:
        return
    deadline, path = time.monotonic() + min(seconds, ON_SECONDS), "runtime.powerState"
    for values in properties.watch(machine.session, [machine.ref], (path,), deadline):
        if values[machine.ref._moId].get(path) == ON:
            return
    reason = "the server accepted it, yet the power is 'off', not 'on'"
    raise StillDiffers(machine.name, "power it on", reason, "check its console and the log of its host (hostd.log)")


def move(machine: Machine, spec: object, to: str, seconds: int) -> None:
    _run(machine, f"move it to {to}", lambda: machine.ref.RelocateVM_Task(spec), seconds)


def destroy(machine: Machine, seconds: int) -> None:
    _run(machine, "delete it", machine.ref.Destroy_Task, seconds)


def without_address(machines: Sequence[Machine], seconds: int, report: Callable[[str, str], None]) -> set[str]:
    """Wait for the addresses of all guests; return the names of the machines whose guest reported none in time."""
    waiting = {machine.ref._moId: machine for machine in machines}
    if not machines:
        return set()
    refs = [machine.ref for machine in machines]
    for values in properties.watch(machines[0].session, refs, (ADDRESS,), time.monotonic() + seconds):
        for key in [key for key in waiting if names.address(values.get(key, {}).get(ADDRESS))]:
            report(waiting.pop(key).name, f"its guest has the address {values[key][ADDRESS]}")
        if not waiting:
            break
    return {machine.name for machine in waiting.values()}


def address_timeout(name: str, seconds: int) -> TimedOut:
    """Return the error for a guest that reported no address in time."""
    remedy = "check its console: does the system boot, and is open-vm-tools installed?"
    return TimedOut(name, "wait for the address of its guest", f"the guest reported none within {seconds} s", remedy)


def _goes_off(machine: Machine, seconds: int) -> bool:
    deadline = time.monotonic() + seconds
    for values in properties.watch(machine.session, [machine.ref], ("runtime.powerState",), deadline):
        if values[machine.ref._moId].get("runtime.powerState") == OFF:
            _wait_for_tasks(machine, seconds)
            return True
    return False


def _wait_for_tasks(machine: Machine, seconds: int) -> None:
    """Wait for the running tasks of the machine, because the server refuses another task until they end."""
    values = properties.read_many(machine.session, [machine.ref], ("recentTask",))
    refs = values[machine.ref._moId].get("recentTask") or []
    tasks.wait_all(machine.session, [tasks.Started(ref, machine.name, "shut down its guest") for ref in refs], seconds)


def _run(machine: Machine, tried: str, call: Any, seconds: int, remedy: str = "") -> None:
    with translating_faults(machine.name, tried, remedy):
        task = call()
    tasks.wait(machine.session, tasks.Started(task, machine.name, tried, remedy), seconds)
