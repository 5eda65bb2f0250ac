"""One logged-in session with vCenter, and the options that every module shares to open it."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.versions import numbers
from ..errors import Failed, NotConnected, Refused, Unreachable
from . import route as ways
from . import tls
from .faults import CONNECTION_ERRORS, NoAnswer, no_answer, remedy_of, translating_faults, unreachable, words
from .route import Route, version_of
from .sdk import ApiObject, VmomiSupport, require, vim, vmodl

_WAY = "check hostname, port and proxy"
_RUNS = "check whether its services run, and check hostname, port and proxy"
# The options without which there is no connection, with their environment variables.
NEEDED = {
    "hostname": "VMWARE_HOST",
    "username": "VMWARE_USER",
    "password": "VMWARE_PASSWORD",  # the name of a variable # nosec B105
}
# The time limit of a logout from a server that did not answer the last call.
_FAREWELL_SECONDS = 3
# From this version on, vCenter refuses names without a domain, as it does wrong passwords.
_DOMAIN_REQUIRED = (9,)


def _shared(name: str, **option: Any) -> dict[str, object]:
    from ansible.module_utils.basic import env_fallback

    return {**option, "fallback": (env_fallback, [name])}


def arguments() -> dict[str, Any]:
    """Return the connection options, with their environment variables; ``session`` refuses missing ones."""
    return {
        "hostname": _shared("VMWARE_HOST", type="str"),
        "username": _shared("VMWARE_USER", type="str"),
        "password": _shared("VMWARE_PASSWORD", type="str", no_log=True),
        "port": _shared("VMWARE_PORT", type="int", default=443),
        "validate_certs": _shared("VMWARE_VALIDATE_CERTS", type="bool", default=True),
        "ca_path": _shared("VMWARE_CA_PATH", type="path"),
        "tls_fingerprint": _shared("VMWARE_TLS_FINGERPRINT", type="str"),
        "proxy": _shared("VMWARE_PROXY", type="str", no_log=True),
        "timeout": _shared("VMWARE_TIMEOUT", type="int", default=60),
        "vcenter_uuid": {"type": "str"},
    }


@dataclass(frozen=True)
class Session:
    """A logged-in connection; ``server`` names it in errors.

    ``exchange`` receives each REST request with the function that sends it; without ``exchange``, it is simply sent.
    """

    server: str
    content: Any
    stub: Any
    params: Mapping[str, Any]
    exchange: Callable[..., tuple[int, str]] | None = None

    @property
    def api_version(self) -> tuple[int, ...]:
        """Return the API version of the session as numbers, for comparison.

        It is the older of the server's version and pyVmomi's newest: a server answers in the version of the request.
        """
        parsed = VmomiSupport.GetVersionNamespace(self.stub.version).partition("/")[2]
        return min(numbers(self.content.about.apiVersion), numbers(parsed))

    @property
    def uuid(self) -> str:
        """Return the instance UUID of the server, which never changes."""
        return str(self.content.about.instanceUuid or "")

    @property
    def account(self) -> str:
        """Return the user as the server's events name it, which can differ from the name of the login."""
        return str(getattr(self.content.sessionManager.currentSession, "userName", None) or "")

    def with_timeout(self, ref: ApiObject, seconds: int) -> ApiObject:
        """Return the same object over a connection that waits up to ``seconds`` for one answer."""
        stub = route_to(self.params).stub(self.stub.version, seconds)
        stub.cookie = self.stub.cookie
        return type(ref)(ref._moId, stub)


@contextmanager
def session(params: Mapping[str, Any]) -> Iterator[Session]:
    """Yield a logged-in session, and close it in any case."""
    _refuse_missing(params)
    require()
    opened = _login(f"{params['hostname']}:{params['port']}", params)
    try:
        _refuse_other(opened)
        with _nothing_raw(opened.server):
            yield opened
    finally:
        # The answer to a logout changes nothing for the user; the session also expires by itself.
        with suppress(vmodl.MethodFault, *CONNECTION_ERRORS):
            manager = opened.content.sessionManager
            (opened.with_timeout(manager, _FAREWELL_SECONDS) if opened.stub.silent else manager).Logout()


def _refuse_missing(params: Mapping[str, Any]) -> None:
    missing = [option for option in NEEDED if not params.get(option)]
    if missing:
        reason = f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not set"
        variables = ", ".join(f"vsphere_{option}" for option in NEEDED)
        remedy = f"set the environment variables {', '.join(NEEDED.values())}, or the variables {variables}"
        raise Refused("vCenter", "connect", reason, remedy)


