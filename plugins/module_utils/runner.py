"""Read, plan, one gate, apply, read back: the only reader of check mode and the only place where a module ends."""

from __future__ import annotations

import contextlib
import errno
import math
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Dict, Mapping, Protocol, TypeVar, Union

from .core import masked
from .errors import CollectionError, Failed, NotConnected, Refused, StillDiffers, summary
from .plan import Change, Plan, State, diff

# The result of a module, and its arguments.
Result = Dict[str, Any]
Params = Mapping[str, Any]
PARALLEL = 16
# The keys of a subject's report that become keys of the result when there is only one subject.
REPORT_OF_ONE = ("changed", "needs", "why", "unmet", "state")
# The same words for every module: Ansible shows a warning once in a run.
UNCHECKED = (
    "validate_certs is false: an impostor of vCenter receives the password; name vCenter's authority in "
    "ca_path, or pin its certificate with tls_fingerprint"
)
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Gate(Protocol):
    check_mode: bool


class Module(Gate, Protocol):
    """The part of AnsibleModule that the runner uses."""

    params: dict[str, Any]

    def warn(self, warning: str, /) -> None: ...

    def exit_json(self, **result: object) -> None: ...

    def fail_json(self, msg: str, **result: object) -> None: ...


class OfProgram:
    """The gate of a program, which is not started in check mode."""

    check_mode = False


class OfPlan:
    """The gate of a module that plans before its first write what depends on that write."""

    check_mode = True


class Subject(Protocol):
    """One thing that can be configured on one object."""

    @property
    def name(self) -> str: ...

    @property
    def target(self) -> str: ...

    def read(self) -> State: ...

    def apply(self, plan: Plan, /) -> None: ...


class PlanningSubject(Subject, Protocol):
    """A subject that makes its own plan."""

    def plan(self, state: State, /) -> Plan: ...


@dataclass(frozen=True)
class Work:
    """Subjects to converge, and how to fetch fresh data for several in one go.

    Without ``make_plan`` each subject has a ``plan`` method.
    """

    subjects: Sequence[Subject]
    refresh: Callable[[Sequence[Subject]], None]
    make_plan: Callable[[State], Plan] | None = None
    parallel: int = PARALLEL
    # Selects the subjects to change first, because the others need the resources that these free.
    first: Callable[[Any], bool] = lambda _subject: False

    def plan(self, subject: Any) -> Plan:
        """Read one subject and plan it; a refusal names the subject's object."""
        state = subject.read()
        try:
            return self.make_plan(state) if self.make_plan else subject.plan(state)
        except Refused as error:
            raise error.about(subject.target) from error


T = TypeVar("T")
Item = TypeVar("Item")
# A plan, or the error that took its place.
Planned = Union[Plan, CollectionError]


def converge(module: Gate, work: Work) -> Result:
    """Bring every subject to its plan; return the arguments of exit_json or, if ``failed`` is set, of fail_json."""
    work.refresh(work.subjects)
    plans = _each(work.subjects, work.plan, work.parallel)
    if any(isinstance(plan, Refused) for plan in plans):
        return _refused(work.subjects, plans)
    if module.check_mode:
        return _result([_planned(*pair) for pair in zip(work.subjects, plans)])
    blocked = [_unmet(*pair) for pair in zip(work.subjects, plans)]
    if any(blocked):
        return _refused(work.subjects, blocked)
    due = {index: plan for index, plan in enumerate(plans) if isinstance(plan, Plan) and plan.due}
    applied = _apply(work, due)
    return _result([_done(s, plan, applied.get(i, plan)) for i, (s, plan) in enumerate(zip(work.subjects, plans))])


def only_plans(gate: Gate) -> bool:
    """Return whether this run makes no change, so that a reading must not start a task of the server either."""
    return gate.check_mode


def converge_one(module: Gate, subject: PlanningSubject) -> Result:
    """Bring one subject, which reads its own state, to its plan; the result has no list of hosts."""
    result = converge(module, Work(subjects=[subject], refresh=lambda _subjects: None))
    (report,) = result.pop("hosts")
    return {**result, **{key: report[key] for key in REPORT_OF_ONE if key in report}}


def _unmet(subject: Subject, plan: Planned) -> Refused | None:
    """Return why a plan cannot be applied now."""
    if isinstance(plan, CollectionError) or not plan.due or not plan.unmet:
        return None
    return Refused(subject.target, f"change {subject.name}", "; ".join(plan.unmet))


def _apply(work: Work, due: Mapping[int, Plan]) -> dict[int, Planned]:
    """Apply the due plans, read their subjects again, and return the new plan or the error of each, by index."""
    outcome: dict[int, Planned] = {}
    first = [index for index in due if work.first(work.subjects[index])]
    for group in (first, [index for index in due if index not in first]):
        written = _each(group, lambda index: work.subjects[index].apply(due[index]), work.parallel)
        outcome.update({index: error for index, error in zip(group, written) if error})
    good = [index for index in due if index not in outcome]
    try:
        work.refresh([work.subjects[index] for index in good])
    except CollectionError as error:
        return {**outcome, **dict.fromkeys(good, error)}
    outcome.update(zip(good, _each(good, lambda index: _read_back(work, work.subjects[index]), work.parallel)))
    return outcome


def _read_back(work: Work, subject: Subject) -> Plan:
    plan = work.plan(subject)
    if plan.due:
        left = ", ".join(f"{change.key} is {change.before!r}, not {change.after!r}" for change in plan.due)
        raise StillDiffers(
            subject.target,
            f"change {subject.name}",
            f"the server accepted the change, yet {left}",
            "look at the host's log (hostd.log) and run again",
        )
    return plan


