"""Training logs for tests: their lines, and malformed logs with the problems that the parser must report."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from plugins.module_utils.training.output.log import LONGEST_LINE

REAL_LOG = Path(__file__).parents[4] / "fixtures" / "tf_cnn_benchmarks-trivial-4ranks.log"
TF_STEP = "{step}\timages/sec: {rate:.1f} +/- 0.2 (jitter = 0.6)\t{loss:.3f}"


def step_line(rank: int = 0, step: int = 0, **more: Any) -> str:
    facts = {
        "t": 1763715000.5 + step,
        "rank": rank,
        "size": 2,
        "step": step,
        "stride": 1,
        "host": f"worker-{rank}",
        "pid": 70 + rank,
        "start": 1234567,
        "boot_id": "5f0e",
        "job": "422313985",
        "generation": 0,
        "phase": "train",
        "loss": 2.25,
        "images_per_sec": 340.5,
    }
    return json.dumps({**facts, **more}) + "\n"


OTHER_JOB = [step_line(0, step, job="425263105", pid=90) for step in (1, 2)]
TORN = step_line(0, 2)[:60]
BAD_LOGS = {
    "interleaved": (
        (
            "1\timages/sec: 2.9 +/- 0.0 (jitter = 0.0)\t81.1261\timages/sec: 2.7 +/- 0.0 (jitter = 0.0)\t81.127\n"
            "10\timages/sec: 3.2 +/- 0.2 10\timages/sec: 3.1 +/- 0.2 (jitter = 0.4)\t81.125\n(jitter = 0.6)\t81.126\n"
        ),
        [(0, 10, 3.1, 81.125)],
        [
            (
                "line 1: '1\\timages/sec: 2.9 +/- 0.0 (jitter = 0.0)\\t81.1261\\timages/sec: 2.7 +/- 0.0 (jit...' "
                "looks like a training step but cannot be parsed"
            ),
            (
                "line 2: '10\\timages/sec: 3.2 +/- 0.2 10\\timages/sec: 3.1 +/- 0.2 (jitter = 0.4)\\t81.125' "
                "looks like a training step but cannot be parsed"
            ),
        ],
    ),
    "torn record": (
        step_line(0, 1) + TORN + step_line(0, 3),
        [(0, 1, 340.5, 2.25), (0, 3, 340.5, 2.25)],
        [
            (
                'line 2: \'{"t": 1763715002.5, "rank": 0, "size": 2, "step": 2, "stride{"t": 1763715003....\' '
                "contains a torn JSON record"
            )
        ],
    ),
    "torn record with a line end": (
        step_line(0, 1) + '{"t": 17637\n' + step_line(0, 3),
        [(0, 1, 340.5, 2.25), (0, 3, 340.5, 2.25)],
        ["line 2: '{\"t\": 17637' contains a torn JSON record"],
    ),
    "truncated records": (
        step_line(0, 1) + '{"t": 1763715002.5, "ra',
        [(0, 1, 340.5, 2.25)],
        ['line 2: \'{"t": 1763715002.5, "ra\' contains a torn JSON record'],
    ),
    "truncated loss": (
        "1\timages/sec: 2.9 +/- 0.0 (jitter = 0.0)\t81.126\n10\timages/sec: 3.2 +/- 0.2 (jitter = 0.4)\t81.1",
        [(0, 1, 2.9, 81.126)],
        ["line 2: '10\\timages/sec: 3.2 +/- 0.2 (jitter = 0.4)\\t81.1' is cut off"],
    ),
    "truncated words": (
        "Iter #0: 251.3 img/sec per GPU\nIter #1: 25",
        [(0, 0, 251.3, None)],
        ["line 2: 'Iter #1: 25' is cut off"],
    ),
    "truncated total": (
        "Iter #0: 251.3 img/sec per GPU\ntotal images/sec: 13.9",
        [(0, 0, 251.3, None)],
        ["line 2: 'total images/sec: 13.9' is cut off"],
    ),
    "NaN loss": (
        step_line(0, 1) + step_line(0, 2, loss="nan") + step_line(0, 3, loss="nan") + step_line(1, 1, loss=math.inf),
        [(0, 1, 340.5, 2.25), (0, 2, 340.5, "nan"), (0, 3, 340.5, "nan"), (1, 1, 340.5, math.inf)],
        ["line 2: rank 0 has loss nan at step 2", "line 4: rank 1 has loss inf at step 1"],
    ),
    "NaN loss of tf_cnn_benchmarks": (
        "10\timages/sec: 3.2 +/- 0.2 (jitter = 0.4)\tnan\n",
        [(0, 10, 3.2, "nan")],
        ["line 1: rank 0 has loss nan at step 10"],
    ),
    "unknown format": (
        "Epoch 1/48\n  312/40000 [..............................] - ETA: 5:12:11 - loss: 7.1\n\nEpoch 2/48\n",
        [],
        ["line 4: no line up to here is a training step or a total in a known format"],
    ),
    "unknown rate line": (
        "Images/sec: 3.5 +/- 0.2 (jitter = 0.4)\n",
        [],
        ["line 1: 'Images/sec: 3.5 +/- 0.2 (jitter = 0.4)' looks like a training step but cannot be parsed"],
    ),
    "two jobs mixed": (
        step_line(0, 7) + OTHER_JOB[0] + step_line(0, 8) + OTHER_JOB[1],
        [(0, 7, 340.5, 2.25), (0, 1, 340.5, 2.25), (0, 8, 340.5, 2.25), (0, 2, 340.5, 2.25)],
        ["line 2: rank 0 is job 425263105, process 90, but was job 422313985, process 70: two jobs, or a restart?"],
    ),
    "two jobs mixed without identity": (
        "".join(TF_STEP.format(step=step, rate=3.1, loss=7) + "\n" for step in (1, 10, 1, 20, 10))
        + "total images/sec: 3.10\ntotal images/sec: 3.20\n",
        [(0, step, 3.1, 7.0) for step in (1, 10, 1, 20, 10)],
        [
            "line 3: rank 0 reports step 1 after step 10: two jobs, or a restart?",
            "line 7: rank 0 reports a second total: two jobs in one log?",
        ],
    ),
    "wrong types": (
        (
            '{"rank": 0, "step": "7"}\n{"rank": -1, "step": 7}\n{"step": 7}\n{"rank": 0, "step": 7, "loss": "low"}\n'
            '{"rank": 0, "step": true}\n{"rank": 0, "step": 7, "job": [1]}\n'
        ),
        [],
        [
            'line 1: \'{"rank": 0, "step": "7"}\' has step=\'7\', not a whole number of 0 or more',
            'line 2: \'{"rank": -1, "step": 7}\' has rank=-1, not a whole number of 0 or more',
            "line 3: '{\"step\": 7}' has no rank",
            'line 4: \'{"rank": 0, "step": 7, "loss": "low"}\' has loss=\'low\', not a number',
            'line 5: \'{"rank": 0, "step": true}\' has step=True, not a whole number of 0 or more',
            'line 6: \'{"rank": 0, "step": 7, "job": [1]}\' has job=[1], not one plain value',
        ],
    ),
    "half a line followed by a whole one": (
        (
            "[1,0]<stdout>:10\timages/sec: 3.[1,1]<stdout>:starting\n"
            "[1,0]<stdout>:20\timages/sec: 3.2 +/- 0.2 (jitter = 0.4)\t81.125\n"
        ),
        [(0, 20, 3.2, 81.125)],
        ["line 2: '10\\timages/sec: 3.' is cut off"],
    ),
    "endless line": (
        "x" * (LONGEST_LINE + 1) + "\n" + step_line(0, 1),
        [(0, 1, 340.5, 2.25)],
        [f"line 1: longer than {LONGEST_LINE} characters, left out"],
    ),
}
