# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""training_follow ends when all is done, and when nothing comes any more."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest

from plugins.module_utils.progress import Progress
from plugins.module_utils.training.live_pace import LivePace
from plugins.module_utils.vmotion.watch.growing_file import GrowingFile
from plugins.modules.training_follow import follow


@pytest.mark.parametrize(
    ("last", "is_watched", "ended"), [(3, True, "finished"), (2, True, "quiet"), (2, False, "unwatched")]
)
def test_it_ends(tmp_path: Path, last: int, is_watched: bool, ended: str) -> None:
    records, events = tmp_path / "records.jsonl", tmp_path / "events"
    events.touch()
    told = [{"rank": 0, "size": 1, "step": step, "seen": float(step), "host": "n1"} for step in range(1, last + 1)]
    records.write_text("".join(json.dumps(record) + "\n" for record in told))
    # As a watch writes it that cannot read a node.
    (tmp_path / "records.jsonl.troubles").write_text('{"n2": "no route (for 9 s)"}')
    pace = LivePace(3)
    with records.open("a") as watch, GrowingFile(records) as growing:
        if is_watched:
            fcntl.flock(watch, fcntl.LOCK_EX)
        assert follow(growing, pace, 0.1, 0.0, Progress(str(events)), records) == ended
    said = [json.loads(line)["what"] for line in events.read_text().splitlines()]
    assert said[-2].startswith(f"step {last} of 3")
    assert said[-1] == "n2 cannot be read: no route (for 9 s)"
