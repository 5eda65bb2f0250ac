# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Read, plan, one gate, apply, read back: the only reader of check mode and the only place where a module ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from .errors import CollectionError, Failed, Refused, StillDiffers, Unreachable
from .plan import Plan

PARALLEL = 16


class Module(Protocol):
    """What the runner uses of AnsibleModule."""

    check_mode: bool

    def exit_json(self, **result: Any) -> None: ...

    def fail_json(self, msg: str, **result: Any) -> None: ...


class Subject(Protocol):
    """One thing that can be configured on one object."""

    name: str
    target: str

    def read(self) -> dict[str, Any]: ...

    def apply(self, plan: Plan) -> None: ...


@dataclass(frozen=True)
class Work:
    """Subjects to converge, how to plan one from its state, and how to fetch fresh data for several in one go."""

    subjects: Sequence[Subject]
    make_plan: Callable[[Mapping[str, Any]], Plan]
    refresh: Callable[[Sequence[Subject]], None]
    parallel: int = PARALLEL


Outcome = Any  # a value, or the CollectionError that took its place


def converge(module: Module, work: Work) -> dict[str, Any]:
    """Bring every subject to its plan; the keyword arguments of exit_json or, with ``failed``, of fail_json."""
    work.refresh(work.subjects)
    states = _each(work.subjects, lambda subject: subject.read(), work.parallel)
    plans = [_attempt(lambda state=state: work.make_plan(state)) if not _bad(state) else state for state in states]
    refusals = [plan for plan in plans if isinstance(plan, Refused)]
    if refusals:
        return _refused(work.subjects, refusals)
    due = [index for index, plan in enumerate(plans) if not _bad(plan) and plan.due]
    if due and not module.check_mode:
        unmet = [Refused(work.subjects[i].target, f"change {work.subjects[i].name}", r) for i in due for r in plans[i].unmet]
        if unmet:
            return _refused(work.subjects, unmet)
        applied = _apply(work, plans, due)
    else:
        applied = {}
    reports = [_report(subject, plan, applied.get(index)) for index, (subject, plan) in enumerate(zip(work.subjects, plans))]
    return _result(reports)


def _apply(work: Work, plans: Sequence[Any], due: Sequence[int]) -> dict[int, Outcome]:
    """Apply the due plans, then read all of them again: the new state, or the error, by index."""
    written = _each(due, lambda index: work.subjects[index].apply(plans[index]), work.parallel)
    outcome = {index: error for index, error in zip(due, written) if _bad(error)}
    good = [index for index in due if index not in outcome]
    try:
        work.refresh([work.subjects[index] for index in good])
    except CollectionError as error:
        return {**outcome, **dict.fromkeys(good, error)}
    outcome.update(zip(good, _each(good, lambda index: _read_back(work, work.subjects[index]), work.parallel)))
    return outcome


def _read_back(work: Work, subject: Subject) -> Plan:
    plan = work.make_plan(subject.read())
    if plan.due:
        left = ", ".join(f"{change.key} is {change.before!r}, not {change.after!r}" for change in plan.due)
        raise StillDiffers(
            subject.target,
            f"change {subject.name}",
            f"the server accepted the change, yet {left}",
            "look at the host's log (hostd.log) and run again",
        )
    return plan


def _report(subject: Subject, plan: Any, applied: Outcome) -> dict[str, Any]:
    """The result of one subject; ``applied`` is None where nothing was written."""
    report: dict[str, Any] = {"host": subject.target, "changed": False, "needs": [], "why": [], "warnings": [], "diff": None}
    if _bad(plan):
        return {**report, "failed": True, "msg": str(plan)}
    final = applied if isinstance(applied, Plan) else plan
    report.update(
        changed=bool(plan.changes) if applied is None else bool(plan.due),
        needs=sorted(final.needs),
        why=list(final.why),
        warnings=list(final.warnings),
        unmet=list(plan.unmet) if applied is None else [],
        state=dict(final.before if isinstance(applied, Plan) else plan.after),
        diff=plan.diff(f"{subject.target}: {subject.name}") if plan.changes else None,
    )
    if _bad(applied):
        report.update(failed=True, msg=str(applied))
    return report


def _result(reports: list[dict[str, Any]]) -> dict[str, Any]:
    failures = [report["msg"] for report in reports if report.get("failed")]
    diffs = [report.pop("diff") for report in reports]
    result: dict[str, Any] = {
        "changed": any(report["changed"] for report in reports),
        "needs": sorted({need for report in reports for need in report["needs"]}),
        "hosts": reports,
        "diff": [diff for diff in diffs if diff],
        "warnings": [f"{report['host']}: {text}" for report in reports for text in report["warnings"]],
    }
    if failures:
        result.update(failed=True, msg=" | ".join(dict.fromkeys(failures)))
    return result


def _refused(subjects: Sequence[Subject], errors: Sequence[CollectionError]) -> dict[str, Any]:
    """Nothing was written anywhere, because at least one wish is impossible."""
    said = {error.target: str(error) for error in errors}
    reports = [{"host": s.target, "changed": False, **({"failed": True, "msg": said[s.target]} if s.target in said else {})} for s in subjects]
    return {"failed": True, "changed": False, "msg": " | ".join(dict.fromkeys(map(str, errors))), "hosts": reports}


def _each(items: Sequence[Any], action: Callable[[Any], Any], parallel: int) -> list[Outcome]:
    """The action's value, or its error, for every item."""
    if len(items) <= 1 or parallel <= 1:
        return [_attempt(lambda item=item: action(item)) for item in items]
    with ThreadPoolExecutor(max_workers=min(parallel, len(items))) as pool:
        return list(pool.map(lambda item: _attempt(lambda: action(item)), items))


def _attempt(action: Callable[[], Any]) -> Outcome:
    try:
        return action()
    except CollectionError as error:
        return error


def _bad(outcome: Outcome) -> bool:
    return isinstance(outcome, CollectionError)


def run(module: Any, body: Callable[[], dict[str, Any]]) -> None:
    """Run a module's body and end the module: with its result, or with one sentence."""
    try:
        result = body()
    except CollectionError as error:
        module.fail_json(msg=str(error))
        return
    for warning in result.pop("warnings", []):
        module.warn(warning)
    if result.pop("failed", False):
        module.fail_json(**result)
        return
    module.exit_json(**result)
