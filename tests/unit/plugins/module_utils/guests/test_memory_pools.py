"""An NCCL that needs memory pools is refused on a GPU without them; what is unknown is not refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from plugins.module_utils.guests import memory_pools
from plugins.module_utils.guests.stack.part_versions import numbers

FACTS = yaml.safe_load((Path(__file__).parents[5] / "stacks" / "facts" / "compatibility.yml").read_text())


def test_limits_match_the_compatibility_table() -> None:
    (row,) = FACTS["vgpu_moves"]["rows"]

    assert (numbers(row["before"]), numbers(row["again"])) == (memory_pools.NEEDS_POOLS, memory_pools.NEEDS_NONE)


@pytest.mark.parametrize(
    ("code", "version"),
    [(2408, (2, 4, 8)), (22105, (2, 21, 5)), (23203, (2, 32, 3)), (None, (0, 0, 0)), (True, (0, 0, 0))],
)
def test_parses_the_number_of_nccl_as_a_version(code: object, version: tuple[int, int, int]) -> None:
    assert memory_pools.version(code) == version


@pytest.mark.parametrize(
    ("nccl", "pools", "refused"),
    [
        (23007, [0], True),
        (22304, [1, 0], True),
        (23102, [0, 0], True),
        (22203, [0], False),
        (23203, [0], False),
        (23007, [1], False),
        (23007, None, False),
        (23007, [None], False),
        (None, [0], False),
    ],
)
def test_refuses_pool_requiring_nccl_only_without_pools(
    nccl: int | None, pools: list[int | None] | None, refused: bool
) -> None:
    misfits = memory_pools.misfits({"nccl": nccl, "pools": pools})

    assert bool(misfits) is refused
    assert all("needs CUDA's memory pools" in text and "vgpu-ubuntu24-nccl232" in text for text in misfits)


def test_the_gpus_without_pools_are_named() -> None:
    assert (
        "NCCL 2.30.7 of the job needs CUDA's memory pools, and GPU 1 has none"
        in memory_pools.misfits({"nccl": 23007, "pools": [1, 0]})[0]
    )
    assert memory_pools.facts({"nccl": 23007, "pools": [1]}) == {"memory_pools": [1], "nccl": "2.30.7"}
