"""Shows a long step while it runs, with its seconds: one moving line on a terminal, else a line now and then.

``python -m lab.progress LOG COMMAND...`` runs a command with its output in a log, and shows the last line of the log.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

MOVES_EVERY, WRITES_EVERY = 1.0, 60.0
WIDTH, LONGEST_LINE = 100, 4096
INTERRUPTED = 130  # as a shell reports it
CLEAR = "\r\033[K"


class Progress:
    """The present step; a call names the next one. Its seconds appear until the block ends."""

    def __init__(self, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock = out or sys.stderr, clock
        self._moves = self._out.isatty()
        self._step: Callable[[], str] | None = None
        self._began = 0.0
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __call__(self, step: str) -> None:
        """Begin a step, which ends the one before."""
        self.follow(lambda: step)
        if not self._moves:
            self._write(step)

    def follow(self, step: Callable[[], str]) -> None:
        """Begin a step whose words change while it runs."""
        with self._lock:
            self._finish()
            self._step, self._began = step, self._clock()

    def show(self) -> None:
        """Show the step with its seconds."""
        with self._lock:
            if self._step:
                line = self._line()
                self._write(line[:WIDTH], CLEAR, "") if self._moves else self._write(line)

    def _line(self) -> str:
        return f"{self._clock() - self._began:4.0f} s  {self._step() if self._step else ''}"

    def _finish(self) -> None:
        """Leave the line of a step that has ended; without a terminal, only its seconds are new."""
        if self._step and self._moves:
            self._write(self._line()[:WIDTH], CLEAR)
        self._step = None

    def _write(self, text: str, before: str = "", after: str = "\n") -> None:
        self._out.write(f"{before}{text}{after}")
        self._out.flush()

    def _run(self) -> None:
        while not self._ended.wait(MOVES_EVERY if self._moves else WRITES_EVERY):
            self.show()

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()
        with self._lock:
            self._finish()


def last_line(log: Path, since: int) -> str:
    """Return the last line that has words, of those that a command wrote to a log after a position."""
    with log.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(since, end - LONGEST_LINE))
        text = file.read().decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(one for one in lines[-1] if one.isprintable()) if lines else ""


def main(arguments: list[str]) -> int:
    """Run a command with its output in a log, and return its exit status."""
    log, *command = arguments
    path, since = Path(log), Path(log).stat().st_size if Path(log).exists() else 0
    with path.open("ab") as out, Progress() as progress:
        progress.follow(lambda: last_line(path, since) or " ".join(command))
        try:
            return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False).returncode
        except KeyboardInterrupt:
            return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
