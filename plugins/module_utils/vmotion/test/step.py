# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The contract of a step of a vMotion test: when it is due, its call, its journal entries and its messages; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Dict, List, Tuple, Union

from .trial_state import Entry, TrialState

HERE, LAUNCHER, BACKGROUND = "here", "launcher", "background"

Result = Mapping[str, Any]
Entries = List[Tuple[str, Dict[str, Any]]]


class Phase(Enum):
    """The parts of a test. The first phase that has a due step determines the next step."""

    LOCK = "lock"
    FAILURE = "failure"
    OPENING = "opening"
    MOVE = "move"
    JUDGEMENT = "judgement"
    # The change of an empty host in a maintenance window.
    HOST = "host"
    CANARY = "canary"
    ROUND = "round"
    CLOSING = "closing"
    # Only this phase and LOCK have steps after the entry "over".
    ENDING = "ending"


@dataclass(frozen=True)
class Due:
    """The condition under which a step is due in a phase, and the steps of that phase that go before it."""

    phase: Phase
    when: Callable[[TrialState], bool]
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModuleCall:
    """A module with its options, and where it runs.

    If ``may_fail``, a failure is an observation. With ``until``, the call is repeated until a result satisfies it, for
    ``seconds`` at most.
    """

    module: str
    options: dict[str, Any]
    where: str = HERE
    may_fail: bool = False
    until: Callable[[Result], bool] | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class StopWatch:
    """The end of the module that a step started in the background."""


@dataclass(frozen=True)
class WriteFiles:
    """JSON files in the folder of the test, by name without extension."""

    contents: dict[str, Any]


@dataclass(frozen=True)
class RunCommand:
    """A command of the user, never through a shell: its words, the text of its input, and the seconds it may take."""

    words: tuple[str, ...]
    text: str
    seconds: float


@dataclass(frozen=True)
class RollRecords:
    """The watch begins a new file of records; the present one becomes the earlier one, which is removed."""


Action = Union[ModuleCall, StopWatch, WriteFiles, RunCommand, RollRecords]


@dataclass(frozen=True)
class Controller:
    """The data of the controller that a step may use: the folder of the test, the time, driver table and versions."""

    folder: str
    now: float = 0.0
    drivers: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def records(self) -> str:
        """Return the file of the step records."""
        return f"{self.folder}/records.jsonl"

    @property
    def request(self) -> str:
        """Return the file whose appearance ends an observation."""
        return f"{self.folder}/end"


def no_effect(_state: TrialState, _entry: Entry) -> None:
    """Leave the state as it is: the entry only records that its step was done."""


def no_message(_entry: Entry, _state: TrialState) -> list[str]:
    """Return no line."""
    return []


@dataclass(frozen=True)
class EntryKind:
    """A kind of journal entry: its effect on the state of the test, and the lines to show when it is written.

    A milestone starts ``TrialState.lately`` again, which lists the kinds since then.
    """

    name: str
    effect: Callable[[TrialState, Entry], None] = no_effect
    messages: Callable[[Entry, TrialState], list[str]] = no_message
    is_milestone: bool = False


@dataclass(frozen=True)
class Step:
    """One step of a test. ``tests/unit/plugins/module_utils/vmotion/test/test_step_registry.py`` checks each of them.

    - ``title``: the step in words, shown when it starts; empty for a step that shows nothing.
    - ``due``: at most one condition for each phase.
    - ``action``: the call of a module, or None for a step without one.
    - ``entries``: the entries that follow from a result; without it, one entry with the name of the step.
    - ``kinds``: the kinds of entries of which this step's file defines the effect; one of them has the step's name.
    - ``result_lines``: lines of a result that are shown but not written to the journal.
    - ``gives_back``: if the step fails, the test stays open until a controller has repeated it.
    - ``is_repeated``: a controller that continues the test does the step again.
    - ``continued``: the effect on the state when another controller continues the test.
    """

    name: str
    title: str | Callable[[TrialState], str]
    due: tuple[Due, ...]
    action: Callable[[TrialState, Controller], Action] | None = None
    entries: Callable[[Result, TrialState, Controller], Entries] | None = None
    kinds: tuple[EntryKind, ...] = ()
    result_lines: Callable[[Result, TrialState], list[str]] = no_message
    gives_back: bool = False
    is_repeated: bool = False
    continued: Callable[[TrialState], None] = lambda _state: None

    def title_of(self, state: TrialState) -> str:
        """Return the step in words."""
        return self.title if isinstance(self.title, str) else self.title(state)

    def entries_of(self, result: Result, state: TrialState, controller: Controller, may_fail: bool = False) -> Entries:
        """Return the entries that follow from a result."""
        if result.get("failed") and not may_fail:
            return failed(self.name, str(result.get("msg") or "it failed without a message"))
        return self.entries(result, state, controller) if self.entries else [(self.name, {})]

    def due_in(self, phase: Phase) -> Due | None:
        """Return the condition of a phase."""
        return next((due for due in self.due if due.phase is phase), None)


def failed(step: str, reason: str) -> Entries:
    """Return the entry of a step that failed."""
    return [("failed", {"step": step, "said": reason})]


def in_order(steps: Iterable[Step], phase: Phase) -> tuple[Step, ...]:
    """Return the steps of a phase, each after those that its ``after`` names, else in the given order."""
    waiting = [step for step in steps if step.due_in(phase)]
    ordered: list[Step] = []
    while waiting:
        left = {step.name for step in waiting}
        ready = next((step for step in waiting if not left & set(_before(step, phase))), None)
        if ready is None:
            raise ValueError(f"no order of the steps of {phase} satisfies 'after' of {', '.join(sorted(left))}")
        waiting.remove(ready)
        ordered.append(ready)
    return tuple(ordered)


def _before(step: Step, phase: Phase) -> tuple[str, ...]:
    due = step.due_in(phase)
    return due.after if due else ()
