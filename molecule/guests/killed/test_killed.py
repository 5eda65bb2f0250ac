"""Runs that are killed in the middle of their work, together with the programs on the last node, as in a power failure.

The converge step of the scenario comes next and must finish the work.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenario import GUESTS, meet, node, start, workers

NODES = workers()
# Commands on the node: detect the moment, kill the programs, and verify that the work is unfinished.
MOMENTS = {
    "apt unpacks OpenMPI": (
        "dpkg-query --show --showformat '${db:Status-Status}\n' '*openmpi*' | grep -q -e half-installed -e unpacked",
        "pkill -KILL -x 'apt-get|dpkg'",
        'test -n "$(dpkg --audit)"',
    ),
    "pip fills the virtual environment": (
        "test -d /opt/dml/horovod/lib/python3*/site-packages/tensorflow/python",
        "pkill -KILL -f 'm [p]ip '",
        "test -e /opt/dml/horovod/filling && ! test -e /opt/dml/horovod/bin/horovodrun",
    ),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_is_killed_while(moment: str, tmp_path: Path) -> None:
    reached, end, halves = MOMENTS[moment]
    log = tmp_path / "log"
    with log.open("w") as out:
        running = start(GUESTS, out=out)
        there = node(NODES[-1])
        met = meet(running, there, reached, end)
        running.kill()
        running.wait()
    assert met, log.read_text()
    left = there.run(halves)
    assert left.rc == 0, (left, log.read_text())
