"""A vCenter that is just able to log someone in and to list no hosts, and that misbehaves at one stage of that.

Real sockets and real TLS. ``odd`` names the stage and what is sent there instead of the right answer: bytes, which go
out as they are, or one of the ways below. The connection is closed after an odd answer.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

STAGES = ("accept", "handshake", "versions", "content", "login", "view", "read", "logout")
SILENT, DROP, DRIP = "silent", "drop", "drip"

_ENVELOPE = (
    '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">'
    "<soapenv:Body>{}</soapenv:Body></soapenv:Envelope>"
)
_VERSIONS = (
    '<?xml version="1.0"?><namespaces version="1.0"><namespace><name>urn:vim25</name><version>8.0.3.0</version>'
    "<priorVersions><version>7.0</version></priorVersions></namespace></namespaces>"
)
_CONTENT = (
    '<RetrieveServiceContentResponse xmlns="urn:vim25"><returnval><rootFolder type="Folder">group-d1</rootFolder>'
    '<propertyCollector type="PropertyCollector">propertyCollector</propertyCollector>'
    '<viewManager type="ViewManager">ViewManager</viewManager>'
    "<about><name>VMware vCenter Server</name><fullName>odd</fullName><vendor>VMware, Inc.</vendor>"
    "<version>8.0.3</version><build>1</build><osType>linux-x64</osType><productLineId>vpx</productLineId>"
    "<apiType>VirtualCenter</apiType><apiVersion>8.0.3.0</apiVersion></about>"
    '<sessionManager type="SessionManager">SessionManager</sessionManager></returnval></RetrieveServiceContentResponse>'
)
_LOGIN = (
    '<LoginResponse xmlns="urn:vim25"><returnval><key>1</key><userName>u</userName><fullName>u</fullName>'
    "<loginTime>2026-01-01T00:00:00Z</loginTime><lastActiveTime>2026-01-01T00:00:00Z</lastActiveTime>"
    "<locale>en</locale><messageLocale>en</messageLocale></returnval></LoginResponse>"
)
_VIEW = (
    '<CreateContainerViewResponse xmlns="urn:vim25"><returnval type="ContainerView">v-1</returnval>'
    "</CreateContainerViewResponse>"
)
RIGHT = {
    "versions": _VERSIONS,
    "content": _ENVELOPE.format(_CONTENT),
    "login": _ENVELOPE.format(_LOGIN),
    "view": _ENVELOPE.format(_VIEW),
    "read": _ENVELOPE.format('<RetrievePropertiesExResponse xmlns="urn:vim25"></RetrievePropertiesExResponse>'),
    "destroy": _ENVELOPE.format('<DestroyViewResponse xmlns="urn:vim25"></DestroyViewResponse>'),
    "logout": _ENVELOPE.format('<LogoutResponse xmlns="urn:vim25"></LogoutResponse>'),
}
_REQUESTS = {
    "RetrieveServiceContent": "content",
    "Login": "login",
    "CreateContainerView": "view",
    "RetrievePropertiesEx": "read",
    "DestroyView": "destroy",
    "Logout": "logout",
}


def http(status: str, body: str = "", *headers: str, length: int | None = None) -> bytes:
    """An answer as bytes; with ``length`` it promises another length than it has."""
    content = body.encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content) if length is None else length}", *headers, "", ""]
    return "\r\n".join(lines).encode() + content


def soap(body: str) -> str:
    """A SOAP envelope around a body."""
    return _ENVELOPE.format(body)


def fault(kind: str, text: str = "", more: str = "") -> bytes:
    """A SOAP fault as vCenter sends it."""
    detail = f'<{kind}Fault xmlns="urn:vim25" xsi:type="{kind}">{more}</{kind}Fault>'
    code = f"<faultcode>ServerFaultCode</faultcode><faultstring>{text}</faultstring><detail>{detail}</detail>"
    return http("500 Internal Server Error", soap(f"<soapenv:Fault>{code}</soapenv:Fault>"))


class OddServer:
    """Serves until it is closed; what was asked stands in ``asked``."""

    def __init__(self, certificate: Path | None, odd: dict[str, bytes | str] | None = None) -> None:
        self.odd, self.requests = dict(odd or {}), list[str]()
        self._context: ssl.SSLContext | None = None
        if certificate:
            self.swap(certificate)
        self._ended = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def swap(self, certificate: Path) -> None:
        """Show another certificate on every new connection."""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)

    def __enter__(self) -> OddServer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._socket.close()

    def _serve(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _address = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        try:
            if "accept" in self.odd:
                self._misbehave(connection, self.odd["accept"])
                return
            if self._context and "handshake" in self.odd:
                connection.recv(1)
                self._misbehave(connection, self.odd["handshake"])
                return
            secured = self._context.wrap_socket(connection, server_side=True) if self._context else connection
            while self._answer(secured):
                pass
        except OSError:
            pass  # the client went away, which is what most of the tests make it do
        finally:
            connection.close()

    def _answer(self, connection: socket.socket) -> bool:
        request = _request(connection)
        if not request:
            connection.close()
            return False
        stage = self._stage(request)
        self.requests.append(stage)
        if stage in self.odd:
            self._misbehave(connection, self.odd[stage])
            return False
        connection.sendall(http("200 OK", RIGHT[stage], "Content-Type: text/xml"))
        return True

    def _stage(self, request: bytes) -> str:
        if request.startswith(b"GET"):
            return "versions"
        found = re.search(rb"Body><(\w+)", request)
        return _REQUESTS.get(found[1].decode() if found else "", "unknown")

    def _misbehave(self, connection: socket.socket, answer: bytes | str) -> None:
        if answer == SILENT:
            self._ended.wait()
        elif answer == DRIP:
            self._drip(connection)
        elif isinstance(answer, bytes):
            connection.sendall(answer)
        connection.close()

    def _drip(self, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not self._ended.is_set():
            connection.sendall(b"x")
            time.sleep(0.05)


def _request(connection: socket.socket) -> bytes:
    """One request with its body; nothing when the client is gone."""
    read: Callable[[int], bytes] = connection.recv
    data = b""
    while b"\r\n\r\n" not in data:
        more = read(65536)
        if not more:
            return b""
        data += more
    head, _blank, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    while length and len(body) < int(length[1]):
        body += read(65536)
    return head + b"\r\n\r\n" + body
