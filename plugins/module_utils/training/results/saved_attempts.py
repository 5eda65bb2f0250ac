"""The verdicts on the runs on this machine that resumed other ones, from their manifests and records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ...continuity.restart_facts import Attempt, RestartLimits, RestartVerdict
from ...continuity.restart_steps import read_steps
from ...continuity.restart_verdict import judge
from ...core.json_values import mapping
from ...watch.growing_file import GrowingFile
from . import attempts, saved_manifests
from .manifest import FILE, Manifest


@dataclass(frozen=True)
class JudgedRun:
    """A run with the attempts that it continued, and the verdict on its restarts."""

    name: str
    attempts: tuple[Attempt, ...]
    verdict: RestartVerdict

    def content(self) -> dict[str, Any]:
        """Return the verdict with the curves of the losses, as JSON can have it."""
        found = asdict(self.verdict)
        found["breaches"] = [breach._asdict() for breach in self.verdict.breaches]
        for restart, one in zip(found["restarts"], self.verdict.restarts):
            restart["parts"] = [part._asdict() for part in one.parts]
        names = [attempt.name for attempt in self.attempts]
        return {"name": self.name, "attempts": names, **found, "curves": attempts.curves(self.attempts)}


def resumed_runs(results: Path, names: str, limits: RestartLimits) -> Iterator[JudgedRun]:
    """Yield the runs below a folder that resumed others and that no later one resumed, in the order of their names."""
    manifests = {str(each["name"]): each for each in saved_manifests.read_all(results)[0]}
    for name in attempts.last_attempts(manifests):
        if fnmatchcase(name, names):
            yield judged_run(results, name, limits, manifests)


def followers(results: str, name: str) -> dict[str, str]:
    """Return the runs on this machine that continue a run, and who started each."""
    manifests = saved_manifests.read_all(Path(results))[0]
    return {str(each["name"]): str(each.get("asked_by")) for each in manifests if attempts.previous(each) == name}


def run_by_name(results: Path, name: str) -> JudgedRun:
    """Return a run with its verdict, by the limits that apply without options."""
    manifests: dict[str, Manifest] = {}
    each = name
    while each and each not in manifests and (results / each / FILE).exists():
        manifests[each] = saved_manifests.read(results / each)
        each = attempts.previous(manifests[each])
    return judged_run(results, name, RestartLimits(), manifests)


def judged_run(results: Path, name: str, limits: RestartLimits, manifests: Mapping[str, Manifest]) -> JudgedRun:
    made: list[Attempt] = []
    before: Manifest | None = None
    for each in attempts.chain_of(name, manifests):
        manifest = manifests[each]
        saved = [each for steps in made[-1].ranks.values() for each in steps.saved] if made else []
        ranks, parameters = read_steps(_records(results / each)), _parameters(results / f"{each}.json")
        made.append(attempts.attempt(manifest, before, ranks, saved=saved, parameters=parameters))
        made[-2:-1] = [attempts.with_window(one, made[-1], manifest) for one in made[-2:-1]]
        before = manifest
    return JudgedRun(name, tuple(made), judge(made, limits))


def _parameters(path: Path) -> list[str]:
    """Return the checksums of parameters in the result of a run; none without a result."""
    try:
        found = mapping(json.loads(path.read_bytes())).get("parameters")
    except (OSError, ValueError, RecursionError):
        return []
    return [str(each) for each in found] if isinstance(found, list) else []


def _records(folder: Path) -> Iterator[Mapping[str, object]]:
    """Yield the records of a run: each controller that followed it has read all of them into a separate file."""
    paths = sorted(folder.glob("watch-*/records.jsonl*"))
    for path in (path for path in paths if path.name in ("records.jsonl", "records.jsonl.before")):
        if path.is_file() and not path.is_symlink():
            with GrowingFile(path) as file:
                yield from file.new_records()
