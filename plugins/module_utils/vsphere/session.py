# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""One logged-in session with vCenter, and the options that every module shares to open it."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import Failed, Refused, Unreachable
from . import tls
from .faults import CONNECTION_ERRORS, words
from .sdk import SoapAdapter, connect, require, vim, vmodl


def _shared(name: str, **option: Any) -> dict[str, Any]:
    from ansible.module_utils.basic import env_fallback

    return {**option, "fallback": (env_fallback, [name])}


def arguments() -> dict[str, Any]:
    """The connection options, with their environment variables."""
    return {
        "hostname": _shared("VMWARE_HOST", type="str", required=True),
        "username": _shared("VMWARE_USER", type="str", required=True),
        "password": _shared("VMWARE_PASSWORD", type="str", required=True, no_log=True),
        "port": _shared("VMWARE_PORT", type="int", default=443),
        "validate_certs": _shared("VMWARE_VALIDATE_CERTS", type="bool", default=True),
        "ca_path": _shared("VMWARE_CA_PATH", type="path"),
        "tls_fingerprint": _shared("VMWARE_TLS_FINGERPRINT", type="str"),
        "proxy": _shared("VMWARE_PROXY", type="str"),
        "timeout": _shared("VMWARE_TIMEOUT", type="int", default=60),
    }


@dataclass(frozen=True)
class Session:
    """A logged-in connection; ``server`` names it in errors.

    ``exchange`` is given each request of the REST API with the function that carries it; without one, it is carried.
    """

    server: str
    content: Any
    stub: Any
    params: Mapping[str, Any]
    exchange: Callable[..., tuple[int, str]] | None = None

    @property
    def api_version(self) -> tuple[int, ...]:
        """The server's API version as numbers, to compare."""
        return tuple(int(part) for part in self.content.about.apiVersion.split(".") if part.isdigit())

    def patient(self, ref: Any, seconds: int) -> Any:
        """The same object over a connection that waits long for one answer."""
        stub = _stub(self.params, tls_context(self.params), self.stub.version, seconds)
        stub.cookie = self.stub.cookie
        return type(ref)(ref._moId, stub)


@contextmanager
def session(params: Mapping[str, Any]) -> Iterator[Session]:
    """A logged-in session; it is closed in any case."""
    require()
    server = f"{params['hostname']}:{params['port']}"
    instance = _login(server, params)
    try:
        yield Session(server, instance.RetrieveContent(), instance._stub, params)
    finally:
        # The answer to a logout changes nothing for the user; the session also dies by itself.
        with suppress(vmodl.MethodFault, *CONNECTION_ERRORS):
            instance.content.sessionManager.Logout()


def agent() -> dict[str, str]:
    """The header by which vCenter shows in its list of sessions which module opened one."""
    return {"User-Agent": f"dml.vsphere ({Path(sys.argv[0]).stem})"}


def tls_context(params: Mapping[str, Any]) -> ssl.SSLContext:
    """The TLS context that the connection options ask for."""
    return tls.context(
        validate=params["validate_certs"], ca_path=params.get("ca_path"), fingerprint=params.get("tls_fingerprint")
    )


def _login(server: str, params: Mapping[str, Any]) -> Any:
    context = tls_context(params)
    proxy, proxy_port = proxy_of(params.get("proxy"))
    try:
        return connect.SmartConnect(
            host=params["hostname"],
            port=params["port"],
            user=params["username"],
            pwd=params["password"],
            sslContext=context,
            httpProxyHost=proxy,
            httpProxyPort=proxy_port,
            httpConnectionTimeout=params["timeout"],
            customHeaders=agent(),
        )
    except vim.fault.InvalidLogin as fault:
        raise Failed(server, f"log in as {params['username']}", words(fault), "check username and password") from fault
    except vmodl.MethodFault as fault:
        raise Failed(server, f"log in as {params['username']}", words(fault)) from fault
    except tls.WrongFingerprint as error:
        raise _untrusted(server, error.args[0], "if the certificate was renewed, set tls_fingerprint anew") from error
    except ssl.SSLCertVerificationError as error:
        raise _untrusted(
            server, error.verify_message, "name its authority in ca_path, or pin it by tls_fingerprint"
        ) from error
    except CONNECTION_ERRORS as error:
        raise Unreachable(
            server, "connect", f"{type(error).__name__}: {error}", "check hostname, port and proxy"
        ) from error


def _untrusted(server: str, said: str, remedy: str) -> Refused:
    return Refused(server, "trust its certificate", said, remedy)


def proxy_of(text: str | None) -> tuple[str | None, int | None]:
    """Host and port of an HTTP proxy written as HOST:PORT or as a URL."""
    if not text:
        return None, None
    host, _colon, port = text.removeprefix("http://").rstrip("/").rpartition(":")
    if not host or not port.isdigit():
        raise Refused("proxy", "read it", f"{text!r} is not HOST:PORT", "write it as proxy.example.com:3128")
    return host, int(port)


def _stub(params: Mapping[str, Any], context: ssl.SSLContext, version: str, seconds: int) -> Any:
    proxy, proxy_port = proxy_of(params.get("proxy"))
    return SoapAdapter.SoapStubAdapter(
        host=params["hostname"],
        port=params["port"],
        version=version,
        sslContext=context,
        httpProxyHost=proxy,
        httpProxyPort=proxy_port,
        httpConnectionTimeout=seconds,
        customHeaders=agent(),
    )
