"""Performance counters: the interval that is chosen, and questions that stay within what vCenter answers."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.vsphere.counters import MOST_AT_ONCE, Catalogue, Counter, Interval, choose, series

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY, WEEK = Interval(300, 24, 4), Interval(1800, 168, 1)


@pytest.mark.parametrize(
    ("hours", "history", "chosen", "why"),
    [
        (0.5, (DAY,), (20, 0.5), ""),
        (1, (), (20, 1), ""),
        (24, (DAY, WEEK), (300, 24), ""),
        (25, (DAY, WEEK), (20, 1), "keeps 1800 s samples at statistics level 1, these counters require level 4"),
        (25, (DAY,), (20, 1), "no interval of this vCenter reaches back 25 hours"),
        (2, (Interval(300, 24, 3), Interval(1800, 168, 4)), (1800, 2), ""),
    ],
)
def test_chooses_the_interval_for_a_period(
    hours: float, history: tuple[Interval, ...], chosen: tuple[int, float], why: str
) -> None:
    seconds, covered, result = choose(Catalogue({}, history), Counter(1, 4), hours)
    assert (seconds, covered) == chosen
    assert why in result and bool(why) == bool(result)


class Manager:
    """Answers as many series as an object has instances, each with a sample that was not taken."""

    def __init__(self, instances: dict[str, int]) -> None:
        self.instances, self.requests = instances, list[list[Any]]()

    def QueryPerf(self, queries: list[Any]) -> list[Any]:  # noqa: N802 - the API's name
        self.requests.append(queries)
        return [self._answer(query) for query in queries if self.instances[query.entity._moId]]

    def _answer(self, query: Any) -> Any:
        found = [
            SimpleNamespace(id=SimpleNamespace(counterId=desired.counterId, instance=str(place)), value=[0, -1, 700])
            for desired in query.metricId
            for place in range(self.instances[query.entity._moId])
        ]
        return SimpleNamespace(entity=query.entity, value=found)


def test_sends_few_queries_and_omits_missing_samples() -> None:
    hosts = {vim.HostSystem(f"host-{place}", None): 8 for place in range(10)}
    manager = Manager({ref._moId: 0 if ref._moId == "host-3" else 8 for ref in hosts})
    session: Any = SimpleNamespace(server="vc", content=SimpleNamespace(perfManager=manager))
    counters = {"utilization": Counter(559, 4), "mem.used": Counter(563, 4)}
    found = series(session, hosts, counters, 300, NOW)
    assert [len(some) for some in manager.requests] == [4, 4, 2]
    assert all(8 * 2 * len(some) <= MOST_AT_ONCE for some in manager.requests)
    assert {(one.object_id, one.counter, one.values) for one in found} == {
        (ref._moId, name, (0, 700)) for ref in hosts for name in counters if ref._moId != "host-3"
    }
    (query, *_rest) = manager.requests[0]
    assert (query.intervalId, query.startTime, {one.instance for one in query.metricId}) == (300, NOW, {"*"})


def test_requests_an_oversized_object_separately() -> None:
    hosts = {vim.HostSystem("host-1", None): 100, vim.HostSystem("host-2", None): 1}
    manager = Manager({"host-1": 100, "host-2": 1})
    session: Any = SimpleNamespace(server="vc", content=SimpleNamespace(perfManager=manager))
    assert len(series(session, hosts, {"utilization": Counter(559, 4)}, 300, NOW)) == 101
    assert [len(some) for some in manager.requests] == [1, 1]
    assert series(session, {}, {"utilization": Counter(559, 4)}, 300, NOW) == []
