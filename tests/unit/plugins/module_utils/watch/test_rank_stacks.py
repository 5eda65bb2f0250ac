"""Ranks that are outside the collective in which the others wait are named, with their lines."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.watch.hangs import stack_sentences

# As faulthandler of Python 3.11 writes it, for PyTorch with DistributedDataParallel.
WAITS = """  File "/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 841 in _engine_run_backward
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
            [node(r0=WAITS), node(r1=STUCK)],
            f"rank 1 on n1 {AT_7}, outside the collective in which rank 0 on n0 {AT_52}.",
        ),
        (
            [node(r0=WAITS, r1=WAITS, r2=BARRIER)],
            "In a collective: ranks 0, 1 are at train.py, line 52 (main), rank 2 on n2 is at train.py, line 60 (main).",
        ),
        ([node(r0=STUCK)], "Outside collectives: rank 0 on n0 is at data.py, line 7 (wait_for_lock)."),
        # A rank that imports torch.distributed is in no collective.
        (
            [node(r0=WAITS, r1=IMPORTS)],
            f"rank 1 on n1 is at train.py, line 2 (<module>), outside the collective in which rank 0 on n0 {AT_52}.",
        ),
        # The other ranks wait for a node that is gone.
        (
            [node(r0=WAITS), {"error": "ssh: no route to host"}],
            f"Node n1 did not answer: ssh: no route to host. In a collective: rank 0 on n0 {AT_52}.",
        ),
        ([node(r0=""), {"ranks": [1]}, {"ranks": {"x": {}, "1": 5}}], ""),
        ([], ""),
    ],
)
def test_names_the_ranks_outside_the_collective(answers: list[dict[str, Any]], expected: str) -> None:
    assert stack_sentences({f"n{number}": answer for number, answer in enumerate(answers)}) == expected
