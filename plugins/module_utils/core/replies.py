"""The replies of modules on nodes: known keys, checked types, limited sizes and printable texts; pure.

Root on a node can answer anything in the place of a module. A reply is data: no field of one says how a node is
reached, and only what REPLIES declares gets past ``admitted``. A form is a type, a frozenset of words, ``[form]``,
``Many`` with fewer items, ``{str: form}`` for any names, or an object ``{"name": form}``; ``"name?"`` may be missing or
null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from .names import printable

MOST_OF_A_LINE, MOST_OF_A_MESSAGE, MOST_ITEMS = 4096, 20_000, 10_000
MOST_DIGITS = 1 << 63
MIB = 1 << 20
INFO, JOB_MODULE = "dml.vsphere.training_info", "dml.vsphere.training_job"
WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


class Misfit(ValueError):
    """A value does not have the form of its field."""


@dataclass(frozen=True)
class Text:
    """Lines of text with a limit; ``str`` is one line."""

    most: int


@dataclass(frozen=True)
class Many:
    """A list of a form with a limit."""

    form: Any
    most: int


@dataclass(frozen=True)
class Maybe:
    """A form, or null."""

    form: Any


class Reply(NamedTuple):
    """The keys of a successful reply, the seconds until it counts as missing, and the memory for reading it."""

    form: Mapping[str, Any]
    seconds: float = 120.0
    memory: int = 96 * MIB


def read(value: Any, form: Any, where: str = "the reply") -> Any:
    """Return a value in its form; raise Misfit."""
    if isinstance(form, dict):
        _require(isinstance(value, Mapping), where, "an object")
        return _names(value, form[str], where) if str in form else _fields(value, form, where)
    if isinstance(form, (list, Many)):
        many = form if isinstance(form, Many) else Many(form[0], MOST_ITEMS)
        _require(isinstance(value, (list, tuple)) and len(value) <= many.most, where, f"a list of up to {many.most}")
        return [read(each, many.form, f"{where}[{index}]") for index, each in enumerate(value)]
    if isinstance(form, Maybe):
        return None if value is None else read(value, form.form, where)
    if isinstance(form, frozenset):
        _require(isinstance(value, str) and value in form, where, f"one of {', '.join(sorted(form))}")
        return str(value)
    return _scalar(value, form, where)


def _names(value: Mapping[object, object], form: object, where: str) -> dict[str, object]:
    _require(len(value) <= MOST_ITEMS, where, f"an object of up to {MOST_ITEMS} names")
    return {line(str(name)): read(each, form, f"{where}.{line(str(name))[:80]}") for name, each in value.items()}


def _fields(value: Mapping[object, object], form: Mapping[str, object], where: str) -> dict[str, object]:
    """Return the declared fields; others are left out."""
    found = {}
    for name, each in form.items():
        key = name.rstrip("?")
        if key in value and not (name != key and value[key] is None):
            found[key] = read(value[key], each, f"{where}.{key}")
        elif key in value:
            found[key] = None
        else:
            _require(name != key, f"{where}.{key}", "there")
    return found


def _scalar(value: Any, form: Any, where: str) -> object:
    if isinstance(form, Text):
        _require(isinstance(value, str), where, "text")
        return lines(str(value)[: form.most])
    if form is str:
        _require(isinstance(value, str), where, "text")
        return line(str(value))
    if form is bool:
        _require(isinstance(value, bool), where, WORDS[bool])
        return bool(value)
    is_number = isinstance(value, (int, float) if form is float else int) and not isinstance(value, bool)
    _require(is_number and abs(value) <= MOST_DIGITS and not math.isnan(value), where, WORDS[form])
    return form(value) if form is int else value


def _require(is_so: bool, where: str, what: str) -> None:
    if not is_so:
        raise Misfit(f"{where} is not {what}")


def line(text: str) -> str:
    """Return a text as one short line that does not control a terminal."""
    return printable(text[:MOST_OF_A_LINE])


def lines(text: str) -> str:
    """Return a text with its lines, without characters that control a terminal."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "?" for sign in text)


