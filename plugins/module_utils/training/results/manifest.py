"""The manifest of a training run: what ran where, for whom and how it ended; the differences between two manifests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypedDict, cast

from ...core.names import printable
from ...errors import Refused

FILE = "manifest.json"
HIGHEST = 1 << 53
# The keys without which a run cannot be followed, and their types.
NEEDED: dict[str, type] = {"name": str, "run_dir": str, "nodes": list, "command": list, "transport": str}
# These keys differ between any two runs; the words follow from the command, and the end is compared by its own rows.
OF_ONE_RUN = ("name", "run_dir", "started", "asked_by", "first_attempt", "attempt", "words", "restart", "end")
REQUESTED = "asked."
# These keys must be equal in a repeated run.
OF_A_REPEAT = (
    "stack",
    "image",
    "built",
    "lock",
    "code",
    "data_sha256",
    "command",
    "transport",
    "nodes",
    "ranks_per_node",
)
# Facts of a running job that a node may report to a controller without a manifest of the job, and their types.
OF_A_JOB: dict[str, tuple[type, ...]] = {
    "started": (int, float),
    "asked_by": (str,),
    "port": (int,),
    "rank_0_on": (str,),
}
# Settings that only the benchmarks use, and no run with a command.
OF_BENCHMARKS = ("framework", "options", "gradient_bytes")
# Marks a manifest that came from a node, whose user could change it.
REPORTED = "reported"
# How the end is compared: the row, the key of the end and the unit.
MEASURES = (
    ("state", "state", ""),
    ("steps", "steps", ""),
    ("rate", "images_per_sec", " images/s"),
    ("pace", "steps_per_sec", " steps/s"),
    ("loss", "loss", ""),
)
ABSENT = "-"
MOST_OF_A_VALUE, MOST_BYTES = 80, 16 << 20


# Who started the run, and the settings of the command.
class _Request(TypedDict, total=False):
    asked_by: str
    asked: Mapping[str, Any]


class RunEnd(TypedDict, total=False):
    """How a run ended, and the path, size and checksum of each of its outputs."""

    state: str
    ended: float | None
    cause: str | None
    steps: int | None
    loss: float | None
    steps_per_sec: float | None
    images_per_sec: float | None
    not_finite: Mapping[str, Any]
    outputs: Sequence[Mapping[str, Any]]


class Manifest(_Request, total=False):
    """The manifest. Only the keys in ``NEEDED`` are checked when it is read, because earlier versions lack others."""

    name: str
    run_dir: str
    backend: str
    started: float
    first_attempt: str
    attempt: int
    attempts: int
    launcher: str
    nodes: list[str]
    command: list[str]
    words: list[str]
    folder: str
    outputs: str
    framework: str
    options: list[str]
    stack: str
    transport: str
    nccl: str
    steps_by: str
    ranks_per_node: int
    steps: int
    warmup: int
    gradient_bytes: int
    hosts: Mapping[str, str]
    repeats: str
    # The checksum of the folder, the state of its git repository and, of data, the source and the checksum.
    code: Mapping[str, Any]
    data: str
    data_sha256: str
    requirements: str
    lock: list[str]
    image: str
    # The run and the checkpoint from which it continues, and the facts about that checkpoint.
    resumed_from: str
    checkpoint: str
    restart: Mapping[str, Any]
    rank_0_on: str
    # The versions and proofs that the roles recorded on each node.
    built: Mapping[str, Mapping[str, Any]]
    port: int
    end: RunEnd
    # Whether a node reported it, and whether another run takes its program.
    reported: bool
    takes_program: bool


def name_of_attempt(first: str, number: int) -> str:
    return f"{first}-{number}"


def parsed(text: str, name: str) -> Manifest:
    """Return the manifest in a text, or refuse it."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refused(name, str(error)) from error
    wrong = faults(content)
    if wrong:
        raise _refused(name, wrong)
    return cast("Manifest", content)


def faults(content: object) -> str:
    """Return why a value is not the content of a manifest; empty if it is."""
    if not isinstance(content, Mapping):
        return "it does not contain a JSON object"
    wrong = [key for key, kind in NEEDED.items() if not isinstance(content.get(key), kind)]
    if not wrong and not all(isinstance(node, str) for node in content["nodes"]):
        wrong = ["nodes"]
    if not isinstance(content.get("end", {}), Mapping):
        wrong.append("end")
    return f"its {', '.join(wrong)} are missing or malformed" if wrong else ""


def _refused(name: str, cause: str) -> Refused:
    return Refused(f"the training run {name}", "read its manifest", cause, "remove this file, or restore it")


def reported(text: str, name: str, own: Manifest) -> Manifest:
    """Return the manifest in a text from a node; if it is malformed and the controller has one, return an empty one."""
    try:
        return parsed(text, name)
    except Refused:
        if not own:
            raise
        return {}


def requester(text: str) -> str:
    """Return who started the run of a manifest of a node, as it says; it may be malformed."""
    try:
        return printable(str(parsed(text, "").get("asked_by") or "an unknown user"))[:MOST_OF_A_VALUE]
    except Refused:
        return "an unknown user"


