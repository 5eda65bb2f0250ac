"""A headless Chromium, asked over its debugging pipe: what a page fetched, complained of, and looks like."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

DEADLINE = 60.0
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-pipe",
    "about:blank",
)


def need_chromium() -> str:
    """Fail if there is none: what is not tested must not look tested."""
    found = shutil.which("chromium")
    assert found, "this machine lacks chromium: run FULL=1 make setup-tests"
    return found


class Browser:
    """One page in its own browser."""

    def __init__(self, folder: Path) -> None:
        # Our ends must not take the descriptors that Chromium calls 3 and 4 while they are put there.
        self._send, theirs = _pipe_to_them()
        mine, self._receive = _pipe_from_them()
        command = [need_chromium(), f"--user-data-dir={folder}", *OPTIONS]
        # A plain sh knows only descriptors of one digit.
        shell = ["bash", "-c", f'exec "$@" 3<&{theirs} 4>&{mine}', "sh", *command]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(shell, pass_fds=(theirs, mine), **quiet)  # type: ignore[call-overload]
        os.close(theirs)
        os.close(mine)
        self._number, self._session, self._rest = 0, "", b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for room in ("Page", "Network", "Log", "Runtime"):
            self.ask(f"{room}.enable")
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _what: BaseException | None, _where: TracebackType | None
    ) -> None:
        os.close(self._send)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._receive)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """One request and its answer; what happens meanwhile is kept in ``events``."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            result = self._next()
            if result.get("id") == self._number:
                assert "error" not in result, result
                return dict(result["result"])
            self.events.append(result)

    def open(self, page: Path, width: int = 1200, dark: bool = False, media: str = "") -> None:
        """Show a file, in a width, light or dark, on a screen or on paper."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def fetched(self) -> list[str]:
        """The addresses that the page asked for, its own among them."""
        sent = [event["params"]["request"]["url"] for event in self._of("Network.requestWillBeSent")]
        return [url for url in sent if not url.startswith("data:")]

    def complaints(self) -> list[str]:
        """Return what the page threw, and what the browser logged."""
        logged = [event["params"]["entry"]["text"] for event in self._of("Log.entryAdded")]
        thrown = [str(event["params"]["exceptionDetails"]) for event in self._of("Runtime.exceptionThrown")]
        return logged + thrown + [str(event["params"]["args"]) for event in self._of("Runtime.consoleAPICalled")]

    def picture(self, path: Path) -> None:
        """Keep what the whole page looks like."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def paper(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def _of(self, method: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("method") == method]

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE
        while b"\0" not in self._rest:
            ready, _writable, _odd = select.select([self._receive], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "chromium does not answer"
            data = os.read(self._receive, 1 << 20)
            assert data, f"chromium ended with {self._process.wait()}"
            self._rest += data
        one, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(one))


def _pipe_to_them() -> tuple[int, int]:
    """Our end to write to, theirs to read from."""
    read, write = os.pipe()
    return write, _high(read)


def _pipe_from_them() -> tuple[int, int]:
    """Their end to write to, ours to read from."""
    read, write = os.pipe()
    return _high(write), read


def _high(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return moved
