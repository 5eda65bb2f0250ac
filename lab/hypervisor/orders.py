"""Carries out the operations that the simulated vCenter hands to its hypervisor, and reports their results."""

from __future__ import annotations

import re
import threading
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from lab.hypervisor.backend import Backend, Cancelled, Move
from lab.nodes.cloudinit import Guest, guest
from lab.nodes.leases import address_of
from lab.nodes.programs import LabError
from lab.simulator import Control

OPERATIONS = ("PowerOn", "PowerOff", "ShutdownGuest", "Reset", "Destroy", "Relocate")
LOOK_SECONDS = 0.05


def named(message: object, key: str, name: str) -> str:
    """Return a message about a guest with the guest's name instead of vCenter's id."""
    return re.sub(rf"(?<![\w-]){re.escape(key)}(?![\w-])", lambda _found: name, str(message))


class Orders:
    """Runs each order in its own thread; the orders for one machine run one after another."""

    def __init__(self, backend: Backend, control: Control) -> None:
        self.backend, self.control = backend, control
        self.default = Move()
        self.moves: dict[str, Move] = {}
        self.ended = threading.Event()
        self._turn: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def turn(self, key: str) -> threading.Lock:
        """Return the lock that gives exclusive access to a guest, except for harms."""
        return self._turn[key]

    def take(self, order: Mapping[str, Any]) -> None:
        """Start an order."""
        threading.Thread(target=self._carry_out, args=(order,), name=order["id"], daemon=True).start()

    def _carry_out(self, order: Mapping[str, Any]) -> None:
        key = order["vm_moid"]
        started = None
        try:
            with self.turn(key):
                started = self._do(order, key)
        except Cancelled:
            return
        except LabError as error:
            self._report(order, failed=named(error, key, str(order["vm"])))
        except Exception as error:
            traceback.print_exc()
            self._report(order, failed=f"The lab's hypervisor failed: {error!r}. The traceback is in its log.")
        else:
            self._report(order, done=True)
        if started:
            self._report_address(started)

    def _do(self, order: Mapping[str, Any], key: str) -> Guest | None:
        name = order["vm"]
        if order["op"] in {"PowerOff", "Reset"}:
            self.backend.stop(key)
        if order["op"] == "ShutdownGuest":
            self.backend.shut_down(key)
        if order["op"] in {"PowerOn", "Reset"}:
            extra_config = self.control.ask("GET", f"/vms/{name}")["extra_config"]
            return self.backend.start(guest(key, name, extra_config), str(order["target"]))
        if order["op"] == "Destroy":
            self.backend.remove(key)
        if order["op"] == "Relocate":
            how = self.moves.get(name, self.default)
            self.backend.move(key, str(order["target"]), how, self._progress(order))
        return None

    def _report_address(self, started: Guest) -> None:
        """Report the address to vCenter, as VMware Tools do, when the guest accepts logins and is powered on."""
        try:
            self.backend.wait(started)
            while not self.ended.wait(LOOK_SECONDS):
                if self.control.ask("GET", f"/vms/{started.name}")["powered_on"]:
                    body = {"hostname": started.hostname, "address": address_of(started)}
                    self.control.ask("PUT", f"/vms/{started.name}/guest", body)
                    return
        except (LabError, RuntimeError) as error:
            print(f"{started.name} reports no address: {named(error, started.key, started.name)}", flush=True)

    def _progress(self, order: Mapping[str, Any]) -> Callable[[int], None]:
        def report(percent: int) -> None:
            try:
                self.control.ask("POST", f"/external/{order['id']}", {"progress": percent})
            except RuntimeError as error:  # the order is no longer open
                raise Cancelled from error

        return report

    def _report(self, order: Mapping[str, Any], **result: Any) -> None:
        try:
            self.control.ask("POST", f"/external/{order['id']}", result)
        except (RuntimeError, OSError) as error:
            print(f"{order['op']} of {order['vm']}: vCenter does not accept {result}: {error}", flush=True)
