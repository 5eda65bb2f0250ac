"""How long a move stuns a worker: by the server, or by VMware's table for framebuffer and memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.moves.checks.stun_estimate import WORST, Vgpu, estimate

REPORTED = ({"megabits": 1000, "seconds": 200}, {"megabits": 25000, "seconds": 9})


@pytest.mark.parametrize(
    ("megabits", "vgpus", "seconds", "megabits_shown"),
    [(None, 1, 200, 1000), (25000, 1, 9, 25000), (100000, 2, 18, 25000)],
)
def test_the_servers_own_estimate_comes_first(
    megabits: int | None, vgpus: int, seconds: float, megabits_shown: int
) -> None:
    stun = estimate([Vgpu(16, REPORTED)] * vgpus, 64, megabits=megabits)
    assert (stun.seconds, stun.at_least) == (seconds, False)
    assert stun.source == f"the server's estimate at {megabits_shown} Mb/s"


@pytest.mark.parametrize(
    ("gigabytes", "memory", "megabits", "seconds"),
    [
        (16, 4, None, 47),
        (16, 16, None, 50),
        (16, 17, None, 54),
        (12, 32, None, 54),
        (16, 16, 1000, 500),
        (16, 16, 100000, 50),
        (1, 1, None, 5),
    ],
)
def test_estimates_from_memory_and_bandwidth_by_table(
    gigabytes: int, memory: float, megabits: int | None, seconds: float
) -> None:
    stun = estimate([Vgpu(gigabytes)], memory, megabits=megabits)
    assert stun.seconds == pytest.approx(seconds)
    assert not stun.at_least
    assert f"{megabits or 10000} Mb/s" in stun.source


def test_ignores_an_estimate_for_more_bandwidth_than_available() -> None:
    assert estimate([Vgpu(16, REPORTED)], 4, megabits=100).seconds == 4700


def test_several_vgpus_are_copied_one_after_the_other() -> None:
    assert estimate([Vgpu(16), Vgpu(16)], 16).seconds == 95
    assert estimate([Vgpu(16, REPORTED), Vgpu(16)], 16).seconds == 95, (
        "an incomplete answer of the server does not count"
    )


def test_beyond_the_table_the_estimate_is_a_minimum() -> None:
    stun = estimate([Vgpu(16)], 256)
    assert (stun.seconds, stun.at_least) == (54, True)


@pytest.mark.parametrize("gigabytes", [48, 0])
def test_guesses_nothing_beyond_the_table(gigabytes: int) -> None:
    assert estimate([Vgpu(gigabytes)], 16).seconds is None


@given(st.sampled_from(sorted(WORST)), st.floats(1, 32), st.floats(1, 32))
def test_more_memory_never_stuns_less(gigabytes: int, memory: float, more: float) -> None:
    smaller, greater = (estimate([Vgpu(gigabytes)], one).seconds or 0 for one in sorted((memory, more)))
    assert smaller <= greater
