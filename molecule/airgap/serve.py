"""Serve a folder over HTTP in the background: serve.py FOLDER ADDRESS starts the server, serve.py FOLDER stops it.

Next to the folder are NAME.json, with the process ID and URL of the server, and NAME.log, with all requests.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

DEADLINE_SECONDS = 30
LOOK_SECONDS = 0.05


def begin(folder: Path, address: str) -> None:
    """Start a process that serves the folder, and wait until it listens."""
    end(folder)
    with folder.with_suffix(".log").open("wb") as log:
        subprocess.Popen(
            [sys.executable, __file__, str(folder), address, "--here"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not folder.with_suffix(".json").exists():
        if time.monotonic() > deadline:
            raise SystemExit(f"Nothing serves {folder}: {folder.with_suffix('.log').read_text()}")
        time.sleep(LOOK_SECONDS)


def serve(folder: Path, address: str) -> None:
    """Serve the folder on a free port."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer((address, 0), handler)
    facts = {"pid": os.getpid(), "url": f"http://{address}:{server.server_port}"}
    part = folder.with_suffix(".part")
    part.write_text(json.dumps(facts))
    part.replace(folder.with_suffix(".json"))
    server.serve_forever()


def end(folder: Path) -> None:
    """Stop the server of the folder, if there is one."""
    known = folder.with_suffix(".json")
    if not known.exists():
        return
    pid = int(json.loads(known.read_text())["pid"])
    command = Path(f"/proc/{pid}/cmdline")
    if command.exists() and Path(__file__).name.encode() in command.read_bytes():
        os.kill(pid, signal.SIGTERM)
    known.unlink()


def main(folder: str, address: str = "", *here: str) -> None:
    """Start the server in the background, serve here, or stop the server."""
    path = Path(folder).resolve()
    if not address:
        end(path)
    elif here:
        serve(path, address)
    else:
        begin(path, address)


if __name__ == "__main__":
    main(*sys.argv[1:])