ANY_WORD = {"state?": str}
PROCESS = {"host?": str, "pid?": int, "start?": int, "boot_id?": str}
STATES = frozenset({"absent", "waiting", "running", "finished", "died", "stopped"})
JOB = {
    "state": STATES,
    "run_id?": str,
    "launcher?": PROCESS,
    "job?": str,
    "records?": str,
    "command?": [str],
    "hosts?": [{"name": str, "slots?": int}],
    "mpirun_command?": [str],
    "nodes_of_ranks?": [str],
    "steps_by?": str,
    "started?": float,
    "ended?": float,
    "exit_code?": int,
    "why?": str,
    "full?": str,
    "rank?": int,
    "node?": str,
    "machine?": bool,
    "last_lines?": Many(str, 1000),
    "output?": Text(2 * MIB),
    "left?": {str: str},
    "script?": str,
    "script_sha256?": str,
    "script_git?": str,
}
JOB_ON_NODE = {
    "run_dir": str,
    "run_id": str,
    "user": str,
    "asked_by": str,
    "started": float,
    "step?": int,
    "launched_here?": bool,
}
PRINTED = {"total?": float, "ways": Many(str, 100), "has_nccl": bool}
CHECKPOINT = {
    "path": str,
    "kind": str,
    "why": str,
    "step?": int,
    "age": float,
    "parts": int,
    "bytes": int,
    "optimizer?": bool,
}
OF_INFO = {
    "checkpoints?": {"seen": Many(CHECKPOINT, 100), "interval?": float, "bytes": int},
    "jobs?": Many(JOB_ON_NODE, 200),
    "job?": JOB,
    "printed?": PRINTED,
    "node?": str,
    "free_port?": int,
    "manifest?": Text(16 * MIB),
}
OF_FOLDER = {
    "state?": {"sha256?": str},
    "python?": str,
    "lock?": Many(str, 5000),
    "data?": str,
    "missing?": bool,
    "files?": int,
    "bytes?": int,
    "git?": {"commit?": str, "changed?": int, "changes_sha256?": str},
}
# The report of gpu_program.
OF_GPUS = {
    **dict.fromkeys(("smi?", "diagnostic?"), Text(4 * MIB)),
    "failure?": Text(MOST_OF_A_MESSAGE),
    "log?": [str],
    "modules?": Many(str, 100),
    "nccl?": int,
    **dict.fromkeys(("pools?", "gpudirect?", "dma_buf?"), Many(Maybe(int), 1000)),
}
FILE = {"path": str, "size": int}
STAT = {"exists": bool, "isreg?": bool, "size?": int, "mtime?": float, "checksum?": str, "pw_name?": str}
NOTHING: Mapping[str, Any] = {}
# Packages and data may take hours to arrive; a large folder takes minutes to remove.
REPLIES: dict[str, Reply] = {
    INFO: Reply(OF_INFO, memory=192 * MIB),
    JOB_MODULE: Reply({"state?": ANY_WORD, "job?": JOB}, 900.0),
    "dml.vsphere.training_folder": Reply(OF_FOLDER, 6 * 3600.0, 2048 * MIB),
    "ansible.builtin.command": Reply({"stdout?": Text(16 * MIB), "stderr?": Text(MIB), "rc?": int}, 300.0, 384 * MIB),
    "ansible.builtin.copy": Reply(NOTHING, 900.0, 384 * MIB),
    "ansible.builtin.fetch": Reply(NOTHING, 3600.0, 2048 * MIB),
    "ansible.builtin.file": Reply(NOTHING, 1800.0),
    "ansible.builtin.find": Reply({"files": [FILE], "matched?": int}, 300.0),
    "ansible.builtin.get_url": Reply(NOTHING, 6 * 3600.0),
    "ansible.builtin.ping": Reply(NOTHING),
    "ansible.builtin.stat": Reply({"stat": STAT}, 600.0),
    "ansible.builtin.unarchive": Reply(NOTHING, 3600.0),
}
OF_EACH = {"changed?": bool, "failed?": bool, "unreachable?": bool, "skipped?": bool, "rc?": int}


def admitted(node: str, module: str, options: Mapping[str, object], answer: Callable[[], object]) -> dict[str, object]:
    """Return the reply of a module in its form; a node whose reply cannot be read has not answered."""
    form = {**OF_EACH, "msg?": Text(MOST_OF_A_MESSAGE), **REPLIES[module].form}
    try:
        reply = answer()
        if isinstance(reply, Mapping) and reply.get("failed"):
            return _failure(node, reply)
        admissible: dict[str, Any] = read(reply, form)
        for key in _requested(module, options):
            _require(admissible.get(key) is not None, f"the reply.{key}", "there")
        return admissible
    except Misfit as error:
        return unread(node, module, str(error))
    except MemoryError:
        return unread(node, module, f"it needs more than {REPLIES[module].memory // MIB} MiB")
    except RecursionError:
        return unread(node, module, "it is nested too deeply")


def _requested(module: str, options: Mapping[str, Any]) -> list[str]:
    if module == INFO:
        more = {"port": "free_port", "manifest": "manifest"}
        return [*(options.get("gather") or ["jobs"]), *(key for option, key in more.items() if options.get(option))]
    return ["job"] if module == JOB_MODULE else []


def printed(answer: Mapping[str, object], form: Mapping[str, object]) -> dict[str, Any]:
    """Return what a program printed on a node in its form, or the ``error``."""
    if "error" in answer:
        return {"error": lines(str(answer["error"])[:MOST_OF_A_MESSAGE])}
    try:
        found: dict[str, Any] = read(answer, form, "its answer")
    except Misfit as error:
        return {"error": str(error)}
    return found


def unread(node: str, module: str, cause: str) -> dict[str, object]:
    """Return the failure of a node whose reply cannot be used."""
    remedy = f"check this node: something else than the module answers there, or leave it out with --limit '!{node}'"
    return {"failed": True, "msg": f"{node}: could not read the reply of {module}: {cause}; {remedy}."}


def _failure(node: str, reply: Mapping[object, object]) -> dict[str, Any]:
    """Return a failed reply with its message only."""
    message = reply.get("msg")
    text = message if isinstance(message, str) and message else f"{node}: the module failed without a message"
    marks = {key: True for key in ("unreachable", "missing") if reply.get(key) is True}
    return {"failed": True, "msg": lines(text[:MOST_OF_A_MESSAGE]).strip(), **marks}
