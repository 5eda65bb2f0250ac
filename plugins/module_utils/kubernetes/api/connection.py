# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Reads from the API of Kubernetes: the guarded import of its client, and answers as plain data."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from ...errors import Failed, Refused, Unreachable

IMPORT_ERROR = None
try:
    from kubernetes import client, config
    from urllib3 import exceptions
    from yaml import YAMLError
except ImportError:
    IMPORT_ERROR = traceback.format_exc()
    client = config = exceptions = YAMLError = None  # type: ignore[assignment,misc]

# A whole number: the client takes another one for none, and waits for ever.
TIMEOUT_SECONDS = 30
# For a whole answer, with its repeats, however it trickles in.
WHOLE_SECONDS = 10 * TIMEOUT_SECONDS
REPEATS = 1
NOT_FOUND = 404
# What the client raises at a file or an address of odd form.
_ODD = (AttributeError, TypeError, ValueError)
_NO_API = "name the API server of a Kubernetes in the kubeconfig"


def arguments() -> dict[str, Any]:
    """The options of the connection, with the words and the variables of the environment of kubernetes.core."""
    from ansible.module_utils.basic import env_fallback

    return {
        "kubeconfig": {"type": "path", "fallback": (env_fallback, ["K8S_AUTH_KUBECONFIG"])},
        "context": {"type": "str", "fallback": (env_fallback, ["K8S_AUTH_CONTEXT"])},
    }


class Api:
    """One connection; ``get`` answers with plain data, and None for what is not there."""

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        _require()
        settings = client.Configuration()
        settings.retries = REPEATS
        try:
            config.load_kube_config(kubeconfig or None, context or None, client_configuration=settings)
            self._client = client.ApiClient(settings)
        except (config.ConfigException, YAMLError, OSError, LookupError, *_ODD) as error:
            where = kubeconfig or "the kubeconfig of this user"
            remedy = "name a kubeconfig, and a context that it has"
            raise Refused(where, "read how to reach Kubernetes", _line(error), remedy) from error
        self.server = str(settings.host)
        self._watch = _Watch(self._client.rest_client.pool_manager)

    def get(self, path: str, **query: Any) -> dict[str, Any] | None:
        """An object or a list of objects."""
        text = self.text(path, **query)
        if text is None:
            return None
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            raise Failed(self.server, f"read {path}", "what it sent is no object of Kubernetes", _NO_API)
        return told

    def items(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """The objects of a list; none where Kubernetes does not know their kind."""
        found = (self.get(path, **query) or {}).get("items") or []
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise Failed(self.server, f"read {path}", "what it sent is no list of objects", _NO_API)
        return found

    def text(self, path: str, **query: Any) -> str | None:
        """What the server answers to one question."""
        try:
            with self._watch.over(WHOLE_SECONDS):
                return bytes(self._asked(path, query).data).decode("utf-8", "replace")
        except client.ApiException as error:
            if error.status == NOT_FOUND:
                return None
            raise Failed(self.server, f"read {path}", _said(error), "look at the rights of this account") from error
        except (exceptions.HTTPError, OSError, *_ODD) as error:
            remedy = "check the address of the API server and run again"
            raise Unreachable(self.server, f"read {path}", _line(error), remedy) from error

    def _asked(self, path: str, query: Mapping[str, Any]) -> Any:
        return self._client.call_api(
            path,
            "GET",
            query_params=list(query.items()),
            header_params={"Accept": "application/json, */*"},
            auth_settings=["BearerToken"],
            _preload_content=False,
            _return_http_data_only=True,
            _request_timeout=TIMEOUT_SECONDS,
        )


class _Watch:
    """Cuts off an answer that is not complete in time: a trickle is no silence for a socket."""

    def __init__(self, pools: Any) -> None:
        self._fired = False
        self._connections: list[Any] = []
        self._sockets: list[Any] = []
        kinds = pools.pool_classes_by_scheme
        pools.pool_classes_by_scheme = {scheme: self._noting(kind) for scheme, kind in kinds.items()}

    @contextmanager
    def over(self, seconds: float) -> Iterator[None]:
        """So long may take what is done meanwhile."""
        self._fired = False
        timer = threading.Timer(seconds, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            if self._fired:  # what was cut off looks like a broken answer, or like a whole one
                raise TimeoutError(f"it did not answer within {seconds:g} s")

    def _noting(self, kind: Any) -> type:
        """The same kind of pool, whose connections are known here."""
        usual = kind.ConnectionCls.connect

        def connect(connection: Any) -> None:
            if self._fired:
                raise TimeoutError  # no repeat begins after the end
            self._connections.append(connection)
            usual(connection)
            # A connection forgets its socket where the answer ends with it.
            self._sockets.append(connection.sock)

        return type("Noted", (kind,), {"ConnectionCls": type("Noted", (kind.ConnectionCls,), {"connect": connect})})

    def _cut(self) -> None:
        self._fired = True
        for each in [*self._sockets, *(connection.sock for connection in self._connections)]:
            with suppress(OSError, AttributeError):  # it is closed
                each.shutdown(2)


def segment(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def _require() -> None:
    if IMPORT_ERROR is not None:
        raise Refused(
            "the Python that runs this module",
            "import kubernetes",
            str(IMPORT_ERROR).strip().rsplit("\n", maxsplit=1)[-1],
            "install it there: pip install kubernetes",
        )


def _line(error: Exception) -> str:
    """An error of the client or of the network as one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _said(error: Any) -> str:
    """The server's own words in an error."""
    try:
        told = json.loads(error.body)
    except (TypeError, ValueError, RecursionError):
        return str(error.reason)
    return str(told.get("message") if isinstance(told, Mapping) else told)
