# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Plans for workers that all need one slot: quick for any number of them, and shortest wherever the bound is met.

A step moves free room the other way: from the target to the source. So a plan in which everyone moves once is a set of
walks of free room over all edges "this worker goes from here to there", and such walks exist exactly where every
connected group of edges touches a host with free room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from .problem import Groups, Problem, Reach, Step


def trips(problem: Problem, reached: list[Reach]) -> list[Step]:
    """Everyone goes out and comes back; while a worker is out, those who need its slot make their own trips."""
    inner: dict[int | None, list[Reach]] = {}
    for reach in reached:
        inner.setdefault(reach.after, []).append(reach)
    steps: list[Step] = []
    open_trips = [(reach, False) for reach in reversed(inner.get(None, []))]
    while open_trips:
        (worker, host, _after), is_back = trip = open_trips.pop()
        home = problem.start[worker]
        if is_back:
            steps.append(Step(worker, host, home))
        else:
            steps.append(Step(worker, home, host))
            open_trips.append((trip[0], True))
            open_trips += [(reach, False) for reach in reversed(inner.get(worker, []))]
    return steps


def assignment(problem: Problem) -> list[int | None]:
    """A new host for as many workers as can be, were all to move once: the most that fit together in the end."""
    target: list[int | None] = [None] * len(problem.start)
    guests: list[list[int]] = [[] for _host in problem.room]
    for worker in problem.workers:
        _place(problem, worker, target, guests)
    return target


def _place(problem: Problem, newcomer: int, target: list[int | None], guests: list[list[int]]) -> None:
    """Find a host for one more worker, others giving way along the shortest chain that does it."""
    queue = deque([newcomer])
    taken_by: dict[int, int] = {}
    while queue:
        worker = queue.popleft()
        home = problem.start[worker]
        # Beginning after one's own host makes one long walk where hosts in a row would make many circles of two.
        hosts = sorted(
            problem.targets[worker].difference(taken_by, [home]), key=lambda host: (host - home) % len(problem.room)
        )
        for host in hosts:
            taken_by[host] = worker
            if len(guests[host]) < problem.room[host]:
                _give_way(host, taken_by, target, guests)
                return
        for host in hosts:
            queue.extend(guests[host])


def _give_way(host: int, taken_by: dict[int, int], target: list[int | None], guests: list[list[int]]) -> None:
    next_host: int | None = host
    while next_host is not None:
        worker = taken_by[next_host]
        left = target[worker]
        target[worker] = next_host
        guests[next_host].append(worker)
        if left is not None:
            guests[left].remove(worker)
        next_host = left


def one_move_each(problem: Problem, target: list[int | None]) -> list[Step]:
    """Order the moves to the assigned hosts, circles of full hosts joined or broken; some may stay impossible."""
    goals, circles = _join_circles(problem, dict(_assigned(target)))
    steps = [step for circle in circles for step in _break_circle(problem, circle, goals)]
    in_circles = {worker for circle in circles for worker in circle}
    rest = [worker for worker in goals if worker not in in_circles]
    return steps + [Step(worker, problem.start[worker], goals[worker]) for worker in _walk(problem, rest, goals)]


def _assigned(target: list[int | None]) -> Iterator[tuple[int, int]]:
    for worker, host in enumerate(target):
        if host is not None:
            yield worker, host


def _join_circles(problem: Problem, target: dict[int, int]) -> tuple[dict[int, int], list[list[int]]]:
    """Re-assign until each connected group of moves touches free room; give those too for which that fails."""
    circles = _circles(problem, target)
    while True:
        for circle in circles:
            changed = _joined(problem, circle, target)
            fewer = _circles(problem, changed)
            if len(fewer) < len(circles):
                target, circles = changed, fewer
                break
        else:
            return target, circles


def _circles(problem: Problem, target: dict[int, int]) -> list[list[int]]:
    groups = Groups(len(problem.room))
    for worker, host in target.items():
        groups.join(problem.start[worker], host)
    with_room = {groups.of(host) for host, free in enumerate(problem.free_at_start()) if free > 0}
    circles: dict[int, list[int]] = {}
    for worker, host in target.items():
        group = groups.of(host)
        if group not in with_room:
            circles.setdefault(group, []).append(worker)
    return list(circles.values())


