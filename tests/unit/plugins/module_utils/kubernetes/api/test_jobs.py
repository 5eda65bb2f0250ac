"""The log of a pod has a limit, in the request and in the result, and no value of the Secret of its job."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from plugins.module_utils.errors import Failed
from plugins.module_utils.kubernetes.api.jobs import LOG_BYTES, LOG_LIMIT, launcher_log, shown_log


class Loud:
    """A server whose pods write long lines."""

    def __init__(self) -> None:
        self.queries: list[dict[str, Any]] = []

    def text(self, _path: str, **query: Any) -> str:
        self.queries.append(query)
        return "x" * LOG_LIMIT + "the end"


def test_keeps_only_the_end_of_a_long_log() -> None:
    server: Any = Loud()
    log = launcher_log(server, "ml", "job-launcher")
    assert len(log) == LOG_BYTES and log.endswith("the end")
    assert server.queries == [{"tailLines": 5000, "limitBytes": LOG_LIMIT}]
    assert launcher_log(server, "ml", "job-launcher", last=7) == "the end"


class Telling:
    """A server with a job whose rank prints its environment."""

    def __init__(self, secret: dict[str, Any] | None, log: str) -> None:
        self.secret, self.log, self.read = secret, log, list[str]()

    def text(self, _path: str, **_query: Any) -> str:
        return self.log

    def get(self, path: str) -> dict[str, Any] | None:
        self.read.append(path)
        if self.secret == {}:
            raise Failed("https://server", f"read {path}", "forbidden")
        return self.secret


def secret(**values: str) -> dict[str, Any]:
    return {"data": {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}}


def test_hides_secret_values_in_the_log() -> None:
    log = "[1,0]<stderr>:401 for the token hf_abcdefgh, size 1\n"
    server: Any = Telling(secret(HF_TOKEN="hf_abcdefgh", SIZE="1"), log)
    assert shown_log(server, "ml", "dml-one", "dml-one-launcher-x") == log.replace("hf_abcdefgh", "HIDDEN")
    assert server.read == ["/api/v1/namespaces/ml/secrets/dml-one-environment"]


def test_hides_the_truncated_beginning_of_a_log() -> None:
    server: Any = Telling(secret(HF_TOKEN="hf_abcdefgh"), "abcdefgh\n" + "x" * (LOG_BYTES - 10) + "\n")
    assert "abcdefgh" not in shown_log(server, "ml", "dml-one", "dml-one-launcher-x")


@pytest.mark.parametrize("content", [None, {}, {"data": None}, {"data": {"A": "no base64", "B": 1}}, {"data": []}])
def test_shows_a_log_unchanged_without_readable_secrets(content: dict[str, Any] | None) -> None:
    """A job of another tool has none, and an account may read logs without Secrets."""
    server: Any = Telling(content, "the end\n")
    assert shown_log(server, "ml", "dml-one", "dml-one-launcher-x") == "the end\n"
