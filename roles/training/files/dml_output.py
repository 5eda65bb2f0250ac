"""Run a training script that prints its steps, and record each printed step with its rate.

It supports the output of tf_cnn_benchmarks and Horovod's synthetic benchmarks::

    python -u dml_output.py .../tf_cnn_benchmarks.py --variable_update=horovod --display_every=1
"""

# No "from __future__ import annotations" here: the Python of TensorFlow 1 does not support it.

import os
import re
import runpy
import sys
from typing import Any

import dml_records

STEPS = (
    re.compile(r"(?P<step>\d+)\timages/sec: (?P<rate>\S+)(?: [^\t]*)?\t(?P<loss>\S+)"),
    re.compile(r"Iter #(?P<step>\d+): (?P<rate>\S+) img/sec per "),
)


class Output:
    """A wrapper of a stream that passes all output on and records the lines that report a step."""

    def __init__(self, stream: Any, records: Any) -> None:
        self._stream, self._records, self._rest = stream, records, ""

    def write(self, text: str) -> int:
        """Take output of the script, in pieces of any size."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._take(line)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _take(self, line: str) -> None:
        for pattern in STEPS:
            found = pattern.match(line)
            if found:
                facts = found.groupdict()
                self._records.report(int(facts["step"]), facts["rate"], facts.get("loss"))


def main() -> None:
    """Run the given script as the main program, with imports from its folder."""
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    sys.stdout = Output(sys.stdout, dml_records.start())  # type: ignore[assignment] # sufficient for print
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
