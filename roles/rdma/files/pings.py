"""Ping nodes with packets that may not be split; the words are the own address and MTU, and NAME=ADDRESS=MTU of each.

It needs root, and no package: not every image has the program ping.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
import time

HEADERS, TRIES, SECONDS = 28, 3, 1.0
# Linux: linux/in.h. Python has no names for them.
MTU_DISCOVER, DO = 10, 2
ECHO, ANSWER = 8, 0


def checksum(data: bytes) -> int:
    """Return the checksum of ICMP."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(number: int, size: int) -> bytes:
    """Return a request of this number and size."""
    mark, body = os.getpid() & 0xFFFF, bytes(size)
    head = struct.pack("!BBHHH", ECHO, 0, 0, mark, number)
    return struct.pack("!BBHHH", ECHO, 0, checksum(head + body), mark, number) + body


def sent(link: socket.socket, address: str, number: int, size: int) -> str:
    """Send a request, and return why that is impossible."""
    try:
        link.sendto(packet(number, size), (address, 0))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def answered(link: socket.socket, waiting: dict[int, int]) -> None:
    """Take those from whom an answer of their size arrives in time out of ``waiting``."""
    deadline = time.monotonic() + SECONDS
    while waiting and select.select([link], [], [], max(0.0, deadline - time.monotonic()))[0]:
        data = link.recv(1 << 16)
        data = data[(data[0] & 15) * 4 :]
        kind, _code, _sum, mark, number = struct.unpack("!BBHHH", data[:8])
        if kind == ANSWER and mark == os.getpid() & 0xFFFF and len(data) - 8 == waiting.get(number):
            waiting.pop(number)


def main() -> None:
    """Print each node that did not answer, with the bytes of a packet and the reason."""
    own, mtu = sys.argv[1], int(sys.argv[2])
    nodes = [word.split("=") for word in sys.argv[3:]]
    most = [min(mtu, int(node[2])) for node in nodes]
    # The checksum is that of whole words.
    waiting, errors = {number: size - HEADERS - size % 2 for number, size in enumerate(most)}, {}
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as link:
        link.setsockopt(socket.IPPROTO_IP, MTU_DISCOVER, DO)
        link.bind((own, 0))
        for _try in range(TRIES):
            errors = {number: sent(link, nodes[number][1], number, size) for number, size in waiting.items()}
            answered(link, waiting)
    lost = [
        {"peer": nodes[number][0], "address": nodes[number][1], "bytes": most[number], "why": errors[number]}
        for number in sorted(waiting)
    ]
    sys.stdout.write(json.dumps(lost) + "\n")


if __name__ == "__main__":
    main()
