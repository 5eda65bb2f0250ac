"""An HTTP proxy that lets clients through to wherever they ask for by CONNECT."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Proxy:
    """Serves until it is closed; ``address`` is what the option proxy takes, ``through`` counts the tunnels."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address, self.through = f"127.0.0.1:{self._socket.getsockname()[1]}", 0
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _address = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._tunnel, args=(client,), daemon=True).start()

    def _tunnel(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(4096)
            if not more:
                return
            head += more
        host, _colon, port = head.split(b" ")[1].decode().rpartition(":")
        server = socket.create_connection((host, int(port)))
        self.through += 1
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        back = threading.Thread(target=_carry, args=(server, client), daemon=True)
        back.start()
        _carry(client, server)
        back.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):  # one side is gone, which the other is reported below
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):  # it was shut by the other direction
            end.shutdown(socket.SHUT_RDWR)
