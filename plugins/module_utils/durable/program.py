"""Durable programs: straight-line Python whose effects survive the death of the controller that runs it; pure.

A program is a function that reads from top to bottom and touches the world through its ``Program`` only:

    once(key, effect)          does what must not happen twice; a later controller gets the value that was written.
                               An effect may contain effects, which a later controller skips with it
    ensure(effect)             does, or does again, what must be true now; nothing is written
    held(name, take, release)  a ``with`` block for what is taken and released; a later controller takes it again
    attempt(name)              a ``with`` block that its first CollectionError ends, for this and each later controller
    wait(condition, seconds)   asks until the condition holds or the time is over, and returns the last answer
    say(text), now()           the screen and the clock

    def swap(p: Program, site: Site) -> str:
        with p.held("the lock", site.lock, site.unlock):
            here = p.once("here", site.where)                  # a reading that decides is written down
            p.once(("move", here), lambda: site.move(here))    # the effect itself asks whether it happened already
            p.ensure(site.verify)                              # must be true now, so it is read again
            p.say("The swap is complete.")
        return "moved"

The contract:

1. A decision rests on arguments and on values of ``once`` alone, so that each controller takes the same way. Reading
   the server, a file, the clock or a random number is an effect. A value that ages is read again with ``ensure`` in
   the effect that needs it.
2. Values are JSON. A key stands for one effect in a run; keys in loops carry the item.
3. An effect that fails raises a ``CollectionError`` and writes nothing. An effect that a death can interrupt asks, when
   it is done again, whether it happened; the program does not ask.
4. ``held`` releases in order, after success, failure and interruption, also one of the taking. Only a controller that
   is gone releases nothing: the next one takes it again and releases it. If a release fails, ``left`` has its name and
   the reason, and the run stays open.
5. ``say`` shows the lines behind the last written value: those before it were shown by the controller that wrote it. A
   controller that dies after a line and before its next value leaves the line to be shown again.
6. The error that ends an ``attempt`` is written. This controller, if an earlier one came further, and later ones take
   all written values of the block, skip each ``ensure`` and ``wait`` between them (they return None), start and take
   nothing else in it, and release its held things: a part that failed is not tried again. So is a thing whose taking
   failed, which may have happened in part. An effect that a program goes on without is written with ``missed``.
7. No effect starts after the controller's death: a program whose parent process has ended raises ``ControllerGone``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Tuple, TypeVar, Union, cast

from ..errors import CollectionError, WholeError

# The keys of the first entry of a journal, which has the settings of the program, and of the last one, its outcome.
START, END = "start", "end"
# The place of the end of an attempt in which no earlier controller failed.
NOT_OVER = -1
Key = Union[str, Tuple[Any, ...]]
T = TypeVar("T")


class ControllerGone(BaseException):
    """The controller ended: this process starts no further effect, and the next controller continues."""


class Attempt:
    """The outcome of a block: the error that ended it, as a sentence; empty if none did."""

    failure = ""


class AttemptOver(Exception):
    """An earlier controller stopped at this point of the attempt."""


class EndRequested(WholeError):
    """The user ends the attempt that an earlier controller left, instead of continuing it."""


class World(Protocol):
    """The clock and the screen of a program, and whether its controller still runs."""

    def now(self) -> float:
        """Return the time in seconds."""

    def pause(self) -> None:
        """Pause between two checks of a condition."""

    def show(self, text: str) -> None:
        """Show a line."""

    def must_be_attended(self) -> None:
        """Raise ControllerGone if the controller has ended."""


class Journal(Protocol):
    """The values that earlier controllers and this one wrote, by key."""

    values: dict[str, Any]

    def write(self, key: str, value: object) -> Any:
        """Write a value durably, and return it as a later controller reads it."""


class MemoryJournal:
    """A journal of one controller, for programs whose state is in the world, where another controller reads it."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def write(self, key: str, value: object) -> Any:
        self.values[key] = value
        return value


