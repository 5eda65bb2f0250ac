"""The attempts of one run as their manifests link them, and what a verdict on its restarts needs of each; pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...continuity.limits import MOST_RANKS
from ...continuity.restart_facts import Attempt, GivenCheckpoint, Part
from ...continuity.restart_steps import RankSteps, Saved
from ...core.json_values import mapping, objects
from .checkpoint import is_alike, is_later, step_of
from .manifest import OF_BENCHMARKS, Manifest, name_of_attempt, number

# Copies of outputs have times in whole seconds.
COPY_SECONDS = 1.0
MOST_ATTEMPTS = 1000
MOST_POINTS = 128
MOST_PARTS = 16


def chain_of(name: str, manifests: Mapping[str, Manifest]) -> list[str]:
    """Return the names of a run and of the ones that it resumed, the first one first."""
    names: list[str] = []
    while name in manifests and name not in names and len(names) < MOST_ATTEMPTS:
        names.insert(0, name)
        name = previous(manifests[name])
    return names


def previous(manifest: Manifest) -> str:
    """Return the name of the attempt before one; empty for the first one. Without a folder, none is resumed."""
    first, attempts = str(manifest.get("first_attempt") or ""), int(number(manifest.get("attempt")) or 1)
    earlier = "" if not first or attempts < 2 else first if attempts == 2 else name_of_attempt(first, attempts - 1)
    return str(manifest.get("resumed_from") or earlier)


def last_attempts(manifests: Mapping[str, Manifest]) -> list[str]:
    """Return the names of the runs that follow another attempt, and that no later attempt follows."""
    before = {name: previous(each) for name, each in manifests.items()}
    return sorted(name for name in manifests if before[name] and name not in before.values())


def attempt(manifest: Manifest, before: Manifest | None, ranks: Mapping[int, RankSteps], **more: Any) -> Attempt:
    """Return an attempt; ``before`` is the manifest of the attempt that it resumed."""
    end = mapping(manifest.get("end"))
    # A later attempt takes the nodes of the first one; only a user resumes a run on others.
    is_resumed_by_user = bool(manifest.get("resumed_from")) and int(number(manifest.get("attempt")) or 1) == 1
    return Attempt(
        name=str(manifest["name"]),
        program=program(manifest),
        ranks=ranks,
        size=_size(manifest),
        state=str(end.get("state") or ""),
        cause=str(end.get("cause") or ""),
        started=number(manifest.get("started")),
        ended=number(end.get("ended")),
        checkpoint=None if before is None else given_checkpoint(manifest, before, more.get("saved") or ()),
        parameters=tuple(more.get("parameters") or ()),
        chosen=frozenset({"ranks"} if is_resumed_by_user else ()),
        steps=number(end.get("steps")) or 0,
    )


def with_window(before: Attempt, after: Attempt, manifest: Manifest) -> Attempt:
    """Return an attempt with the parts of the time until the next one, which the window between them measured."""
    given = mapping(manifest.get("restart"))
    pairs = [(_list(part)[0], number(_list(part)[1])) for part in _list(given.get("down")) if len(_list(part)) > 1]
    parts = tuple(Part(str(name), seconds) for name, seconds in pairs[:MOST_PARTS] if seconds is not None)
    between = None if before.ended is None or after.started is None else after.started - before.ended
    rest = -1.0 if between is None else between - sum(part.seconds for part in parts)
    down = (*parts, Part("checks", rest)) if parts and rest >= 0 else ()
    return replace(before, down=down, waited_s=number(given.get("waited_s")))


def program(manifest: Manifest) -> dict[str, str]:
    """Return the properties that all attempts of a run share, each as a text; values of variables are hashes."""
    code = mapping(manifest.get("code"))
    variables = mapping(mapping(manifest.get("asked")).get("environment"))
    # The options of the benchmarks in an inventory do not belong to a program of the user.
    benchmark = [] if manifest.get("command") else list(filter(None, map(manifest.get, OF_BENCHMARKS)))
    texts = {
        "code": code.get("sha256"),
        "data": manifest.get("data_sha256") or manifest.get("data"),
        "packages": _sum(manifest.get("lock")),
        "requirements": _sum(manifest.get("requirements")),
        "image": manifest.get("image"),
        "stack": manifest.get("stack"),
        "command": _words(manifest.get("command")),
        "benchmark": _words(benchmark),
        "variables": ", ".join(f"{key}={value}" for key, value in sorted(variables.items())),
        "ranks": str(_size(manifest)),
    }
    return {key: str(text or "") for key, text in texts.items()}


def _size(manifest: Manifest) -> int:
    nodes = manifest.get("nodes")
    each = max(0, int(number(manifest.get("ranks_per_node")) or 1))
    return min(each * (len(nodes) if isinstance(nodes, list) else 0), MOST_RANKS)


def _sum(content: object) -> str:
    """Return the SHA-256 of a long value; empty without one."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest() if content else ""


