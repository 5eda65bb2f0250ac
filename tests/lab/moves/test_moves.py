"""A move of a worker is real for its guest: it stands still and is not heard, then goes on."""

from __future__ import annotations

import itertools
import subprocess
import time

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.vsphere import tasks
from plugins.module_utils.vsphere.sdk import vim
from tests.integration.workers import host_of
from tests.lab.places import Place, until

STUN = 5.0
# Sends number and own clock 20 times a second.
SENDER = """
import itertools, socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in itertools.count():
    out.sendto(f"{number} {time.monotonic()}".encode(), (sys.argv[1], 7007))
    time.sleep(0.05)
"""
# Writes what arrives, with the clock of arrival.
RECEIVER = """
import socket, time
listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listening.bind(("0.0.0.0", 7007))
while True:
    print(listening.recv(99).decode(), time.monotonic(), flush=True)
"""


def test_stun_freezes_and_cuts_off(place: Place) -> None:
    place.lab.hypervisor.ask("PUT", "/moves/worker02", {"precopy_seconds": 1, "stun_seconds": STUN})
    _talk(place)
    pings = subprocess.Popen(
        place.login(place.address(1), f"ping -D -i 0.2 -w 60 {place.address(2)}"), stdout=subprocess.PIPE, text=True
    )
    until(lambda: len(_arrivals(place)) > 40, "datagrams arrive")
    began, source, target = time.monotonic(), place.facts_of(2)["host"], place.free_host()
    place.move(2, target)
    took, arrived = time.monotonic() - began, len(_arrivals(place))
    assert (source != target, place.facts_of(2)["host"]) == (True, target)
    assert took >= STUN + 1
    until(lambda: len(_arrivals(place)) > arrived + 40, "datagrams arrive after the move")
    pings.send_signal(2)
    assert pings.stdout is not None
    seen = _arrivals(place)
    silence, place_of = max(
        (later[2] - earlier[2], index) for index, (earlier, later) in enumerate(itertools.pairwise(seen))
    )
    stood_still = seen[place_of + 1][1] - seen[place_of][1]
    lost = seen[place_of + 1][0] - seen[place_of][0] - 1
    assert STUN <= silence < STUN + 5, "the network was not cut for the time of the stun"
    assert stood_still >= STUN - 0.5, "the guest went on while it was stunned"
    assert lost <= 20, f"{lost} datagrams were lost: the guest ran on with its link cut"
    answered = [float(line[1:].split("]")[0]) for line in pings.stdout.read().splitlines() if "bytes from" in line]
    assert max(later - earlier for earlier, later in itertools.pairwise(answered)) >= STUN, (
        "its kernel went on answering"
    )
    assert len({line[0] for line in seen}) == len(seen), "the sender started again"


def test_cancelled_move_leaves_the_guest_alone(place: Place) -> None:
    place.lab.hypervisor.ask("PUT", "/moves/worker03", {"precopy_seconds": 30, "stun_seconds": STUN})
    before = place.facts_of(3)["host"]
    with place.machine(3) as machine:
        task = machine.ref.RelocateVM_Task(vim.vm.RelocateSpec(host=host_of(machine, place.free_host())))
        until(lambda: task.info.progress is not None, "the move makes progress")
        task.CancelTask()
        with pytest.raises(CollectionError):
            tasks.wait(machine.session, tasks.Started(task, "a person", "move"), 20)
    assert place.facts_of(3)["host"] == before
    place.inside(3, "true")


def test_link_lost_and_found(place: Place) -> None:
    place.lab.hypervisor.ask("POST", "/nodes/worker03/harm", {"kind": "unplug"})
    assert place.inside(3, "true", check=False).returncode == 255
    place.lab.hypervisor.ask("POST", "/nodes/worker03/harm", {"kind": "plug"})
    until(lambda: place.inside(3, "true", check=False).returncode == 0, "worker03 is heard again")


def _talk(place: Place) -> None:
    """Worker 2 sends to worker 1 from now on."""
    for number, name, code in ((1, "receiver", RECEIVER), (2, "sender", SENDER)):
        peer = place.address(1) if number == 2 else ""
        place.inside(
            number, f"cat > {name}.py <<'E'\n{code}E\nsetsid python3 {name}.py {peer} > {name}.log 2>&1 < /dev/null &"
        )


def _arrivals(place: Place) -> list[tuple[int, float, float]]:
    """The number, the sender's clock and the receiver's clock of every whole datagram."""
    lines = place.inside(1, "cat receiver.log").stdout.splitlines()
    return [(int(a), float(b), float(c)) for a, b, c in (line.split() for line in lines)]