def _joined(problem: Problem, circle: list[int], target: dict[int, int]) -> dict[int, int]:
    """Send one worker of the circle to room that is left, or let it change targets with a worker outside."""
    left = list(problem.room)
    for worker, home in enumerate(problem.start):
        left[target.get(worker, home)] -= 1
    members = set(circle)
    for worker in circle:
        goals = problem.targets[worker] - {problem.start[worker]}
        for host in sorted(goals):
            if left[host] > 0:
                return {**target, worker: host}
        mine = target[worker]
        for other, its in target.items():
            is_exchange = its in goals and mine in problem.targets[other] and mine != problem.start[other]
            if is_exchange and other not in members:
                return {**target, worker: its, other: mine}
    return target


def _break_circle(problem: Problem, circle: list[int], target: dict[int, int]) -> list[Step]:
    """One more step: some worker waits on a host with free room until its own target is free."""
    free = problem.free_at_start()
    for first in circle:
        for host in sorted(problem.targets[first]):
            if free[host] > 0:
                others = _walk(problem, [worker for worker in circle if worker != first], target)
                return [
                    Step(first, problem.start[first], host),
                    *(Step(worker, problem.start[worker], target[worker]) for worker in others),
                    Step(first, host, target[first]),
                ]
    return []


def _walk(problem: Problem, workers: list[int], target: dict[int, int]) -> list[int]:
    """Order moves so that each goes where room was free or has just been left.

    One walk over all moves, from target to source (Hierholzer's way): room that is used up goes to the outside, and
    from there the walk goes on wherever more workers arrive than leave, or a circle has a host with free room.
    """
    outside = len(problem.room)
    onward = _onward(problem, workers, target, outside)
    path: list[tuple[int | None, int]] = [(None, outside)]
    order: list[int] = []
    while path:
        worker, place = path[-1]
        if onward[place]:
            path.append(onward[place].pop())
        else:
            path.pop()
            if worker is not None:
                order.append(worker)
    return order[::-1]


def _onward(
    problem: Problem, workers: list[int], target: dict[int, int], outside: int
) -> list[list[tuple[int | None, int]]]:
    """Where the walk can go from each place and by which worker (None: no move), left as often as reached."""
    onward: list[list[tuple[int | None, int]]] = [[] for _place in range(outside + 1)]
    balance = [0] * outside
    groups = Groups(outside)
    for worker in workers:
        home, goal = problem.start[worker], target[worker]
        onward[goal].append((worker, home))
        balance[goal] += 1
        balance[home] -= 1
        groups.join(home, goal)
    begun = {groups.of(host) for host in range(outside) if balance[host] > 0}
    for host, free in enumerate(problem.free_at_start()):
        if free > 0 and onward[host] and groups.of(host) not in begun:
            begun.add(groups.of(host))
            onward[host].append((None, outside))
            onward[outside].append((None, host))
        onward[outside] += [(None, host)] * balance[host]
        onward[host] += [(None, outside)] * -balance[host]
    return onward


def fill_and_return(problem: Problem) -> list[Step] | None:
    """Where more must leave a host than fit elsewhere: empty the fullest host first, and send others there for room."""
    free = problem.free_at_start()
    waiting: list[list[int]] = [[] for _host in problem.room]
    for worker in problem.workers:
        waiting[problem.start[worker]].append(worker)
    settled: list[list[int]] = [[] for _host in problem.room]
    steps: list[Step] = []
    while any(waiting):
        step = _next_arrival(problem, waiting, waiting, free) or _next_arrival(problem, settled, waiting, free)
        if step is None or len(steps) > 2 * len(problem.start):
            return None
        (waiting if step.worker in waiting[step.source] else settled)[step.source].remove(step.worker)
        settled[step.target].append(step.worker)
        free[step.source] += 1
        free[step.target] -= 1
        steps.append(step)
    return steps


def _next_arrival(problem: Problem, movers: list[list[int]], waiting: list[list[int]], free: list[int]) -> Step | None:
    """A move of one of the movers from where most wait to where most wait: their own host's room is no use to them."""
    hosts = sorted(range(len(free)), key=lambda host: -len(waiting[host]))
    open_hosts = [host for host in hosts if free[host] > 0]
    for source in hosts:
        for worker in movers[source]:
            for target in open_hosts:
                if target != source and target in problem.targets[worker]:
                    return Step(worker, source, target)
    return None
