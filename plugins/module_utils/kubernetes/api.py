# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Reads from the API of Kubernetes: the guarded import of its client, and answers as plain data."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ..errors import Failed, Refused, Unreachable

IMPORT_ERROR = None
try:
    from kubernetes import client, config
    from urllib3 import exceptions
except ImportError:
    IMPORT_ERROR = traceback.format_exc()
    client = config = exceptions = None  # type: ignore[assignment]

# The words of kubernetes.core, which reads the same variables of the environment.
OPTIONS = ("kubeconfig", "context")
TIMEOUT_SECONDS = 30.0
NOT_FOUND = 404


class Api:
    """One connection; ``get`` answers with plain data, and None for what is not there."""

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        _require()
        try:
            self._client = config.new_client_from_config(config_file=kubeconfig or None, context=context or None)
        except config.ConfigException as error:
            where = kubeconfig or "the kubeconfig of this user"
            remedy = "name a kubeconfig, and a context that it has"
            raise Refused(where, "read how to reach Kubernetes", str(error), remedy) from error
        self.server = str(self._client.configuration.host)

    def get(self, path: str, **query: Any) -> dict[str, Any] | None:
        """An object or a list of objects."""
        text = self.text(path, **query)
        return None if text is None else dict(json.loads(text))

    def items(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """The objects of a list; none where Kubernetes does not know their kind."""
        return list((self.get(path, **query) or {}).get("items") or [])

    def text(self, path: str, **query: Any) -> str | None:
        """What the server answers to one question."""
        try:
            answer = self._client.call_api(
                path,
                "GET",
                query_params=list(query.items()),
                header_params={"Accept": "application/json, */*"},
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=TIMEOUT_SECONDS,
            )
        except client.ApiException as error:
            if error.status == NOT_FOUND:
                return None
            raise Failed(self.server, f"read {path}", _said(error), "look at the rights of this account") from error
        except (exceptions.HTTPError, OSError) as error:
            raise Unreachable(self.server, f"read {path}", str(error)) from error
        return bytes(answer.data).decode("utf-8", "replace")


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


def _said(error: Any) -> str:
    """The server's own words in an error."""
    try:
        told = json.loads(error.body)
    except (TypeError, ValueError):
        return str(error.reason)
    return str(told.get("message") if isinstance(told, Mapping) else told)
