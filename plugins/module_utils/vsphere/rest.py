"""A session with vCenter's REST API, the only API for cluster images, with the same server, account and TLS."""

from __future__ import annotations

import base64
import copy
import http.client
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote, urlencode

from ..errors import CollectionError, Failed, TimedOut
from .faults import AWAY, CONNECTION_ERRORS, WAIT, NoAnswer, line, no_answer, unreachable
from .forms import ANY, misfit
from .route import TRICKLE, AnswerTimer
from .session import Session, agent, route_to
from .tasks import STILL_RUNS

_POLL_SECONDS = 0.5
_SESSION = "/api/session"
TASKS = "/api/cis/tasks"
# This API reports that an account lacks permission, but not which privilege.
_ALLOW = "give the account the privileges that docs/privileges.md names for this module and run again"
# The remedies for these answers, whatever the request was.
_REMEDIES: dict[int, str] = {
    http.client.UNAUTHORIZED: "the session ended: run again",
    http.client.FORBIDDEN: _ALLOW,
    **dict.fromkeys(AWAY, WAIT),
}
_TOKEN = "vmware-api-session-id"  # noqa: S105 - the name of a header # nosec B105


class Rest:
    """A logged-in REST session."""

    def __init__(self, session: Session) -> None:
        self.server, self._params = session.server, session.params
        self._carried_by = session.exchange or _carried
        self._token, self.silent = "", False

    def log_in(self) -> None:
        """Request a token for the account of the session."""
        account = f"{self._params['username']}:{self._params['password']}".encode()
        header = {"Authorization": "Basic " + base64.b64encode(account).decode("ascii")}
        tried = "log in to its REST API"
        token = self._ask("POST", _SESSION, tried=tried, headers=header)
        if not isinstance(token, str) or not token.isprintable():
            raise Failed(self.server, tried, "its answer is not a token", "check that service")
        self._token = token

    def log_out(self) -> None:
        self._ask("DELETE", _SESSION, tried="log out of its REST API")

    def patient(self, seconds: int) -> Rest:
        """Return the same session for requests that the server answers only when their work is done."""
        other = copy.copy(self)
        other._params = {**self._params, "timeout": max(seconds, self._params["timeout"])}
        return other

    def get(self, path: str, *, tried: str, remedy: str = "", form: object = ANY) -> Any:
        return self._ask("GET", path, tried=tried, remedy=remedy, form=form)

    def find(self, path: str, *, tried: str, form: object = ANY) -> Any:
        """Return the answer to a GET request; None if the object does not exist."""
        return self._ask("GET", path, tried=tried, may_lack=True, form=form)

    def send(
        self, verb: str, path: str, body: object = None, *, tried: str, remedy: str = "", form: object = ANY
    ) -> Any:
        """Return the answer to a request that writes; None if it is empty."""
        return self._ask(verb, path, body, tried=tried, remedy=remedy, form=form)

    def task(
        self, path: str, body: object = None, *, tried: str, seconds: float, form: object = ANY, **query: Any
    ) -> Any:
        """Start a task, wait, and return its result; ``form`` is the form of the whole task after success.

        The function ``report`` gets the state of the task while it runs.
        """
        report: Callable[[Any], None] = query.pop("report", _unreported)
        remedy = query.pop("remedy", "")
        address = f"{path}?{urlencode({**query, 'vmw-task': 'true'})}"
        task = self.send("POST", address, body, tried=tried, remedy=remedy, form=str)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            info = self.get(task_path(task), tried=tried, form={"status": str})
            report(info)
            if info["status"] == "SUCCEEDED":
                return self._in_form(info, form, tried).get("result")
            if info["status"] == "FAILED":
                raise Failed(self.server, tried, "the server said " + _words(info.get("error")), remedy)
            time.sleep(_POLL_SECONDS)
        raise TimedOut(self.server, tried, f"the task did not end within {seconds:.0f} s", STILL_RUNS)

    def _ask(self, verb: str, path: str, body: object = None, *, tried: str, remedy: str = "", **more: Any) -> object:
        headers = {"Accept": "application/json", **agent(), **more.get("headers", {})}
        if self._token:
            headers[_TOKEN] = self._token
        if body is not None:
            headers["Content-Type"] = "application/json"
        sent = None if body is None else json.dumps(body)
        try:
            status, text = self._carried_by(verb, path, sent, lambda: self._exchange(verb, path, sent, headers))
        except CONNECTION_ERRORS as error:
            raise unreachable(self.server, tried, error, "run again") from error
        if status == http.client.NOT_FOUND and more.get("may_lack"):
            return None
        return self._in_form(self._understood(status, text, tried, remedy), more.get("form", ANY), tried)

    def _in_form(self, answer: object, form: object, tried: str) -> Any:
        if wrong := misfit(answer, form):
            raise unreachable(self.server, tried, NoAnswer.for_answer(wrong), "run again")
        return answer

    def _exchange(self, verb: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[int, str]:
        connection, seconds = route_to(self._params).connection(http.client.HTTPSConnection), self._params["timeout"]
        watch = None
        try:
            connection.connect()
            watch = AnswerTimer(connection, seconds * TRICKLE)
            connection.request(verb, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except UnicodeDecodeError as error:
            raise NoAnswer.for_answer("it is not text") from error
        except CONNECTION_ERRORS as error:
            self.silent = isinstance(error, TimeoutError)
            raise watch.as_no_answer(error, seconds) if watch else no_answer(error, seconds) from error
        finally:
            connection.close()
            if watch:
                watch.cancel()

    def _understood(self, status: int, text: str, tried: str, remedy: str) -> object:
        try:
            answer = json.loads(text) if text.strip() else None
        except (ValueError, RecursionError) as error:
            if status < http.client.BAD_REQUEST:
                raise unreachable(self.server, tried, NoAnswer.for_answer("it is invalid JSON"), "run again") from error
            answer = text.strip()
        if status >= http.client.BAD_REQUEST:
            # The caller's remedy is for a wrong request, not for a broken server.
            otherwise = remedy if status < http.client.INTERNAL_SERVER_ERROR else ""
            reason = f"the server said {status} {_words(answer)}"
            raise Failed(self.server, tried, reason, _REMEDIES.get(status, otherwise))
        return answer


def task_path(task: str) -> str:
    return f"{TASKS}/{quote(task, safe=':')}"


def _unreported(_info: object) -> None:
    """Take no notice of the state of a task."""


@contextmanager
def opened(session: Session) -> Iterator[Rest]:
    """Yield a REST session, and close it in any case."""
    rest = Rest(session)
    rest.log_in()
    try:
        yield rest
    finally:
        # The answer to a logout changes nothing for the user; the token also expires by itself.
        with suppress(CollectionError):
            if not rest.silent:
                rest.log_out()


def _carried(_verb: str, _path: str, _body: str | None, carry: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    return carry()


def _words(error: object) -> str:
    """Return the server's message from an error of its REST API."""
    if not isinstance(error, dict):
        return line(str(error or "nothing more"))
    messages = error.get("messages")
    entries = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    texts = [one.get("default_message") or one.get("id") for one in entries]
    parts = (error.get("error_type"), "; ".join(line(str(text)) for text in texts if text))
    return ": ".join(line(str(part)) for part in parts if part) or line(str(error))