def _planned(subject: Subject, plan: Planned) -> Result:
    """Return the report of one subject in check mode."""
    if isinstance(plan, CollectionError):
        return _failure(subject, plan)
    return _report(subject, plan, plan.after, plan.changes)


def _done(subject: Subject, plan: Planned, final: Planned) -> Result:
    """Return the report of one subject after the gate; ``final`` is its new plan, or the error with which it ended."""
    if isinstance(plan, CollectionError):
        return _failure(subject, plan)
    if isinstance(final, CollectionError):
        return {**_report(subject, plan, plan.before, plan.due), **_failure(subject, final), "changed": True}
    report = _report(subject, final, final.before, plan.due)
    return {**report, "warnings": list(dict.fromkeys((*plan.warnings, *final.warnings)))}


def _failure(subject: Subject, error: CollectionError) -> Result:
    return {"host": subject.target, "changed": False, "failed": True, "msg": str(error), "error": error}


def _report(subject: Subject, left: Plan, state: State, changes: Sequence[Change]) -> Result:
    """Return the state, the changes that are or would be made, and the needs that the plan ``left`` still has."""
    return {
        "host": subject.target,
        "changed": bool(changes),
        "needs": sorted(left.needs),
        "reboots": left.reboots,
        "why": list(left.why),
        "unmet": list(left.unmet),
        "warnings": list(left.warnings),
        "state": dict(state),
        "diff": diff(f"{subject.target}: {subject.name}", changes) if changes else None,
    }


def _result(reports: list[Result]) -> Result:
    errors = [report.pop("error") for report in reports if "error" in report]
    diffs = [report.pop("diff", None) for report in reports]
    result: dict[str, Any] = {
        "changed": any(report["changed"] for report in reports),
        "needs": sorted({need for report in reports for need in report.get("needs", [])}),
        "hosts": reports,
        "diff": [one for one in diffs if one],
        "warnings": _warnings(reports),
    }
    if errors:
        result.update(failed=True, msg=summary(errors))
    return result


def _warnings(reports: Sequence[Result]) -> list[str]:
    """Return each warning once, with all the hosts that it is about."""
    hosts: dict[str, list[str]] = {}
    for report in reports:
        for text in report.get("warnings", []):
            hosts.setdefault(text, []).append(report["host"])
    return [f"{', '.join(names)}: {text}" for text, names in hosts.items()]


def _refused(subjects: Sequence[Subject], outcomes: Sequence[Planned | None]) -> Result:
    """Return the result of a run that wrote nothing, because at least one request is impossible."""
    reports = [
        _failure(subject, outcome)
        if isinstance(outcome, CollectionError)
        else {"host": subject.target, "changed": False}
        for subject, outcome in zip(subjects, outcomes)
    ]
    return {**_result(reports), "changed": False}


def _each(items: Sequence[Item], action: Callable[[Item], T], parallel: int) -> list[T | CollectionError]:
    """Return the action's value, or its error, for every item."""
    if len(items) <= 1 or parallel <= 1:
        return [_attempt(partial(action, item)) for item in items]
    with ThreadPoolExecutor(max_workers=min(parallel, len(items))) as pool:
        return list(pool.map(lambda item: _attempt(lambda: action(item)), items))


def _attempt(action: Callable[[], T]) -> T | CollectionError:
    try:
        return action()
    except CollectionError as error:
        return error


def trusts_anybody(params: Params) -> bool:
    """Return whether these connection options disable certificate checks."""
    return params.get("validate_certs") is False and not params.get("tls_fingerprint")


def _reject_masked(params: Params) -> None:
    """Reject options with values from earlier tasks in which Ansible masked a part."""
    for option, value in params.items():
        if any(masked.masked_names(value)):
            reason = f"the option {option} contains a masked name: it contains a secret, such as the password"
            raise Refused("Ansible", "read the options of the task", reason, masked.REMEDY)


def _reject_unreal(params: Params) -> None:
    """Reject NaN and infinite numbers, which slip through comparisons with a limit."""
    for option, value in params.items():
        if isinstance(value, float) and not math.isfinite(value):
            reason = f"the option {option} is {value}, which is not a finite number"
            raise Refused("Ansible", "read the options of the task", reason, f"give {option} a number")


def _checked(params: Params, body: Callable[[], Result]) -> Result:
    _reject_masked(params)
    _reject_unreal(params)
    return body()


def outcome(body: Callable[[], Result]) -> Result:
    """Return the result of a body; an expected error becomes a result with ``failed`` and one sentence."""
    try:
        with full_disk_expected():
            return body()
    except CollectionError as error:
        lost = {"not_connected": True} if isinstance(error, NotConnected) else {}
        return {"failed": True, "msg": str(error), **lost}


@contextlib.contextmanager
def full_disk_expected() -> Iterator[None]:
    """Let a full disk be an expected error, in one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        words = (f"write {error.filename or 'a file'}", str(error.strerror), "free some space and run this again")
        raise Failed(socket.gethostname(), *words) from error


def run(module: Module, body: Callable[[], Result]) -> None:
    """Run a module's body and end the module: with its result, or with one sentence."""
    if trusts_anybody(module.params):
        module.warn(UNCHECKED)
    result = outcome(lambda: _checked(module.params, body))
    for warning in result.pop("warnings", []):
        module.warn(warning)
    if result.pop("failed", False):
        module.fail_json(**result)
        return
    module.exit_json(**result)
