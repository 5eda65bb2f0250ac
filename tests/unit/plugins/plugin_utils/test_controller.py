"""The functions that a program runs on the controller."""

from __future__ import annotations

from pathlib import Path

from plugins.plugin_utils import controller


def test_watch_that_cannot_write_names_path_and_reason(tmp_path: Path) -> None:
    records = tmp_path / "gone" / "records.jsonl"

    result = controller.start_watch({"records": str(records)})

    assert result["failed"]
    assert result["msg"].startswith(f"{records.parent}/")
    assert result["msg"].endswith(": could not start the watch: No such file or directory")
