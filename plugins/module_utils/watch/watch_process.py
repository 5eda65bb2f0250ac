"""The process on the controller that collects the step records of a job, and outlives the playbook that started it.

Its options are a JSON object on its standard input, those of ``watch_records``. Its last line of output is a JSON
object with the reason why it ended, or with ``msg`` if it failed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import runner
from ..errors import Failed
from ..guests import supervisor
from . import beside_records, watcher
from .link import Link


def watch_records(
    nodes: Sequence[Mapping[str, Any]], folder: str, *, tail: int = 0, view: bool = False, **options: Any
) -> dict[str, object]:
    """Keep a connection to each node, and append its records to one file, each with its time of arrival (``seen``).

    A broken connection is opened again; no record is lost or written twice. A watch that continues an earlier one reads
    all records again; those that were written between the two have no ``seen``. ``folder`` is that of the records on
    the nodes. ``tail`` are the bytes at the end of each file with which the watch begins, 0 for all of it. With
    ``view``, it also reads the utilization of the GPUs, the end of the job, and its output, which it writes to the file
    of the option ``output``.
    """
    links = [Link(node["name"], node["reach"], folder, tail=tail, has_view=view) for node in nodes]
    try:
        state = watcher.watch(links, watch_options(**options))
    except OSError as error:
        raise Failed(options["records"], "collect the records of the job", str(error.strerror or error)) from error
    unreadable = state.unreadable + sum(node.noise for node in links)
    return {"ended": state.ended, "nodes": {node.name: _of(node, state) for node in links}, "unreadable": unreadable}


def watch_options(
    records: str,
    stop: str,
    silence: float = 600.0,
    timeout: float = 86400.0,
    roll: str = "",
    output: str = "",
    **clients: Any,
) -> watcher.WatchOptions:
    """Return the options of a watch: its files, and the seconds without a record and in all after which it ends."""
    files = (Path(records), Path(stop))
    more = [Path(path) if path else None for path in (roll, output)]
    return watcher.WatchOptions(*files, silence, timeout, _has_client(**clients), *more)


def _has_client(started_by: int = 0, attended: str = "", alone: float = 600.0) -> Callable[[], bool]:
    """Return whether a client of the watch is left.

    ``started_by`` is the number of the process that started the watch, and ``attended`` a file that its user keeps
    locked; ``alone`` are the seconds after which the watch ends without a lock.
    """
    starter = supervisor.identity(started_by) if started_by else None
    is_attended = watcher.Attended(Path(attended), alone) if attended else None
    return lambda: (starter is None or supervisor.is_alive(starter)) and (is_attended is None or is_attended())


def _of(node: Link, state: watcher.WatchState) -> dict[str, object]:
    lines = state.lines.get(node.name, 0)
    return {"lines": lines, "breaks": node.breaks, "said": node.last_error, "noise": node.noise}


def new_folder(results: str) -> str:
    """Make a new folder for the files of a watch; the watch of a killed controller may still write to the old one."""
    try:
        os.makedirs(results, mode=0o700, exist_ok=True)
        return tempfile.mkdtemp(prefix="watch-", dir=results)
    except OSError as error:
        raise Failed(results, "make a folder for the records", str(error.strerror or error)) from error


def reported_end(records: str) -> bool:
    """Return whether a node has reported the end of the job of a file of records."""
    return bool(beside_records.read(Path(records), beside_records.ENDS))


def output_of(records: Path) -> Path:
    """Return the file with the output of the watch of a file of records."""
    return records.with_name(f"{records.name}.watch")


def why_ended(records: str) -> str:
    """Return the last line that the watch of a file of records printed: its result, or the error of Python."""
    try:
        lines = output_of(Path(records)).read_text(encoding="utf-8", errors="replace").splitlines()
        printed = json.loads(lines[-1])
        return str(printed.get("msg") or printed["ended"])
    except (OSError, IndexError):
        return ""
    except (ValueError, KeyError, AttributeError):
        return lines[-1]


def main() -> None:
    """Watch until the watch ends, and print why.

    The watch has no parent among the processes of its playbook: it survives if all of these are killed.
    """
    if os.fork():
        os._exit(0)
    options = json.load(sys.stdin)
    sys.stdout.write(json.dumps(runner.outcome(lambda: watch_records(**options))) + "\n")
    sys.stdout.flush()