def followed(own: Manifest, reported: Manifest) -> Manifest:
    """Return the manifest for following a run: the controller's, otherwise a marked copy from the node."""
    if own:
        return own.copy()
    copy: Manifest = {**reported, "reported": True}
    copy.pop("end", None)
    return copy


def continued(own: Manifest, reported: Manifest) -> Manifest:
    """Return the known facts of a job that has already started: never a command from a node."""
    if own and reported.get("started", own.get("started")) == own.get("started"):
        return own.copy()
    facts = {key: reported.get(key) for key in OF_A_JOB}
    known = {key: value for key, value in facts.items() if isinstance(value, OF_A_JOB[key]) and value is not True}
    return cast("Manifest", known)


def contradicted(own: Manifest, reported: Manifest) -> list[str]:
    """Return the keys whose values in the manifest of a node differ from those of the controller."""
    return differing(own, reported, sorted({*own, *reported} - {"end", REPORTED})) if own else []


def ended(manifest: Manifest, end: RunEnd) -> Manifest:
    """Return the manifest with facts about the end of its run; null values do not replace known ones."""
    known = {key: value for key, value in end.items() if value is not None}
    return {**manifest, "end": cast("RunEnd", {**manifest.get("end", {}), **known})}


def seconds(manifest: Manifest) -> float | None:
    """Return the duration of a run; None if it has not ended."""
    started, end = (number(value) for value in (manifest.get("started"), manifest.get("end", {}).get("ended")))
    return None if started is None or end is None else end - started


def compared(
    one: Manifest,
    other: Manifest,
    code: Sequence[tuple[str, str, str]] = (),
    metrics: Sequence[tuple[str, object, object]] = (),
) -> list[str]:
    """Return a table of the values in which two runs differ, then of their ends and metrics."""
    left, right = dict(_flat(_without(one))), dict(_flat(_without(other)))
    keys = list(dict.fromkeys((*left, *right)))
    rows = [(key, left.get(key, ABSENT), right.get(key, ABSENT)) for key in keys if left.get(key) != right.get(key)]
    # A request that is the same as what ran adds nothing.
    rows = [row for row in rows if not (row[0].startswith(REQUESTED) and (row[0][len(REQUESTED) :], *row[1:]) in rows)]
    same = [("all other settings", "equal", "equal")] if len(rows) < len(keys) else []
    rows += code
    measured = [(key, _text(first, ""), _text(second, "")) for key, first, second in metrics]
    ends = [(row, _value(one, key, unit), _value(other, key, unit)) for row, key, unit in MEASURES]
    ends = [row for row in ends if row[1:] != (ABSENT, ABSENT)]
    duration = ("duration", *(_text(seconds(each), " s") for each in (one, other)))
    named = ("", str(one["name"]), str(other["name"]))
    return table([line for row in (named, *rows, *same, *ends, duration, *measured) for line in _folded(row)])


def _folded(row: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a row: a long value has several, because a difference may be at its end."""
    cells = [
        [cell[at : at + MOST_OF_A_VALUE] for at in range(0, len(cell), MOST_OF_A_VALUE)] for cell in map(printable, row)
    ]
    yield from zip_longest(*cells, fillvalue="")


def differing(one: Mapping[str, object], other: Mapping[str, object], keys: Iterable[str]) -> list[str]:
    return [key for key in keys if one.get(key) != other.get(key)]


def _without(manifest: Manifest) -> dict[str, object]:
    unused = OF_BENCHMARKS if manifest.get("command") else ()
    kept = {key: value for key, value in manifest.items() if key not in (*OF_ONE_RUN, *unused)}
    built = kept.pop("built", None)
    return {**kept, **({"built": _of_all_nodes(built)} if isinstance(built, Mapping) else {})}


def _of_all_nodes(built: Mapping[str, object]) -> dict[str, str]:
    """Return each version that the roles recorded once: most are the same on all nodes. A time is not a version."""
    found: dict[str, set[str]] = {}
    for facts in built.values():
        for key, value in _flat(facts):
            if not key.rpartition(".")[2].startswith("time"):
                found.setdefault(key, set()).add(value)
    return {key: ", ".join(sorted(values)) for key, values in found.items()}


def _flat(value: object, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield each value of nested mappings with its keys; a list is one value."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _flat(below, f"{above}.{key}" if above else str(key))
    elif isinstance(value, (list, tuple)):
        yield above, " ".join(str(each) if isinstance(each, str) else json.dumps(each, default=str) for each in value)
    else:
        yield above, str(value)


def _value(manifest: Manifest, key: str, unit: str) -> str:
    return _text(manifest.get("end", {}).get(key), unit)


def _text(value: object, unit: str) -> str:
    if value is None:
        return ABSENT
    return f"{value:.4g}{unit}" if isinstance(value, float) else f"{value}{unit}"


def number(value: object) -> float | None:
    """Return a number that a time or a rate can have; None for anything else, such as NaN."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < HIGHEST:
        return float(value)
    return None


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns."""
    short = [[_short(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*short)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in short]


def _short(cell: str) -> str:
    text = printable(cell)
    return text if len(text) <= MOST_OF_A_VALUE else f"{text[: MOST_OF_A_VALUE - 3]}..."
