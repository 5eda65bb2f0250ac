# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The hypervisor carries out orders one after another, and reports to vCenter how each ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from lab.hypervisor.backend import Cancelled, Move
from lab.hypervisor.orders import Orders
from lab.nodes.cloudinit import Guest
from lab.nodes.programs import LabError

SECONDS = 10


class VCenter:
    """Takes news of orders; those in ``closed`` are no longer open."""

    def __init__(self, closed: tuple[str, ...] = ()) -> None:
        self.closed, self.news, self.ended = closed, [], threading.Event()
        self.guests: dict[str, Any] = {}

    def ask(self, verb: str, path: str, body: Any = None) -> Any:
        if path.startswith("/external/"):
            if path.rpartition("/")[2] in self.closed:
                raise RuntimeError("no order is open")
            self.news.append(body)
            if "progress" not in body:
                self.ended.set()
        elif verb == "PUT":
            self.guests[path] = body
            self.ended.set()
        return {"extra_config": {}, "powered_on": True}


class Guests:
    """A backend that writes down what it is asked."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.requests: list[str] = []
        self.fault = fault

    def _note(self, what: str) -> None:
        self.requests.append(what)
        if self.fault:
            raise self.fault

    def start(self, guest: Guest, at: str) -> Guest:
        self._note(f"start {guest.key} at {at}")
        return guest

    def wait(self, guest: Guest) -> None:
        self._note(f"wait {guest.key}")

    def stop(self, key: str) -> None:
        self._note(f"stop {key}")

    def remove(self, key: str) -> None:
        self._note(f"remove {key}")

    def move(self, key: str, target: str, how: Move, report: Callable[[int], None]) -> None:
        self._note(f"move {key} to {target} {how.stun_seconds}")
        try:
            report(50)
        except Cancelled:
            self.requests.append("cancelled")
            raise

    def stun(self, key: str, seconds: float) -> None:
        self._note(f"stun {key}")

    def harm(self, key: str, kind: str) -> None:
        self._note(f"{kind} {key}")


def carry_out(op: str, vcenter: VCenter, guests: Guests) -> None:
    orders = Orders(guests, vcenter)  # type: ignore[arg-type]  # as much of the control interface as is asked
    orders.moves["worker01"] = Move(1, 7)
    orders.take({"id": "order-1", "op": op, "vm": "worker01", "vm_moid": "vm-7", "source": "a", "target": "b"})
    for thread in threading.enumerate():
        if thread.name == "order-1":
            thread.join(SECONDS)
            assert not thread.is_alive()


@pytest.mark.parametrize(
    ("op", "requested"),
    [
        ("PowerOn", ["start vm-7 at b", "wait vm-7"]),
        ("PowerOff", ["stop vm-7"]),
        ("Destroy", ["remove vm-7"]),
        ("Relocate", ["move vm-7 to b 7"]),
    ],
)
def test_done(op: str, requested: list[str]) -> None:
    vcenter, guests = VCenter(), Guests()
    carry_out(op, vcenter, guests)
    assert (guests.requests, vcenter.news[-1]) == (requested, {"done": True})


def test_quotes_a_fault() -> None:
    vcenter = VCenter()
    carry_out("PowerOff", vcenter, Guests(LabError("worker01 cannot be stopped: no.")))
    assert vcenter.news == [{"failed": "worker01 cannot be stopped: no."}]


def test_a_machine_is_called_by_its_name() -> None:
    vcenter = VCenter()
    message = "virsh suspend failed on esx01.lab: no domain 'vm-7'; there are vm-70 and dml-vm-7"
    carry_out("PowerOff", vcenter, Guests(LabError(message)))
    assert vcenter.news == [{"failed": message.replace("'vm-7'", "'worker01'")}]


def test_reports_its_own_fault_too() -> None:
    vcenter = VCenter()
    carry_out("PowerOff", vcenter, Guests(KeyError("x")))
    assert vcenter.news == [{"failed": "The lab's hypervisor failed: KeyError('x'). The traceback is in its log."}]


def test_a_cancelled_move_ends_silently() -> None:
    vcenter, guests = VCenter(closed=("order-1",)), Guests()
    carry_out("Relocate", vcenter, guests)
    assert (guests.requests, vcenter.news) == (["move vm-7 to b 7", "cancelled"], [])
