"""The last lines of the output of a job on its page."""

from __future__ import annotations

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
