"""Dumps of PyTorch's recorder, NCCL's RAS service and stacks name the rank that the others wait for."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.watch import hangs
from plugins.module_utils.watch.hangs import stack_sentences

AT = 1_795_749_127_000_000_000  # 03:12:07 UTC


def entry(number: int, state: str = "completed", name: str = "nccl:all_reduce", **more: Any) -> dict[str, Any]:
    return {
        "process_group": ["0", "default_pg"],
        "collective_seq_id": number,
        "profiling_name": name,
        "state": state,
        "time_created_ns": AT,
        "is_p2p": False,
        **more,
    }


def dump(*entries: dict[str, Any], ranks: str = "[0, 1, 2]") -> dict[str, Any]:
    return {"entries": list(entries), "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}}}


WAITS = dump(entry(5), entry(6, "started"))


def test_names_the_rank_behind_with_collective_and_number() -> None:
    found = hangs.sentences({0: WAITS, 1: WAITS, 2: dump(entry(5))}, [])

    assert found == [
        (
            "ranks 0, 1 wait in all_reduce number 6 of the group default_pg since 03:12:07 UTC for rank 2, "
            "whose latest is number 5."
        )
    ]


def test_others_wait_for_a_stopped_rank_without_dump() -> None:
    (found,) = hangs.sentences({0: WAITS, 1: WAITS}, [])

    assert found.endswith("since 03:12:07 UTC for rank 2, which wrote no dump.")


def test_ranks_that_call_different_operations_are_named() -> None:
    other = dump(entry(5), entry(6, "scheduled", "nccl:broadcast"))

    (found,) = hangs.sentences({0: WAITS, 1: other, 2: WAITS}, [])

    assert found == (
        "In the group default_pg, the ranks call different operations as number 6: "
        "ranks 0, 2 all_reduce and rank 1 broadcast."
    )


def test_suspects_the_network_if_every_rank_waits() -> None:
    (found,) = hangs.sentences({0: WAITS, 1: WAITS, 2: WAITS}, [])

    assert "no rank is behind: check the network between the nodes, and the GPUs" in found


def test_a_subgroup_of_ranks_has_its_own_numbers() -> None:
    inner = {"process_group": ["7", "tensor"], "collective_seq_id": 2}
    config = {"7": {"name": "7", "desc": "tensor", "ranks": "[0, 2]"}}
    dumps = {
        0: {"entries": [entry(5), entry(0, "started", **inner)], "pg_config": config},
        2: {"entries": [entry(5)], "pg_config": config},
    }

    (found,) = hangs.sentences(dumps, [])

    assert "of the group tensor" in found and found.endswith("for rank 2, which has not called it.")


def test_recorders_of_a_healthy_job_yield_no_sentence() -> None:
    assert hangs.sentences({0: dump(entry(5)), 1: dump(entry(5)), 2: dump(entry(5))}, []) == []


@pytest.mark.parametrize(
    "odd", [{}, {"entries": 3}, {"entries": [3, {}], "pg_config": []}, {"entries": [{"state": 1}]}]
)
def test_a_dump_of_another_shape_raises_nothing(odd: dict[str, Any]) -> None:
    assert isinstance(hangs.sentences({0: odd}, ["", "Errors"]), list)


# https://github.com/NVIDIA/nccl/issues/1911
MISMATCH = """
Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4         8        32        32   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllGather operation counts
  30 ranks have launched up to operation 640
  2 ranks have launched up to operation 641
  Rank 12 -- GPU 4 managed by process 323032 on node 10.137.190.124
  Rank 13 -- GPU 5 managed by process 323033 on node 10.137.190.124
"""
# https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html
INCOMPLETE = """
Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data
"""
DEAD = """
Errors
======

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5
"""
BEHIND = """
#0-0 (cf264af53edbe986) MISMATCH
  Communicator ranks have different collective operation counts
  26 ranks have launched up to operation 6650
  6 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210
"""
RUNNING = """
Communicators... (0.00s)
=============

    0         8         4         1         4        32   RUNNING      OK

Errors
======

