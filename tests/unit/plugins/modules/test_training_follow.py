# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""training_follow ends when all is done, and when nothing comes any more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plugins.module_utils.logic.training.live_pace import LivePace
from plugins.module_utils.progress import Progress
from plugins.module_utils.watch.growing import Growing
from plugins.modules.training_follow import follow


@pytest.mark.parametrize(("last", "ended"), [(3, "finished"), (2, "quiet")])
def test_it_ends(tmp_path: Path, last: int, ended: str) -> None:
    records, events = tmp_path / "records.jsonl", tmp_path / "events"
    events.touch()
    told = [{"rank": 0, "size": 1, "step": step, "seen": float(step), "host": "n1"} for step in range(1, last + 1)]
    records.write_text("".join(json.dumps(record) + "\n" for record in told))
    pace = LivePace(3)
    with Growing(records) as growing:
        assert follow(growing, pace, 0.1, 0.0, Progress(str(events))) == ended
    assert json.loads(events.read_text().splitlines()[-1])["what"].startswith(f"step {last} of 3")
