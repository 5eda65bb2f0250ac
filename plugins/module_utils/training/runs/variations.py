"""The runs of one program with each combination of values, which groups of nodes make side by side; pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import Refused
from ..results import manifest
from ..results.manifest import Manifest

KEY = re.compile(r"[A-Za-z_]\w*")
MOST = 1000
# The names in braces that each command may have.
PLACES = ("nodes", "ranks", "data", "resume")


class Variation(NamedTuple):
    """One combination: the name of its run, the values, the command, and the nodes of its group."""

    name: str
    values: dict[str, str]
    command: list[str]
    nodes: list[str]


def variations(
    name: str, sweep: Mapping[str, Any], command: Sequence[str], nodes: Sequence[str], size: int
) -> list[list[Variation]]:
    """Return the variations of each group of nodes; ``size`` is the number of nodes of a run, 0 for all."""
    _require(name, sweep, command)
    size = size or len(nodes)
    groups = [list(nodes[start : start + size]) for start in range(0, len(nodes) - size + 1, size)]
    if not groups:
        cause = f"training_sweep_size is {size}, and there are {len(nodes)} nodes"
        raise Refused(name, "vary its command", cause, "set a smaller number")
    made: list[list[Variation]] = [[] for _group in groups]
    texts = [[str(value) for value in values] for values in sweep.values()]
    for number, chosen in enumerate(itertools.product(*texts)):
        values, group = dict(zip(sweep, chosen)), number % len(groups)
        made[group].append(Variation(f"{name}.{number + 1}", values, _filled(command, values), groups[group]))
    return made


def _require(name: str, sweep: Mapping[str, Any], command: Sequence[str]) -> None:
    for key, values in sweep.items():
        if not KEY.fullmatch(str(key)) or key in PLACES or not isinstance(values, list) or not values:
            cause = f"{key!r} of training_sweep is {values!r}"
            raise Refused(name, "vary its command", cause, "map a name to a list of values, such as {lr: [0.1, 0.01]}")
        if not any(f"{{{key}}}" in word for word in command):
            cause = f"training_sweep has {key}, and the command has no {{{key}}}"
            raise Refused(name, "vary its command", cause, f"write {{{key}}} where the command has the value")
    count = 1
    for values in sweep.values():
        count *= len(values)
    if count > MOST:
        raise Refused(name, "vary its command", f"training_sweep has {count} combinations", f"choose at most {MOST}")


def _filled(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    words = []
    for word in command:
        filled = word
        for key, value in values.items():
            filled = filled.replace(f"{{{key}}}", value)
        words.append(filled)
    return words


def row(variation: Variation, known: Manifest, metrics: Mapping[str, object]) -> dict[str, Any]:
    """Return a line of the table, from the manifest of a run and the last metrics in its outputs."""
    end = known.get("end") or {}
    seconds = manifest.seconds(known)
    rate, pace = end.get("images_per_sec"), end.get("steps_per_sec")
    return {
        "run": variation.name,
        **variation.values,
        "state": end.get("state") or "unknown",
        "steps": end.get("steps"),
        "loss": end.get("loss"),
        "images/s": round(rate, 1) if isinstance(rate, float) else rate,
        "steps/s": None if rate is not None or not isinstance(pace, float) else round(pace, 2),
        "seconds": None if seconds is None else round(seconds),
        **{f"{key} (outputs)": value for key, value in metrics.items()},
    }


def table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return rows as lines of a table; columns without any value are left out."""
    keys = list(dict.fromkeys(key for each in rows for key in each))
    keys = [key for key in keys if any(each.get(key) not in (None, "") for each in rows)]
    return manifest.table([keys, *([_text(each.get(key)) for key in keys] for each in rows)])


def _text(value: object) -> str:
    return manifest.ABSENT if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
