"""Workers are shut down, powered off if the guest does not end, and awaited until they report an address."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import TimedOut
from plugins.module_utils.vsphere import properties
from plugins.module_utils.workers import worker_power
from tests.fakes.guests import FakeGuest


def stop(guest: Any, *, force: bool = True) -> None:
    """Stop a fake of a machine."""
    worker_power.stop(guest, 60, force=force)


def test_shuts_down_a_guest_and_awaits_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = FakeGuest(monkeypatch, "poweredOn", "poweredOff")
    stop(guest)
    assert guest.calls == ["shut down", "end task-7"]


def test_powers_off_a_guest_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = FakeGuest(monkeypatch, "poweredOn", "poweredOn")
    stop(guest)
    assert guest.calls == ["shut down", "power off", "wait power it off"]


@pytest.mark.parametrize(("tools", "requests"), [(worker_power.RUNNING, ["shut down"]), ("guestToolsNotRunning", [])])
def test_names_a_guest_that_stays_on_unless_forced(
    monkeypatch: pytest.MonkeyPatch, tools: str, requests: list[str]
) -> None:
    hung, ending = (FakeGuest(monkeypatch, *states, tools=tools) for states in (["poweredOn"], ["poweredOff"]))
    stop(ending, force=False)
    assert ending.calls == [*requests, "end task-7"]

    monkeypatch.setattr(properties, "watch", hung.watch)
    with pytest.raises(TimedOut, match=r"w1: could not shut down its guest: it is still on after 60 s.*vm.power -off"):
        stop(hung, force=False)
    assert hung.calls == requests


def test_a_guest_without_tools_is_not_shut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = FakeGuest(monkeypatch, "poweredOff", tools="guestToolsNotRunning", installed=worker_power.NEVER)
    stop(guest)
    assert guest.calls == ["power off", "wait power it off"]


@pytest.mark.parametrize(
    ("state", "calls"), [("poweredOff", ["end task-7"]), ("poweredOn", ["power off", "wait power it off"])]
)
def test_guest_whose_tools_ended_keeps_its_time(state: str, calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier run, which was killed, may have requested its shutdown."""
    guest = FakeGuest(monkeypatch, state, tools="guestToolsNotRunning")
    stop(guest)
    assert guest.calls == calls


def test_addresses_are_reported_and_missing_ones_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = FakeGuest(monkeypatch), FakeGuest(monkeypatch)
    second.name = second._moId = "w2"
    result = list[tuple[str, str]]()
    answers = [{"vm-1": {}, "w2": {}}, {"vm-1": {worker_power.ADDRESS: "10.0.0.7"}, "w2": {}}]
    monkeypatch.setattr(properties, "watch", lambda *_: iter(answers))
    silent = worker_power.without_address([first, second], 60, lambda *one: result.append(one))  # type: ignore[list-item]
    assert (silent, result) == ({"w2"}, [("w1", "its guest has the address 10.0.0.7")])
    assert worker_power.without_address([], 60, lambda *_: None) == set()
    assert str(worker_power.address_timeout("w2", 60)).startswith("w2: could not wait for the address of its guest: ")
