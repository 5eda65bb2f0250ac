"""The nodes' proxy to package archives, which caches packages so that N nodes download them once."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import select
import shutil
import socket
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import IO

from lab.hypervisor import wheels

KEPT = (".deb", ".rpm")  # the file name contains the version, so the content never changes
BLOCK = 65536
IDLE_SECONDS = 120
# Headers of one connection, not of the message.
HOP = {
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "transfer-encoding",
    "te",
    "trailer",
    "host",
}


class Proxy(http.server.ThreadingHTTPServer):
    """Listens on the lab's gateway, and uses this machine's proxies if it has any."""

    daemon_threads = True

    def __init__(self, address: str, kept: Path, indexes: Sequence[str] = ()) -> None:
        super().__init__((address, 0), Handler)
        self.kept, self.indexes = kept, indexes
        self.downloads: Counter[str] = Counter()
        self.kept.mkdir(parents=True, exist_ok=True)
        self.busy: dict[str, threading.Lock] = defaultdict(threading.Lock)

    @property
    def address(self) -> str:
        """Return the URL that nodes set as their proxy."""
        return f"http://{self.server_address[0]!s}:{self.server_port}"

    def serve(self) -> None:
        """Start serving."""
        threading.Thread(target=self.serve_forever, name="proxy", daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection of a node."""

    protocol_version = "HTTP/1.1"
    server: Proxy

    def do_GET(self) -> None:
        """Fetch a URL over plain HTTP, or serve a page or a file of the Python package index."""
        own = self.path.removeprefix(self.server.address)
        path = urllib.parse.urlsplit(self.path).path
        if own.startswith(wheels.PAGES):
            self._page(own)
        elif own.startswith(wheels.FILES):
            self._from_store(wheels.file_url(own))
        elif self.command == "GET" and path.endswith(KEPT) and "Range" not in self.headers:
            self._from_store(self.path)
        else:
            self._pass_on()

    do_HEAD = do_GET  # noqa: N815  # the name that http.server requires

    def do_CONNECT(self) -> None:
        """Connect a node to any server, for HTTPS."""
        host, _colon, port = self.path.rpartition(":")
        try:
            beyond = _reach(host, int(port))
        except OSError as error:
            self.send_error(502, f"{self.path}: {error}")
            return
        with beyond:
            self.send_response(200, "Connection established")
            self.end_headers()
            _join(self.connection, beyond)
        self.close_connection = True

    def _page(self, path: str) -> None:
        """Answer with the entries of all indexes for a package."""
        pages = []
        for index in self.server.indexes:
            url = wheels.page_url(index, path)
            try:
                with urllib.request.urlopen(url, timeout=IDLE_SECONDS) as answer:
                    pages.append(wheels.rewritten(answer.read().decode(), answer.url))
            except OSError as error:
                if not isinstance(error, urllib.error.HTTPError) or error.code != HTTPStatus.NOT_FOUND:
                    self._refuse(error)
                    return
        body = "".join(pages).encode()
        status = HTTPStatus.OK if pages else HTTPStatus.NOT_FOUND
        self._answer(status, {"Content-Length": str(len(body)), "Content-Type": "text/html"}, io.BytesIO(body))

    def _from_store(self, url: str) -> None:
        name = hashlib.sha256(url.encode()).hexdigest()[:16] + "-" + Path(url).name
        path = self.server.kept / name
        with self.server.busy[name]:
            if not path.exists():
                try:
                    self._fetch(url, path)
                except OSError as error:
                    self._refuse(error)
                    return
        with path.open("rb") as package:
            self._answer(200, {"Content-Length": str(path.stat().st_size)}, package)

    def _fetch(self, url: str, path: Path) -> None:
        self.server.downloads[Path(url).name] += 1
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            part = Path(folder) / path.name
            with urllib.request.urlopen(url, timeout=IDLE_SECONDS) as answer, part.open("wb") as out:
                shutil.copyfileobj(answer, out, BLOCK)
                size = answer.headers["Content-Length"]
            if size and int(size) != part.stat().st_size:
                raise OSError(f"{url} ended after {part.stat().st_size} of {size} bytes")
            part.replace(path)

    def _pass_on(self) -> None:
        headers = {key: value for key, value in self.headers.items() if key.lower() not in HOP}
        request = urllib.request.Request(self.path, headers=headers, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=IDLE_SECONDS) as answer:
                self._answer(answer.status, dict(answer.headers.items()), answer)
        except OSError as error:
            self._refuse(error)

    def _answer(self, status: int, headers: dict[str, str], body: IO[bytes]) -> None:
        self.send_response_only(status)
        for key, value in headers.items():
            if key.lower() not in HOP:
                self.send_header(key, value)
        if "content-length" not in {key.lower() for key in headers}:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            shutil.copyfileobj(body, self.wfile, BLOCK)

    def _refuse(self, error: OSError) -> None:
        if isinstance(error, urllib.error.HTTPError):
            self._answer(error.code, dict(error.headers.items()), error)
        else:
            self.send_error(502, f"{self.path}: {error}")

    def log_message(self, *_arguments: object) -> None:
        """Do nothing: requests are not logged."""


def _reach(host: str, port: int) -> socket.socket:
    """Return a connection to a server, through this machine's HTTPS proxy if it has one."""
    proxy_url = urllib.request.getproxies().get("https")
    if not proxy_url or urllib.request.proxy_bypass(host):
        return socket.create_connection((host, port), timeout=IDLE_SECONDS)
    proxy = urllib.parse.urlsplit(proxy_url)
    beyond = socket.create_connection((str(proxy.hostname), proxy.port or 3128), timeout=IDLE_SECONDS)
    login = ""
    if proxy.username:
        pair = f"{urllib.parse.unquote(proxy.username)}:{urllib.parse.unquote(proxy.password or '')}"
        login = f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"
    beyond.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{login}\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        if not (byte := beyond.recv(1)):
            break
        answer += byte
    if answer.split(b" ")[1:2] != [b"200"]:
        beyond.close()
        raise OSError(f"the proxy of this machine answered {answer.splitlines()[:1]}")
    return beyond


def _join(one: socket.socket, other: socket.socket) -> None:
    """Copy bytes both ways until one side ends or both are idle for long."""
    while True:
        ready, _writable, _broken = select.select([one, other], [], [], IDLE_SECONDS)
        if not ready:
            return
        for side in ready:
            data = side.recv(BLOCK)
            if not data:
                return
            (other if side is one else one).sendall(data)
