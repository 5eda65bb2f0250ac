"""Read-only connection to the Kubernetes API: the guarded import of its client, and answers as plain data."""

from __future__ import annotations

import json
import os
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote, urlencode

from ...core.child_environment import account_names
from ...errors import Failed, Refused, Unreachable

IMPORT_ERROR = None
try:
    from kubernetes import client, config
    from urllib3 import Timeout, exceptions
    from yaml import YAMLError
except ImportError:
    IMPORT_ERROR = traceback.format_exc()
    # Each use comes after _require, which reports the missing library.
    client = config = exceptions = Timeout = YAMLError = None  # type: ignore[assignment,misc]

# The answers if a kubelet does not respond, or if it never started the container.
UNSERVED = (400, 500)
TIMEOUT_SECONDS = 30
# The limit for a complete answer, including repeated requests and slow arrival.
WHOLE_SECONDS = 10 * TIMEOUT_SECONDS
REPEATS = 1
NOT_FOUND, GOOD = 404, range(200, 300)
# The exceptions of the client for a malformed file or address.
_ODD = (AttributeError, TypeError, ValueError)
_NO_API = "specify the API server of a Kubernetes cluster in the kubeconfig"


def arguments() -> dict[str, Any]:
    """Return the options of the connection, with the names and environment variables of kubernetes.core."""
    from ansible.module_utils.basic import env_fallback

    return {
        "kubeconfig": {"type": "path", "fallback": (env_fallback, ["K8S_AUTH_KUBECONFIG"])},
        "context": {"type": "str", "fallback": (env_fallback, ["K8S_AUTH_CONTEXT"])},
    }


class Unserved(Failed):
    """The server could not carry out a request that it permits, such as for a log of a node that is off."""


class Api:
    """One connection; ``get`` returns plain data, and None for a missing object."""

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        _require()
        settings = client.Configuration()
        settings.retries = REPEATS
        # A kubeconfig may name a program that prints a token. It gets the environment of this process.
        for name in account_names(os.environ):
            del os.environ[name]
        try:
            config.load_kube_config(kubeconfig or None, context or None, client_configuration=settings)
            self._client = client.ApiClient(settings)
        except (config.ConfigException, YAMLError, OSError, LookupError, *_ODD) as error:
            where = kubeconfig or "the kubeconfig of this user"
            remedy = "specify a kubeconfig, and a context that it contains"
            raise Refused(where, "read how to reach Kubernetes", _line(error), remedy) from error
        self.server = str(settings.host)
        self._watch = _Watch(self._client.rest_client.pool_manager)

    def get(self, path: str, **query: object) -> dict[str, Any] | None:
        """Return an object or a list of objects, or None."""
        text = self.text(path, **query)
        if text is None:
            return None
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Failed(self.server, f"read {path}", "the answer is not a Kubernetes object", _NO_API)
        return answer

    def items(self, path: str, **query: object) -> list[dict[str, Any]]:
        """Return the objects of a list; empty if Kubernetes does not support their kind."""
        items = (self.get(path, **query) or {}).get("items") or []
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise Failed(self.server, f"read {path}", "the answer is not a list of objects", _NO_API)
        return items

    def text(self, path: str, **query: object) -> str | None:
        """Return the text of the server's answer; None if the path is not found."""
        try:
            with self._watch.over(WHOLE_SECONDS):
                response = self._response(path, query)
                text = bytes(response.data).decode("utf-8", "replace")
        except (exceptions.HTTPError, OSError, *_ODD) as error:
            remedy = "check the address of the API server and run again"
            raise Unreachable(self.server, f"read {path}", _line(error), remedy) from error
        if response.status in GOOD:
            return text
        if response.status == NOT_FOUND:
            return None
        remedy = "check the permissions of this account"
        failed = Unserved if response.status in UNSERVED else Failed
        raise failed(self.server, f"read {path}", _message(text, response.reason), remedy)

    def _response(self, path: str, query: Mapping[str, object]) -> Any:
        """Return the answer, read with the client's connections: its request functions differ between its versions."""
        settings = self._client.configuration
        token = settings.auth_settings().get("BearerToken") or {}
        headers = {**self._client.default_headers, "Accept": "application/json, */*"}
        if token.get("value"):
            headers["authorization"] = token["value"]
        return self._client.rest_client.pool_manager.request(
            "GET",
            f"{settings.host}{path}" + (f"?{urlencode(query)}" if query else ""),
            headers=headers,
            timeout=Timeout(total=TIMEOUT_SECONDS),
            preload_content=False,
        )


class _Watch:
    """Cuts off an answer that is not complete in time: a socket's timeout does not end an answer that trickles in."""

    def __init__(self, pools: Any) -> None:
        self._fired = False
        self._connections: list[Any] = []
        self._sockets: list[Any] = []
        kinds = pools.pool_classes_by_scheme
        pools.pool_classes_by_scheme = {scheme: self._noting(kind) for scheme, kind in kinds.items()}

    @contextmanager
    def over(self, seconds: float) -> Iterator[None]:
        """Limit the duration of the block."""
        self._fired = False
        timer = threading.Timer(seconds, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            if self._fired:  # a truncated answer looks like a broken one, or like a complete one
                raise TimeoutError(f"it did not answer within {seconds:g} s")

    def _noting(self, kind: Any) -> type:
        """Return a subclass of the pool that records its connections."""
        usual = kind.ConnectionCls.connect

        def connect(connection: Any) -> None:
            if self._fired:
                raise TimeoutError  # no repeat starts after the deadline
            self._connections.append(connection)
            usual(connection)
            # A connection drops its socket if the answer ends with the connection.
            self._sockets.append(connection.sock)

        return type("Noted", (kind,), {"ConnectionCls": type("Noted", (kind.ConnectionCls,), {"connect": connect})})

    def _cut(self) -> None:
        self._fired = True
        for each in [*self._sockets, *(connection.sock for connection in self._connections)]:
            with suppress(OSError, AttributeError):  # it is closed
                each.shutdown(2)


def segment(name: str) -> str:
    """Return a name, escaped as one segment of a path."""
    return quote(name, safe="")


def _require() -> None:
    if IMPORT_ERROR is not None:
        raise Refused(
            "the Python that runs this module",
            "import kubernetes",
            str(IMPORT_ERROR).strip().rsplit("\n", maxsplit=1)[-1],
            "install it: pip install kubernetes",
        )


def _line(error: Exception) -> str:
    """Return an error of the client or of the network as one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _message(text: str, reason: object) -> str:
    """Return the message of the server in the text of an error, or the reason of the status line."""
    try:
        status = json.loads(text)
    except (ValueError, RecursionError):
        return str(reason)
    return str(status.get("message") if isinstance(status, Mapping) else status)
