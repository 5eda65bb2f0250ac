"""Looks for secrets where they must not be: in an output, in files, in the list of processes."""

from __future__ import annotations

import base64
import json
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

LOOK_SECONDS = 0.05
PRIVATE = 0o077


def forms(secret: str) -> set[str]:
    """A secret as it is, and as programs write it: escaped, quoted, encoded."""
    plain = base64.b64encode(secret.encode()).decode().rstrip("=")
    return {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret), quote(secret, safe=""), plain}


def seen_in(text: str, secrets: Iterable[str]) -> list[str]:
    """The secrets that a text holds in any form; a screen may break a word at its edge."""
    whole = text + "\0" + "".join(line.strip() for line in text.splitlines())
    return [secret for secret in secrets if any(form in whole for form in forms(secret))]


def files_with(folders: Iterable[Path], secrets: Sequence[str]) -> Iterator[tuple[Path, int]]:
    """The files that hold a secret, and what others than their owner may do with them."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            try:
                if path.is_symlink() or not path.is_file():
                    continue
                text = path.read_bytes().decode(errors="replace")
                mode = stat.S_IMODE(path.stat().st_mode)
            except OSError:  # it was removed just now
                continue
            if seen_in(text, secrets):
                yield path, mode & PRIVATE


def processes_with(secrets: Sequence[str], part: str = "cmdline") -> Iterator[tuple[int, str]]:
    """The processes of this machine whose command line, or environment, holds a secret, and what they run."""
    for path in Path("/proc").glob(f"[0-9]*/{part}"):
        try:
            held = path.read_bytes().decode(errors="replace")
            words = (path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it ended meanwhile
            continue
        if seen_in(held.replace("\0", "\n"), secrets):
            yield int(path.parent.name), words


class ProcessList:
    """Looks at the list of processes again and again, as any user of the machine may; ``seen`` is what it showed."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self.secrets, self.seen, self.looks = secrets, dict[int, str](), 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> ProcessList:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.seen.update(processes_with(self.secrets))
            self.looks += 1
