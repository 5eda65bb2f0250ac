"""Connects to its peer and prints results as perftest's ib_write_bw does, but breaks off the first time."""

from __future__ import annotations

import pathlib
import socket
import sys

options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
assert (options["ib-dev"], options["ib-port"], options["gid-index"]) == ("planted0", "1", "3"), options
peers = [word for word in sys.argv[1:] if not word.startswith("-")]
if peers:
    broke_off = pathlib.Path(f"/tmp/planted-{options['port']}")  # on a node that is removed
    with socket.create_connection((peers[0], int(options["port"])), 5) as peer:
        if not broke_off.exists():
            broke_off.touch()
            sys.exit("the first one breaks off")
        peer.sendall(b"whole")
    sys.stdout.write(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n")
    sys.stdout.write(" 65536      5000             24.10              23.55              0.044917\n")
else:
    with socket.create_server(("", int(options["port"]))) as server, server.accept()[0] as peer:
        sys.exit(0 if peer.recv(1) else 1)