def _words(words: object) -> str:
    return " ".join(map(str, words)) if isinstance(words, (list, tuple)) else str(words or "")


def given_checkpoint(manifest: Manifest, before: Manifest, saved: Sequence[Saved]) -> GivenCheckpoint | None:
    """Return the checkpoint that an attempt was given; None if its manifest does not have it.

    ``saved`` are the checkpoints that the records of the earlier attempt mark.
    """
    given = manifest.get("restart")
    if not isinstance(given, Mapping):
        return None
    path, torn = str(given.get("path") or ""), [each for each in _list(given.get("torn")) if len(_list(each)) > 1]
    has_optimizer = given.get("optimizer")
    return GivenCheckpoint(
        path=path,
        step=_step(given, saved),
        fault=changed(given, before),
        has_optimizer=has_optimizer if isinstance(has_optimizer, bool) else None,
        newer=tuple(_newer(path, _kept(before), {str(each[0]) for each in torn})) if path else (),
        torn=tuple(f"{each[0]} ({each[1]})" for each in torn),
    )


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _step(given: Mapping[str, object], saved: Sequence[Saved]) -> int | None:
    """Return the step of a checkpoint: from its files, or that of the only mark in whose time it was written."""
    step, at = number(given.get("step")), number(given.get("modified"))
    if step is not None:
        return int(step)
    marked = {
        each.step for each in saved if at is not None and each.begin - COPY_SECONDS <= at <= each.end + COPY_SECONDS
    }
    return marked.pop() if len(marked) == 1 else None


def changed(given: Mapping[str, object], before: Manifest) -> str:
    """Return why the files of a checkpoint are not those of the end of the earlier attempt; empty if they are."""
    path, kept = str(given.get("path") or ""), _kept(before)
    files = {str(each.get("path")): each.get("sha256") for each in objects(given.get("files"))}
    if not path or not files:
        return ""
    inside = {name for name in kept if name == path or name.startswith(f"{path}/")}
    lacking = sorted(inside - set(files))
    other = sorted(name for name in inside & set(files) if files[name] != kept[name])
    if other:
        return f"{other[0]} was changed after the end of {before['name']}"
    return f"{lacking[0]} was removed after the end of {before['name']}" if lacking else ""


def _kept(manifest: Manifest) -> dict[str, object]:
    """Return the checksums of the outputs that a run had at its end."""
    return {str(each.get("path")): each.get("sha256") for each in objects(mapping(manifest.get("end")).get("outputs"))}


def _newer(path: str, kept: Mapping[str, object], torn: set[str]) -> list[str]:
    """Return the checkpoints of the same name and a later step that the earlier attempt had at its end."""
    depth = path.count("/") + 1
    tops = {"/".join(name.split("/")[:depth]) for name in kept}
    step = step_of(path)
    return sorted(
        top
        for top in tops - torn
        if step is not None and is_alike(top, path) and (step_of(top) or 0) > step and is_later(top, path)
    )


def curves(attempts: Sequence[Attempt]) -> list[dict[str, object]]:
    """Return for each attempt its name, and the mean loss and the time of groups of its steps on all ranks.

    Times are seconds since the first step of the run.
    """
    made = [attempt for attempt in attempts if attempt.ranks]
    began = min((steps.at(0) for attempt in made for steps in attempt.ranks.values()), default=0.0)
    return [{"name": attempt.name, "points": _points(attempt, began)} for attempt in made]


def _points(attempt: Attempt, began: float) -> list[list[float | None]]:
    first = min(steps.step[0] for steps in attempt.ranks.values())
    last = max(steps.last for steps in attempt.ranks.values())
    width = max(1, math.ceil((last - first + 1) / MOST_POINTS))
    groups: dict[int, list[float]] = {}
    for steps in attempt.ranks.values():
        for index, step in enumerate(steps.step):
            group = groups.setdefault((step - first) // width, [0, 0.0, 0.0, 0])
            if math.isfinite(steps.loss[index]):
                group[0] += 1
                group[1] += steps.loss[index]
            group[2], group[3] = max(group[2], steps.at(index) - began), max(group[3], step)
    points = [groups[place] for place in sorted(groups)]
    return [[int(step), round(at, 3), total / count if count else None] for count, total, at, step in points]
