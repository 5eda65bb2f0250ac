"""Prints the seconds of the lookups that Gloo and PyTorch make for a peer, as JSON.

The arguments are the name and the IPv4 address of the peer. Gloo and PyTorch look up the name of the address in its
IPv6 form, and the address of the name.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import time

name, address = sys.argv[1], f"::ffff:{sys.argv[2]}"
seconds = {}
for looked_up, look_up in (
    (address, lambda: socket.getnameinfo((address, 0), 0)),
    (name, lambda: socket.getaddrinfo(name, None)),
):
    began = time.monotonic()
    with contextlib.suppress(OSError):
        look_up()
    seconds[looked_up] = time.monotonic() - began
sys.stdout.write(json.dumps(seconds) + "\n")
