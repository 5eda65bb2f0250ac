"""Only the ranks with the fault are causes, once: recorded runs with injected faults, and runs of any layout."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.watch import hang_program, hangs

RECORDED = Path(__file__).parents[4] / "fixtures" / "flight_recorder"
# The ranks with an injected fault: see SOURCES.txt beside the dumps.
FAULTS = {"gpu_error_1st": [12, 14], "gpu_error_2nd": [9, 14], "lock_gil_1st": [9, 14], "lock_gil_2nd": [10, 15]}
_CAUSE = re.compile(r"^rank (\d+) has not completed|for rank (\d+),")
NO_CAUSE = ("no rank is behind", "each other", "different operations")


def dumps_of(run: str, folder: Path) -> dict[int, dict[str, Any]]:
    with zipfile.ZipFile(RECORDED / f"{run}.zip") as archive:
        archive.extractall(folder)
    found = {rank: hang_program.read(path) for rank, path in hang_program.files(str(folder)).items()}
    return {rank: dump for rank, dump in found.items() if dump is not None}


def causes(dumps: Mapping[int, Any]) -> list[int]:
    found = hangs.sentences(dumps, [])
    assert not any(words in sentence for sentence in found for words in NO_CAUSE), found
    return sorted(int(one or other) for sentence in found for one, other in _CAUSE.findall(sentence))


@pytest.mark.parametrize("run", FAULTS)
def test_names_only_the_ranks_with_the_fault(tmp_path: Path, run: str) -> None:
    dumps = dumps_of(run, tmp_path)

    assert len(dumps) == 16 and causes(dumps) == FAULTS[run]


@pytest.mark.parametrize("run", FAULTS)
def test_clears_healthy_ranks_without_the_dumps_of_some(tmp_path: Path, run: str) -> None:
    dumps = dumps_of(run, tmp_path)

    for lost in [*combinations(range(16), 1), *list(combinations(range(16), 2))[::5]]:
        found = causes({rank: dump for rank, dump in dumps.items() if rank not in lost})
        assert found and set(found) <= {*FAULTS[run], *lost}, lost


def test_empty_dump_reports_a_rank_in_no_operation(tmp_path: Path) -> None:
    (first, second) = hangs.sentences(dumps_of("lock_gil_2nd", tmp_path), [])

    assert first.endswith("for rank 10, which is in no operation and whose latest is number 20946.")
    assert second.endswith("for rank 15, which is in no operation and whose latest is number 20946.")


def test_names_a_rank_missing_what_others_completed(tmp_path: Path) -> None:
    first, _second = hangs.sentences(dumps_of("gpu_error_1st", tmp_path), [])

    assert first == (
        "rank 12 has not completed _all_gather_base number 42806 of the group TENSOR_MODEL_PARALLEL_GROUP, which rank "
        "13 has: check its GPU and its output."
    )


def dumped(programs: Mapping[int, list[Any]], stops: Mapping[int, int]) -> dict[int, dict[str, Any]]:
    """Return the dumps of ranks that call their operations in order, some of which stop before one of them.

    A program is a list of groups, each with its number of the operation; an operation ends when all its ranks call it.
    """
    at = dict.fromkeys(programs, 0)

    def waits_in(rank: int) -> Any:
        return programs[rank][at[rank]] if at[rank] < min(len(programs[rank]), stops.get(rank, 99)) else None

    while ended := [
        operation
        for rank in programs
        if (operation := waits_in(rank)) and all(waits_in(one) == operation for one in operation[0])
    ]:
        for one in ended[0][0]:
            at[one] += 1
    found = {}
    for rank, program in programs.items():
        called = program[: at[rank] + (waits_in(rank) is not None)]
        entries = [_entry(rank, *operation, is_done=place < at[rank]) for place, operation in enumerate(called)]
        groups = {
            str(group): {"name": str(group), "desc": "x", "ranks": str(list(group))} for group, _number in program
        }
        found[rank] = {"entries": entries, "pg_config": groups, "pg_status": {}}
    return found


def _entry(rank: int, group: tuple[int, ...], number: int, *, is_done: bool) -> dict[str, Any]:
    place = group.index(rank)
    is_pair = len(group) == 2 and sum(group) % 2 == 1
    name = (
        "nccl:all_reduce"
        if not is_pair
        else f"nccl:{'recv' if place else 'send'} {place}{'<-' if place else '->'}{1 - place}"
    )
    return {
        "process_group": (str(group), "x"),
        "collective_seq_id": number,
        "profiling_name": name,
        "state": "completed" if is_done else "scheduled",
        "is_p2p": is_pair,
    }


LAYOUT = st.lists(
    st.sets(st.integers(0, 5), min_size=2).map(lambda ranks: tuple(sorted(ranks))), min_size=8, max_size=30
)


@given(LAYOUT, st.integers(0, 5), st.integers(0, 6), st.booleans())
def test_names_only_the_stopped_rank_in_any_layout(
    layout: list[tuple[int, ...]], stopped: int, before: int, has_dump: bool
) -> None:
    """All ranks call the same operations in one order, as programs do, and one of them stops."""
    programs: dict[int, list[Any]] = {rank: [] for rank in range(6)}
    for number, group in enumerate(layout):
        for rank in group:
            programs[rank].append((group, number))
    dumps = dumped(programs, {stopped: before})
    is_waited_for = any(rank != stopped and _pending(dump) for rank, dump in dumps.items())

    found = causes({rank: dump for rank, dump in dumps.items() if has_dump or rank != stopped})

    assert found == ([stopped] if is_waited_for else [])


def _pending(dump: Mapping[str, Any]) -> bool:
    return any(entry["state"] != "completed" for entry in dump["entries"])


def test_does_not_count_send_operations_as_collectives() -> None:
    """The status of a group counts its sends too, so that a rank seems to be ahead."""
    both, pair = (0, 2), {"is_p2p": True, "profiling_name": "nccl:send 0->1", "state": "completed"}

    def dump(*calls: dict[str, Any]) -> dict[str, Any]:
        config = {"0": {"name": "0", "desc": "x", "ranks": str(list(both))}}
        entries = [{"process_group": ("0", "x"), "pg_id": 0, **call} for call in calls]
        return {"entries": entries, "pg_config": config, "pg_status": {"0": {"last_enqueued_collective": 9}}}

    second, third = ({"collective_seq_id": number, "profiling_name": "nccl:all_reduce"} for number in (2, 3))
    done = {**second, "state": "completed"}

    found = causes({0: dump(done, pair, {**third, "state": "scheduled"}), 2: dump(done, pair)})

    assert found == [2]


def test_names_ranks_that_wait_for_each_other() -> None:
    one, other = ((0, 1, 2, 3), 0), ((0, 1, 3), 0)
    programs = {0: [one, other], 1: [other, one], 2: [one], 3: [one, other]}

    (found,) = hangs.sentences(dumped(programs, {}), [])

    assert "wait for each other" in found and found.endswith("they call their operations in different orders.")


def test_keeps_an_old_operation_that_still_waits(tmp_path: Path) -> None:
    waits = {"process_group": ("1", "tp"), "collective_seq_id": 3, "state": "scheduled"}
    others = [
        {"process_group": ("0", "dp"), "collective_seq_id": number, "state": "completed"} for number in range(999)
    ]

    kept = hang_program.needed([{"process_group": ("2", "pp"), "state": "completed"}, waits, *others])

    assert kept[1] == waits and len(kept) == 2 + hang_program.MOST_ENTRIES
