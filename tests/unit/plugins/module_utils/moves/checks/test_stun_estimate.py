"""How long a move stuns a worker: by the server, or by VMware's tables for version, framebuffer and memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.moves.checks.stun_estimate import WORST, Vgpu, estimate

REPORTED = ({"megabits": 1000, "seconds": 200}, {"megabits": 25000, "seconds": 9})
EIGHT, SEVEN, U3, U1 = (8, 0, 1, 0), (7, 0, 3, 0), (6, 7, 3), (6, 7, 1)


@pytest.mark.parametrize(
    ("megabits", "vgpus", "seconds", "megabits_shown"),
    [
        (None, 1, 200, 1000),
        (25000, 1, 9, 25000),
        (100000, 2, 18, 25000),
    ],
)
def test_the_servers_own_estimate_comes_first(
    megabits: int | None, vgpus: int, seconds: float, megabits_shown: int
) -> None:
    stun = estimate([Vgpu(16, REPORTED)] * vgpus, 64, megabits=megabits, version=EIGHT)
    assert (stun.seconds, stun.at_least) == (seconds, False)
    assert stun.source == f"the server's estimate at {megabits_shown} Mb/s"


@pytest.mark.parametrize(
    ("version", "gigabytes", "memory", "megabits", "seconds"),
    [
        (EIGHT, 16, 4, None, 47),
        (SEVEN, 16, 16, None, 50),
        (SEVEN, 16, 17, None, 54),
        (SEVEN, 12, 32, None, 54),
        (SEVEN, 16, 16, 1000, 500),
        (SEVEN, 16, 16, 100000, 50),
        (SEVEN, 1, 1, None, 5),
        (U3, 16, 32, None, 27.79),
        (U3, 3, 32, None, 7.02),
        (U1, 8, 4, None, 61.3),
        (U1, 12, 4, 5000, 182.4),
    ],
)
def test_estimates_from_version_memory_and_bandwidth_by_table(
    version: tuple[int, ...], gigabytes: int, memory: float, megabits: int | None, seconds: float
) -> None:
    stun = estimate([Vgpu(gigabytes)], memory, megabits=megabits, version=version)
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


@pytest.mark.parametrize(
    ("version", "gigabytes", "memory", "seconds"), [(SEVEN, 16, 256, 54), (U1, 16, 16, 100), (U1, 24, 16, 100)]
)
def test_beyond_the_table_the_estimate_is_a_minimum(
    version: tuple[int, ...], gigabytes: int, memory: float, seconds: float
) -> None:
    stun = estimate([Vgpu(gigabytes)], memory, version=version)
    assert (stun.seconds, stun.at_least) == (seconds, True)


@pytest.mark.parametrize(("version", "gigabytes"), [(SEVEN, 48), (SEVEN, 0), (U3, 48), (U1, 0)])
def test_guesses_nothing_beyond_the_table(version: tuple[int, ...], gigabytes: int) -> None:
    assert estimate([Vgpu(gigabytes)], 16, version=version).seconds is None


@given(st.sampled_from(sorted(WORST)), st.floats(1, 32), st.floats(1, 32))
def test_more_memory_never_stuns_less(gigabytes: int, memory: float, more: float) -> None:
    smaller, greater = (estimate([Vgpu(gigabytes)], one).seconds or 0 for one in sorted((memory, more)))
    assert smaller <= greater
