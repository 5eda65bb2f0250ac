"""The last lines of the output of a job on its page."""

from __future__ import annotations

from plugins.module_utils.watch.mpi_output import LineJoiner, lines_of
from plugins.module_utils.watch.shown_lines import LONGEST, SHOWN, last_lines


def test_the_last_lines_have_their_ranks() -> None:
    printed = "".join(f"[1,{number % 2}]<stdout>:step {number}\n" for number in range(50)) + "mpirun noticed\n"
    lines = last_lines(printed)
    assert len(lines) == SHOWN
    assert lines[-2:] == ["rank 1: step 49", "mpirun noticed"]


def test_shows_the_last_progress_bar_without_colours() -> None:
    assert last_lines("[1,0]<stderr>:\r 10%|#\r 20%|##\r\n[1,1]<stdout>:\x1b[32mdone\x1b[0m\n") == [
        "rank 0:  20%|##",
        "rank 1: done",
    ]
    assert last_lines("x" * 999) == ["x" * LONGEST + " ..."]
    assert last_lines("") == []


def test_cuts_the_path_of_an_environment() -> None:
    path = f"/var/lib/dml/training/environments/{'a1' * 32}/lib/python3.11/site-packages/torch/nn/module.py"

    assert last_lines(f'  File "{path}", line 7\n  File "/var/lib/dml/runs/one/work/train.py"\n') == [
        '  File ".../torch/nn/module.py", line 7',
        '  File "/var/lib/dml/runs/one/work/train.py"',
    ]


def test_shows_one_of_many_lines_about_sigterm() -> None:
    printed = "".join(f"[1,{rank}]<stderr>:[rank: {rank}] Received SIGTERM: 15\n" for rank in range(100))

    assert last_lines(f"[1,0]<stdout>:step 7\n{printed}[1,0]<stdout>:saved\n") == [
        "rank 0: step 7",
        "rank 0: [rank: 0] Received SIGTERM: 15",
        "rank 0: saved",
        "and 99 more lines about SIGTERM",
    ]


def test_shows_a_single_line_about_sigterm_as_it_is() -> None:
    assert last_lines("[1,0]<stderr>:[rank: 0] Received SIGTERM: 15\n") == ["rank 0: [rank: 0] Received SIGTERM: 15"]


def test_joins_lines_from_parts_of_any_size() -> None:
    printed = "[1,0]<stdout>:half[1,1]<stdout>:other\n[1,0]<stdout>: a line\nmpi\n[1,1]<stderr>:1%\r2%\n[1,1]<stdout>:r"
    expected = [str(line) for line in lines_of(printed)]

    for size in range(1, 20):
        joiner = LineJoiner()
        found = [each for at in range(0, len(printed), size) for each in joiner.feed(printed[at : at + size])]
        assert [str(line) for line in [*found, *joiner.close()]] == expected