Warnings
========
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            MISMATCH,
            [
                (
                    "rank 12 on 10.137.190.124, rank 13 on 10.137.190.124 launched AllGather operation 641, and wait "
                    "for 30 other ranks at number 640."
                )
            ],
        ),
        (
            BEHIND,
            [
                (
                    "26 other ranks launched collective operation 6650, and wait for rank 0 on 172.16.64.210, "
                    "rank 2 on 172.16.64.210 at number 6649."
                )
            ],
        ),
        (
            INCOMPLETE,
            ["process 3487984 on 172.16.64.213 (GPU 5) does not answer NCCL.", "NCCL has no data of rank 21."],
        ),
        (DEAD, ["NCCL considers process 3487984 on 172.16.64.213 (GPU 5) dead."]),
        (RUNNING, []),
    ],
    ids=["mismatch", "behind", "incomplete", "dead", "running"],
)
def test_reads_published_answers_of_ras(text: str, found: list[str]) -> None:
    assert hangs.sentences({}, [text, text]) == found, "each node gives the same answer, which is reported once"


def test_ranks_of_a_later_communicator_are_not_counted() -> None:
    later = f"{BEHIND}\n#0-1 (0f) OK\n  Rank 3 -- GPU 3 managed by process 9 on node 172.16.64.210\n"

    assert hangs.sentences({}, [later]) == hangs.sentences({}, [BEHIND])


# As faulthandler of Python 3.11 writes it, for PyTorch with DistributedDataParallel.
STACK_WAITS = """  File "/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 841 in _engine_run_backward
  File "/venv/lib/python3.11/site-packages/torch/autograd/__init__.py", line 353 in backward
  File "/venv/lib/python3.11/site-packages/torch/_tensor.py", line 648 in backward
  File "/srv/project/train.py", line 52 in main
  File "<frozen runpy>", line 98 in _run_code
  File "/lib/dml_steps.py", line 390 in _run
"""
STUCK = """  File "/srv/project/src/net/data.py", line 7 in wait_for_lock
  File "/srv/project/train.py", line 47 in main
"""
AT_7 = "is at data.py, line 7 (wait_for_lock)"
AT_52 = "is at train.py, line 52 (main)"
BARRIER = """  File "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 4 in barrier
  File "/srv/project/train.py", line 60 in main
"""
IMPORTS = """  File "<frozen importlib._bootstrap>", line 488 in _call_with_frames_removed
  File "/venv/lib/python3.11/site-packages/torch/distributed/__init__.py", line 60 in <module>
  File "<frozen importlib._bootstrap>", line 1360 in _find_and_load
  File "/srv/project/train.py", line 2 in <module>
"""


def node(**stacks: str) -> dict[str, Any]:
    return {"ranks": {rank[1:]: {"host": f"n{rank[1:]}", "stack": stack} for rank, stack in stacks.items()}}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (
            [node(r0=STACK_WAITS), node(r1=STUCK)],
            f"rank 1 on n1 {AT_7}, outside the collective in which rank 0 on n0 {AT_52}.",
        ),
        (
            [node(r0=STACK_WAITS, r1=STACK_WAITS, r2=BARRIER)],
            "In a collective: ranks 0, 1 are at train.py, line 52 (main), rank 2 on n2 is at train.py, line 60 (main).",
        ),
        ([node(r0=STUCK)], "Outside collectives: rank 0 on n0 is at data.py, line 7 (wait_for_lock)."),
        # A rank that imports torch.distributed is in no collective.
        (
            [node(r0=STACK_WAITS, r1=IMPORTS)],
            f"rank 1 on n1 is at train.py, line 2 (<module>), outside the collective in which rank 0 on n0 {AT_52}.",
        ),
        # The other ranks wait for a node that is gone.
        (
            [node(r0=STACK_WAITS), {"error": "ssh: no route to host"}],
            f"Node n1 did not answer: ssh: no route to host. In a collective: rank 0 on n0 {AT_52}.",
        ),
        ([node(r0=""), {"ranks": [1]}, {"ranks": {"x": {}, "1": 5}}], ""),
        ([], ""),
    ],
)
def test_names_the_ranks_outside_the_collective(answers: list[dict[str, Any]], expected: str) -> None:
    assert stack_sentences({f"n{number}": answer for number, answer in enumerate(answers)}) == expected
