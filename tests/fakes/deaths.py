"""Controllers that die before and after each effect and each entry of the journal: once, or at random points."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from plugins.module_utils.durable.program import ControllerGone, MemoryJournal, Program

MOST_CONTROLLERS = 20


class Killed(ControllerGone):
    """The controller died here: nothing that its program does afterwards reaches the world."""


class MortalWorld:
    """A clock, a screen, and a controller that dies at the points with the given numbers.

    A world of a test inherits from it and does each of its effects through ``effect``. The numbers count all points of
    a history, across controllers.
    """

    def __init__(self, deaths: Iterable[int] = ()) -> None:
        self.deaths, self.points, self.is_dead = set(deaths), 0, False
        self.clock, self.lines = 1000.0, list[str]()
        self.log = list[str]()

    def effect(self, name: str, act: Callable[[], Any]) -> Any:
        """Do an effect; the controller may die before it, or after it and before the program knows."""
        self.must_be_attended()
        self.point()
        self.log.append(name)
        value = act()
        self.point()
        return value

    def next_controller(self) -> None:
        """Continue with another controller."""
        self.is_dead = False

    def point(self) -> None:
        """Count a point at which a controller can die."""
        number, self.points = self.points, self.points + 1
        if number in self.deaths:
            self.is_dead = True
            raise Killed

    def now(self) -> float:
        self.clock += 1.0
        return self.clock

    def pause(self) -> None:
        self.clock += 2.0

    def show(self, text: str) -> None:
        if not self.is_dead:
            self.lines.append(text)

    def must_be_attended(self) -> None:
        if self.is_dead:
            raise Killed


class MortalJournal(MemoryJournal):
    """Values in memory; the controller may die before and after each of them is written."""

    def __init__(self, world: MortalWorld, values: dict[str, Any] | None = None) -> None:
        self._world, self.values = world, values if values is not None else {}

    def write(self, key: str, value: Any) -> Any:
        self._world.must_be_attended()
        self._world.point()
        self.values[key] = json.loads(json.dumps(value))
        self._world.point()
        return self.values[key]


W = TypeVar("W", bound=MortalWorld)


def carry_out(world: MortalWorld, program: Callable[[Program], Any], *, keeps_journal: bool = True) -> Any:
    """Run a program to its end, with as many controllers as it takes, and return its value."""
    values: dict[str, Any] = {}
    for controller in range(MOST_CONTROLLERS):
        if controller:
            world.next_controller()
        values = values if keeps_journal else {}
        try:
            return program(Program(MortalJournal(world, values), world))
        except Killed:
            continue
    raise AssertionError(f"the program never ended: {world.log}")


def histories(make: Callable[[Iterable[int]], W], run: Callable[[W], Any], pairs: int = 0) -> Iterator[tuple[W, Any]]:
    """Yield the world and the value of a run without a death, of one for each death, and of some with two deaths."""
    world = make(())
    yield world, run(world)
    # A controller that continues does some effects again, so that a few more points follow.
    choice = random.Random(0)
    single = [(number,) for number in range(world.points)]
    double = [tuple(choice.sample(range(world.points + 4), 2)) for _pair in range(pairs)]
    for deaths in (*single, *double):
        world = make(deaths)
        yield world, run(world)
