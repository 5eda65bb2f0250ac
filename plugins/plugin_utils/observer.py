# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An observation's end by a signal, and the command of the user that gets its events."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException, InvalidURL
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from ansible.module_utils.urls import open_url

from ..module_utils.core.child_environment import without_account
from ..module_utils.durable.calls import Result

MOST_OUTPUT = 300


@contextmanager
def ended_by_signal(ask: Callable[[], None]) -> Iterator[None]:
    """Have SIGTERM and SIGINT, which Ansible passes on to this process, end an observation with its report."""
    signals = (signal.SIGTERM, signal.SIGINT)
    former = {number: signal.signal(number, lambda *_: ask()) for number in signals}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def run_command(words: Sequence[str], text: str, seconds: float) -> Result:
    """Run a command of the user without the vCenter account; return its exit status, and why it failed."""
    name = words[0] if words else "the command"
    if not words:
        return {"rc": None, "msg": "the command is empty: name it as a list of words."}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    options: dict[str, Any] = {**pipes, "text": True, "errors": "replace", "start_new_session": True}
    try:
        # Its separate session, so that all that the command has started ends with it.
        process = subprocess.Popen(words, env=without_account(os.environ), **options)  # noqa: S603 - the user's command
    except OSError as error:
        return {"rc": None, "msg": f"{name}: could not run the command: {error.strerror or error}."}
    with process:
        try:
            written, errors = process.communicate(text, seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return {"rc": None, "msg": f"{name}: could not finish the command: it ran for {seconds:.0f} s."}
    if process.returncode:
        output = (errors or written).strip()[-MOST_OUTPUT:]
        return {"rc": process.returncode, "msg": f"{name}: the command ended with {process.returncode}: {output}"}
    return {"rc": 0}


def post(url: str, text: str, seconds: float) -> Result:
    """Post JSON to a URL of the user, and return why that failed."""
    if not url.startswith(("https://", "http://")):
        return {"msg": f"{_shown(url)}: could not post to it: it is not a URL of http or https."}
    reasons: list[str] = []
    thread = threading.Thread(target=lambda: reasons.append(_posted(url, text, seconds)), daemon=True)
    thread.start()
    # The time limit of a connection is for each of its reads: a server that sends slowly would hold the window.
    thread.join(seconds)
    reason = reasons[0] if reasons else f"it did not answer within {seconds:.0f} s"
    return {"msg": f"{_shown(url)}: could not post to it: {reason}."} if reason else {}


def _posted(url: str, text: str, seconds: float) -> str:
    """Post JSON, and return why that failed, without the words of the server, which may contain the URL."""
    headers = {"Content-Type": "application/json"}
    try:
        open_url(url, data=text.encode(), headers=headers, method="POST", timeout=seconds).close()
    except HTTPError as error:
        return f"it answered with the HTTP status {error.code}"
    except (InvalidURL, ValueError):
        return "its URL is malformed"
    except HTTPException:
        return "its answer is not HTTP"
    except OSError as error:
        cause = error.reason if isinstance(error, URLError) else error
        return (cause.strerror if isinstance(cause, OSError) else "") or type(cause).__name__
    return ""


def _shown(url: str) -> str:
    """Return a URL without its account, path and query, which usually contain the token of a webhook."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname or ''}"
    except ValueError:
        return "a malformed URL"
