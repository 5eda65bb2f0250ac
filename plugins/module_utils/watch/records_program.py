"""Runs on a node: sends each complete line that is appended to the record files of a folder, and signs of life.

If asked, it also sends the use of the GPUs, the output of the job, and that the job has ended.
"""

# This file is sent to the node as text: it imports only the standard library, and any Python from 3.8 on runs it.
from __future__ import annotations

# pylint: disable=ansible-bad-function  # this runs on a node, without Ansible
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections import deque

# New lines wake four processes on their way over ssh.
LOOK_SECONDS = 0.5
ALIVE_SECONDS = 1.0
MOST_BYTES = 1 << 20
VIEW_SECONDS, GPU_SECONDS = 5.0, 15.0
GPU_FIELDS = "index,name,utilization.gpu,memory.used,memory.total"
GPU_QUERY = ("nvidia-smi", f"--query-gpu={GPU_FIELDS}", "--format=csv,noheader,nounits")
# The output of the job on its launcher, the file with the secret values that the output may contain, and its end.
OUTPUT, DESIRED, END = "output.log", "wish.json", "end.json"
SENT_CHARACTERS, MOST_BEHIND = 1 << 14, 64 << 20
HIDDEN, SHORTEST = "HIDDEN", 8


class RecordFolder:
    """The record files of a folder, kept open: a read that finds nothing new must cost next to nothing."""

    def __init__(self, path: str, offsets: dict[str, int], tail: int = 0) -> None:
        self._path, self._offsets, self._tail = path, offsets, tail
        self._files: dict[str, int] = {}
        self._changed = -1
        self._at_first: dict[str, int] | None = None
        self._closed: dict[str, str] = {}
        self._faults: dict[str, str] = {}

    def read(self) -> list[dict[str, object]]:
        """Return the complete lines that were appended to each file since the last call.

        ``old`` marks lines that existed at the first call.
        """
        self._open_new()
        if self._at_first is None:
            self._at_first = {name: os.fstat(file).st_size for name, file in self._files.items()}
            self._skip_to_tails(self._at_first)
        messages: list[dict[str, object]] = []
        for name, file in self._files.items():
            offset, size = self._offsets.get(name, 0), os.fstat(file).st_size
            if size < offset:
                offset = self._offsets[name] = 0  # the job rewrote the file; a record that comes twice counts once
            if size == offset:
                continue
            data = os.pread(file, MOST_BYTES, offset)
            end = data.rfind(b"\n") + 1
            if end or len(data) == MOST_BYTES:
                # A line that is longer than one read is not a record: skip it, so that it does not hide later lines.
                end = end or len(data)
                self._offsets[name] = offset + end
                # JSON may contain characters that str.splitlines takes for line ends.
                lines = data[:end].decode("utf-8", "replace").split("\n")
                is_old = offset < self._at_first.get(name, 0)
                lines = lines if lines[-1] else lines[:-1]
                messages.append({"file": name, "offset": offset + end, "lines": lines, "old": is_old})
        return messages + self._take_faults()

    def _skip_to_tails(self, sizes: dict[str, int]) -> None:
        """Begin each file that was never read before its last lines, if only those are asked for."""
        for name, size in sizes.items():
            if self._tail and size > self._tail and name not in self._offsets:
                begin = size - self._tail
                self._offsets[name] = begin + os.pread(self._files[name], self._tail, begin).find(b"\n") + 1

    def _take_faults(self) -> list[dict[str, object]]:
        """Return the files that could not be opened since the last call, and why."""
        messages: list[dict[str, object]] = [{"file": name, "error": why} for name, why in self._faults.items()]
        self._faults = {}
        return messages

    def _open_new(self) -> None:
        try:
            changed = os.stat(self._path).st_mtime_ns
            if changed == self._changed:
                return
            names = [name for name in sorted(os.listdir(self._path)) if name.endswith(".jsonl")]
        except OSError:  # the job has not made it yet
            return
        # Another file may appear within the same clock tick: keep only a time that has passed.
        self._changed = changed if time.time_ns() - changed > 10**9 else -1
        for name in names:
            if name not in self._files and name not in self._closed:
                self._open(name)

    def _open(self, name: str) -> None:
        """Open a file of records; an entry that cannot be read must not hide the others."""
        try:
            # Without O_NONBLOCK, opening a pipe without a writer would block.
            file = os.open(os.path.join(self._path, name), os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            self._closed[name] = self._faults[name] = str(error.strerror)
            return
        if stat.S_ISREG(os.fstat(file).st_mode):
            self._files[name] = file
        else:
            os.close(file)
            self._closed[name] = self._faults[name] = "it is not a regular file"


class NodeView:
    """The use of the GPUs of the node at most every few seconds, the output of the job, and its end."""

    def __init__(self, path: str, offset: int = 0) -> None:
        self._path, self._output = path, Output(path, offset)
        self._has_ended = False
        self._gpus: deque[dict[str, object]] = deque(maxlen=1)
        if shutil.which(GPU_QUERY[0]):
            # In a thread: the program may hang while a GPU fails, and records must not wait for it.
            threading.Thread(target=self._follow_gpus, daemon=True).start()

    def read(self) -> list[dict[str, object]]:
        """Return the readings that are new since the last call."""
        messages: list[dict[str, object]] = [{"gpus": self._gpus.popleft()}] if self._gpus else []
        # The end is read first: the output is complete by then.
        has_ended = not self._has_ended and is_swept(self._path)
        printed = self._output.read()
        if has_ended and not printed:
            self._has_ended = True
            messages.append({"end": True})
        return messages + printed

    def _follow_gpus(self) -> None:
        while True:
            self._gpus.append(gpu_use())
            time.sleep(VIEW_SECONDS)


def is_swept(path: str) -> bool:
    """Return whether the supervisor of the job has written its end, after it ended what the job left."""
    try:
        with open(os.path.join(path, END), encoding="utf-8") as file:
            return bool(json.load(file)["swept"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return False


class Output:
    """The output of the job, never more than a few MiB behind its end: older output of a fast program is skipped."""

    def __init__(self, path: str, offset: int) -> None:
        self._path, self._offset = path, offset
        self._file = -1
        self._secrets: list[str] = []

    def read(self) -> list[dict[str, object]]:
        """Return the next lines with each secret value replaced, and how many bytes before them were left out."""
        try:
            size = self._size()
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return []
        self._offset = self._offset if self._offset <= size else 0
        skipped = max(0, size - self._offset - MOST_BEHIND)
        data = os.pread(self._file, MOST_BYTES, self._offset + skipped) if size > self._offset else b""
        if skipped:
            # The first bytes may be the rest of a secret value.
            rest = data.find(b"\n", len(self._secrets[0].encode()) if self._secrets else 0) + 1
            skipped, data = skipped + rest, data[rest:]
        # A progress bar ends its lines with a carriage return.
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        end = outside(data, end or (len(data) if len(data) == MOST_BYTES else 0), self._secrets)
        if not end:
            return []
        self._offset += skipped + end
        text = data[:end].decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return [{"output": text, "offset": self._offset, "skipped": skipped}]

    def _size(self) -> int:
        """Open the output, once its secret values are known, and return its size."""
        if self._file < 0:
            secrets = secret_values(self._path)
            file = os.open(os.path.join(self._path, OUTPUT), os.O_RDONLY | os.O_NONBLOCK)
            if not stat.S_ISREG(os.fstat(file).st_mode):
                os.close(file)
                raise ValueError(OUTPUT)
            self._file, self._secrets = file, secrets
        return os.fstat(self._file).st_size


def gpu_use() -> dict[str, object]:
    """Return the output of nvidia-smi and its exit code; without an output, the reason."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program
            GPU_QUERY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=GPU_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"text": f"no answer for {GPU_SECONDS:.0f} s", "code": -1}
    except OSError as error:
        return {"text": str(error.strerror), "code": -1}
    return {"text": done.stdout.decode("utf-8", "replace")[:SENT_CHARACTERS], "code": done.returncode}


# The module that reads the end of the output has the same rule: this program cannot import from the collection.
def secret_values(path: str) -> list[str]:
    """Return the secret values of the job and their lines, the longest first: a value may be part of another."""
    with open(os.path.join(path, DESIRED), encoding="utf-8") as file:
        whole = {str(value) for value in (json.load(file).get("secret_environment") or {}).values()}
    values = whole | {line for value in whole for line in value.splitlines()}
    return sorted((value for value in values if len(value) >= SHORTEST), key=lambda value: (-len(value), value))


def outside(data: bytes, end: int, secrets: list[str]) -> int:
    """Return a position near ``end`` that is in no secret value: after a complete one, before one that begins there."""
    for secret in (each.encode() for each in secrets):
        starts = (length for length in range(len(secret) - 1, 0, -1) if data.endswith(secret[:length]))
        end = min(end, len(data) - next(starts, 0))
    for secret in (each.encode() for each in secrets):
        begin = data.rfind(secret, 0, end + len(secret) - 1)
        end = max(end, begin + len(secret)) if 0 <= begin < end else end
    return end


def main() -> None:
    """Follow the folder until the reader ends; ``mark`` distinguishes the messages from other output on the way."""
    mark, tail = sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 0
    offsets = json.loads(sys.argv[2])
    folder = RecordFolder(sys.argv[1], offsets, tail)
    view = NodeView(sys.argv[1], offsets.get(OUTPUT, 0)) if sys.argv[5:] == ["view"] else None
    last_sent = 0.0
    while True:
        messages = folder.read() + (view.read() if view else [])
        now = time.monotonic()
        if messages or now - last_sent >= ALIVE_SECONDS:
            last_sent = now
            sys.stdout.write("".join(f"{mark}{json.dumps(message)}\n" for message in messages or [{}]))
            sys.stdout.flush()
        # A job that prints much must not get further ahead.
        if not any("output" in message for message in messages):
            time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main()
