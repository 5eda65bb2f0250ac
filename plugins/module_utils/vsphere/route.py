"""The route to a server: its API version, and calls that end in time whatever the server answers."""

from __future__ import annotations

import http.client
import ssl
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from typing import Any

from .faults import CONNECTION_ERRORS, NoAnswer, no_answer, note_account
from .sdk import SoapAdapter, VmomiSupport, connect, vmodl

VERSIONS = "/sdk/vimServiceVersions.xml"
_MOST_BYTES = 1_000_000
# An answer that trickles in is cut off after this multiple of the timeout.
TRICKLE = 10


class Route:
    """The connection to a server: its address, TLS, proxy, headers and timeout."""

    def __init__(
        self,
        params: Mapping[str, Any],
        context: ssl.SSLContext,
        proxy: tuple[str | None, int | None],
        headers: Mapping[str, str],
    ) -> None:
        self.host, self.port = connect.parse_hostport(params["hostname"], params["port"])
        self.account, self.seconds = params["username"], params["timeout"]
        self.context, self.headers = context, dict(headers)
        self.proxy, self.proxy_port = proxy

    def connection(self, kind: type[http.client.HTTPSConnection]) -> http.client.HTTPSConnection:
        """Return a connection of this class, not yet opened."""
        where = (self.proxy or self.host, self.proxy_port or self.port)
        made = kind(*where, context=self.context, timeout=self.seconds)
        if self.proxy:
            made.set_tunnel(self.host, self.port, self.headers)
        return made

    def stub(self, version: str, seconds: int) -> Any:
        """Return the stub through which pyVmomi sends its calls."""
        return Stub(self, version, seconds)


class Answer(http.client.HTTPResponse):
    """An HTTP answer that rejects the pages of a gateway, which answers 200 to everything."""

    def begin(self) -> None:
        super().begin()
        kind = self.headers.get_content_type()
        if self.status == http.client.OK and self.headers.get("Content-Type") and not kind.endswith("xml"):
            raise NoAnswer.for_answer(f"it is {kind}")


class Connection(http.client.HTTPSConnection):
    """A connection whose answers are checked before they are used."""

    response_class = Answer


class AnswerTimer:
    """Closes a connection if its answer is not complete in time: a socket does not time out while data trickles in."""

    def __init__(self, connection: Any, seconds: float) -> None:
        self.connection, self.seconds, self.fired = connection, seconds, False
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Stop watching the call, because the answer has arrived."""
        self._timer.cancel()

    def as_no_answer(self, error: Exception, seconds: float) -> NoAnswer:
        """Return how the watched call ended, from its error."""
        return no_answer(TimeoutError(), self.seconds) if self.fired else no_answer(error, seconds)

    def _cut(self) -> None:
        self.fired = True
        try:
            self.connection.sock.shutdown(2)
        except (OSError, AttributeError):
            return  # it was closed in the same moment


def version_of(route: Route, connection: http.client.HTTPSConnection) -> str:
    """Return the newest API version that both sides support, from a request over an open connection."""
    watch = AnswerTimer(connection, route.seconds)
    try:
        connection.request("GET", VERSIONS, headers=route.headers)
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise NoAnswer.for_status(f"{answer.status} {answer.reason}")
        body = answer.read(_MOST_BYTES)
        if watch.fired:  # the headers ended where the connection was closed
            raise TimeoutError
    except CONNECTION_ERRORS as error:
        raise watch.as_no_answer(error, route.seconds) from error
    finally:
        watch.cancel()
        connection.close()
    return _newest(set(_offered(body)))


def _offered(body: bytes) -> Iterable[str]:
    """Return the versions in a server's list. A document type is refused, because it could contain an entity bomb."""
    try:
        root = None if b"<!DOCTYPE" in body else ET.fromstring(body)
    except ET.ParseError as error:
        raise NoAnswer.for_answer(error) from error
    if root is None or root.tag != "namespaces" or root.get("version") != "1.0":
        raise NoAnswer.for_answer("it is not a list of API versions")
    return [node.text or "" for node in root.iter("version")]


def _newest(offered: set[str]) -> str:
    for known in connect.GetServiceVersions("vim25"):
        if VmomiSupport.versionIdMap[known] in offered:
            return str(known)
    most = ", ".join(sorted(offered)[:5]) or "none"
    raise NoAnswer(f"it supports only API versions unknown to pyVmomi ({most})", "install a matching pyVmomi")


# Without pyVmomi there is nothing to inherit from, and no call is made.
_Adapter: Any = SoapAdapter.SoapStubAdapter if SoapAdapter else object


class Stub(_Adapter):  # type: ignore[misc]
    """Calls that end with an answer, with a fault of the server, or with ``NoAnswer``."""

    def __init__(self, route: Route, version: str, seconds: int) -> None:
        super().__init__(
            host=route.host,
            port=route.port,
            version=version,
            sslContext=route.context,
            httpProxyHost=route.proxy,
            httpProxyPort=route.proxy_port,
            httpConnectionTimeout=seconds,
            customHeaders=route.headers,
        )
        self.scheme = Connection
        self.account, self.seconds, self.whole = route.account, seconds, seconds * TRICKLE
        # Whether the last call got no answer in time; if so, only necessary calls follow.
        self.silent = False
        self._call = threading.local()

    def GetConnection(self) -> object:  # noqa: N802 # as pyVmomi spells it
        connection = super().GetConnection()
        self._call.watch = AnswerTimer(connection, self.whole)
        return connection

    def InvokeMethod(  # noqa: N802 # as pyVmomi spells it
        self,
        mo: Any,
        info: Any,
        args: Any,
        outerStub: Any = None,  # noqa: N803 # as pyVmomi spells it
    ) -> object:
        self._call.watch = None
        try:
            answer = super().InvokeMethod(mo, info, args, outerStub)
        except vmodl.MethodFault as fault:
            note_account(fault, self.account)
            raise
        except Exception as error:
            raise self._lost(error) from error
        finally:
            if self._call.watch:
                self._call.watch.cancel()
        self.silent = False
        if answer is None and info.result is not type(None) and not info.resultFlags & VmomiSupport.F_OPTIONAL:
            raise NoAnswer.for_answer("it is empty")
        return answer

    def _lost(self, error: Exception) -> Exception:
        """Return the error to raise; a parser error before the request is sent is a mistake of the caller."""
        watch = self._call.watch
        if watch is None and not isinstance(error, CONNECTION_ERRORS):
            return error
        self.silent = isinstance(error, TimeoutError) or bool(watch and watch.fired)
        return watch.as_no_answer(error, self.seconds) if watch else no_answer(error, self.seconds)