def _refuse_other(opened: Session) -> None:
    """Refuse a vCenter to which the inventory is not bound: a mistyped name may be that of another site."""
    bound, here = str(opened.params.get("vcenter_uuid") or "").strip().lower(), opened.uuid
    if bound and bound != here.lower():
        cause = f"it is bound to the vCenter with the instance UUID {bound} (vcenter_uuid), and this one has {here}"
        remedy = "correct vsphere_hostname or VMWARE_HOST, or run with the inventory of this vCenter"
        raise Refused(opened.server, "work with this inventory", cause, remedy)


@contextmanager
def _nothing_raw(server: str) -> Iterator[None]:
    """Translate faults that no code below expected into one sentence, if they come from the server."""
    try:
        yield
    except (vmodl.MethodFault, NoAnswer) as error:
        with translating_faults(server, "go on"):
            raise error


def agent() -> dict[str, str]:
    """Return the header with which vCenter's list of sessions shows the module that opened a session."""
    return {"User-Agent": f"dml.vsphere ({Path(sys.argv[0]).stem})"}


def tls_context(params: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the TLS context that the connection options request."""
    return tls.context(
        validate=params["validate_certs"], ca_path=params.get("ca_path"), fingerprint=params.get("tls_fingerprint")
    )


def route_to(params: Mapping[str, Any]) -> Route:
    """Return the route to the server that the connection options describe."""
    if params["timeout"] <= 0:
        raise Refused("timeout", "read it", f"{params['timeout']} is not a valid time", "give whole seconds, 1 or more")
    return Route(params, tls_context(params), proxy_of(params.get("proxy")), agent())


def _login(server: str, params: Mapping[str, Any]) -> Session:
    route = route_to(params)
    connection = route.connection(ways.Connection)
    with _reaching(server, "connect", _WAY, route.seconds):
        connection.connect()
    with _reaching(server, "ask for its API version", _RUNS, route.seconds):
        stub = route.stub(version_of(route, connection), route.seconds)
    stub.whole = route.seconds
    with _reaching(server, "ask what it offers", _RUNS, route.seconds), translating_faults(
        server, "ask what it offers"
    ):
        content = vim.ServiceInstance("ServiceInstance", stub).RetrieveContent()
        if not content.sessionManager or not content.propertyCollector:
            raise NoAnswer.for_answer("it offers no sessions")
    _authenticate(server, content, params)
    stub.whole = route.seconds * ways.TRICKLE
    return Session(server, content, stub, params)


def _authenticate(server: str, content: ApiObject, params: Mapping[str, Any]) -> None:
    tried = f"log in as {params['username']}"
    try:
        with _reaching(server, tried, _RUNS, params["timeout"]):
            content.sessionManager.Login(params["username"], params["password"], None)
    except vim.fault.InvalidLogin as fault:
        raise Failed(server, tried, words(fault), _after_refusal(params["username"], content.about)) from fault
    except vmodl.MethodFault as fault:
        raise Failed(server, tried, words(fault), remedy_of(fault, _RUNS)) from fault


def _after_refusal(username: str, about: ApiObject) -> str:
    """Return the remedy after a refused login: the name may lack a domain that the server requires."""
    if numbers(about.apiVersion) < _DOMAIN_REQUIRED or any(mark in username for mark in "@\\"):
        return "check username and password"
    return f"vCenter {about.version} requires user@domain, such as {username}@vsphere.local: write the domain too"


@contextmanager
def _reaching(server: str, tried: str, remedy: str, seconds: float) -> Iterator[None]:
    try:
        yield
    except CONNECTION_ERRORS as error:
        failed = unreachable(server, tried, no_answer(error, seconds), remedy)
        if isinstance(failed, Unreachable):
            failed = NotConnected(failed.target, failed.tried, failed.reason, failed.remedy)
        raise failed from error


def proxy_of(text: str | None) -> tuple[str | None, int | None]:
    """Return the host and port of an HTTP proxy written as HOST:PORT or as a URL."""
    if not text:
        return None, None
    if "@" in text:
        raise Refused("proxy", "use it", "it contains an account, which is not supported", "write it as HOST:PORT")
    host, _colon, port = text.removeprefix("http://").rstrip("/").rpartition(":")
    if not host or not port.isdigit():
        raise Refused("proxy", "read it", f"{text!r} is not HOST:PORT", "write it as proxy.example.com:3128")
    return host, int(port)