class Program:
    """The interface between a program and the world; ``left`` has the failed releases, with their reasons."""

    def __init__(self, journal: Journal, world: World, ending: str = "") -> None:
        self._journal, self._world = journal, world
        # The reason with which this controller ends the attempt that earlier ones left, instead of continuing it.
        self._ending = ending
        self._used: set[str] = set()
        # Where each entry of earlier controllers stands, and how far this controller has come among them.
        self._places = {name: place for place, name in enumerate(journal.values)}
        self._place = self._places.get(START, -1)
        # The key of the attempt at hand, and where it ended if an earlier controller failed in it.
        self._attempt, self._end = "", NOT_OVER
        self.left: dict[str, str] = {}

    @property
    def is_replaying(self) -> bool:
        """Return whether an earlier controller came further than this one so far, or failed in the attempt at hand."""
        return self._is_over or self._place < len(self._places) - 1

    @property
    def _is_over(self) -> bool:
        return self._end != NOT_OVER

    def once(self, key: Key, effect: Callable[[], object]) -> Any:
        """Return the written value, or do the effect and write its value; an effect that fails writes nothing."""
        name = self._name(key)
        self._pass(name)
        if name in self._journal.values:
            return self._journal.values[name]
        if self._is_over and _missed(name) in self._journal.values:
            raise WholeError(self._journal.values[_missed(name)])
        self._must_go_on()
        return self._journal.write(name, effect())

    def missed(self, key: Key, failure: str) -> None:
        """Write the error of an effect of an attempt that goes on without it, as does a later controller."""
        if self._attempt and not self._is_over:
            self._journal.write(_missed(_text_of(key)), failure)

    def written(self, key: Key) -> Any:
        """Return the value that a controller wrote for an effect which not every controller does; None without one."""
        return self._journal.values.get(_text_of(key))

    def ensure(self, effect: Callable[[], T]) -> T:
        """Do an idempotent effect, which each controller does again, and return its value."""
        if self._place < self._end - 1:
            self._world.must_be_attended()
            return cast(T, None)
        self._must_go_on()
        return self._again(effect)

    @contextmanager
    def held(self, name: str, take: Callable[[], object], release: Callable[[], object]) -> Iterator[None]:
        """Take now, and release after the block in all cases; after the release, a later controller skips the block."""
        released = self._name(("released", name))
        if released in self._journal.values:
            yield
            self._pass(released)
            return
        is_taken = bool(self._attempt)  # in part, if an attempt ends here
        try:
            if not self._is_over:
                # Also to end an attempt: an earlier controller may have taken it and died before its next entry.
                self._world.must_be_attended()
                self._again(take)
            is_taken = True
            yield
        except (CollectionError, AttemptOver) as error:
            if not is_taken:
                raise
            self._end_attempt(str(error))
            self._let_go(name, release, is_over=bool(self._attempt))
            raise
        except ControllerGone:
            raise
        except BaseException as error:
            # Ctrl-C in the middle of the taking leaves it taken in part.
            if is_taken or not isinstance(error, Exception):
                self._let_go(name, release, is_over=False)
            raise
        self._let_go(name, release)

    @contextmanager
    def attempt(self, name: str) -> Iterator[Attempt]:
        """Yield the outcome of a block; its first error ends the block, and the program continues after it."""
        key = self._name(("failure of", name))
        outer, self._attempt = (self._attempt, self._end), key
        self._end = self._places.get(key, self._end)
        outcome = Attempt()
        try:
            yield outcome
        except CollectionError as error:
            self._end_attempt(str(error))
        except AttemptOver:
            if outer[1] != NOT_OVER:
                raise
        finally:
            self._pass(key)
            self._attempt, self._end = outer
            outcome.failure = self._journal.values.get(key, "")

    @contextmanager
    def whole(self, is_started: bool) -> Iterator[None]:
        """Carry out a block that an earlier controller began before the user ends the attempt."""
        ending, self._ending = self._ending, "" if is_started else self._ending
        yield
        self._ending = ending

    def wait(self, condition: Callable[[], T], seconds: float) -> T:
        """Return the first true answer, or the last one when the time is over."""
        until = self._world.now() + seconds
        while True:
            answer = self.ensure(condition)
            if answer or self._is_over or self._world.now() >= until:
                return answer
            self._world.pause()

    def say(self, text: str) -> None:
        """Show a line that no earlier controller has shown."""
        if text and not self.is_replaying:
            self._world.show(text)

    def now(self) -> float:
        """Return the time; put a decision that rests on it into ``once``."""
        return self._world.now()

    def _must_go_on(self) -> None:
        """Raise if the controller has ended, or if an earlier controller stopped at this point of the attempt."""
        self._world.must_be_attended()
        if self._is_over:
            raise AttemptOver
        if self._ending and self._attempt and not self.is_replaying:
            reason, self._ending = self._ending, ""
            raise EndRequested(reason)

    def _again(self, effect: Callable[[], T]) -> T:
        """Do an effect again; if it fails before what earlier controllers have written, the attempt ends after that."""
        try:
            return effect()
        except CollectionError as error:
            if not self._attempt or not self.is_replaying or self._is_over:
                raise
            self._end_attempt(str(error))
            self._world.show(str(error))
            self._end = len(self._places)
            return cast(T, None)

    def _end_attempt(self, failure: str) -> None:
        """Write the error that ends the attempt before the releases, so that no later controller tries it again."""
        if self._attempt and not self._is_over and self._attempt not in self._journal.values:
            self._journal.write(self._attempt, failure)
            self.say(failure)

    def _let_go(self, name: str, release: Callable[[], object], is_over: bool = True) -> None:
        """Release, and record the end of the block; a failure must not hide the error that ended the block."""
        try:
            release()
        except CollectionError as error:
            self.left[name] = str(error)
            self._world.show(str(error))
        # If a release inside the block failed, the next controller needs the enclosing one again, such as a lock.
        if is_over and not self.left:
            self._journal.write(f"released {name}", True)

    def _name(self, key: Key) -> str:
        """Return the text of a key; a key that names two effects in one run is a fault of the program."""
        name = _text_of(key)
        if name in self._used:
            raise RuntimeError(f"{name} names two effects")
        self._used.add(name)
        return name

    def _pass(self, name: str) -> None:
        """Pass the entries of an effect, or the end of a block, among those of earlier controllers."""
        self._place = max(self._place, *(self._places.get(one, -1) for one in (name, _missed(name))))


def _missed(name: str) -> str:
    return f"missed {name}"


def _text_of(key: Key) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else key
