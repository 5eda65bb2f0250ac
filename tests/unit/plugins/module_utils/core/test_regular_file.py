"""Only a regular file of at most the given size is read, and no FIFO, which would block."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plugins.module_utils.core import regular_file


def test_content_has_at_most_the_given_size(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")

    assert regular_file.content(str(tmp_path / "file"), 5) == b"12345"
    with pytest.raises(OSError, match="it has more than 4 bytes"):
        regular_file.content(str(tmp_path / "file"), 4)


def test_fifo_and_folder_are_refused_without_open_handles(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    before = len(os.listdir("/proc/self/fd"))

    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(OSError, match="it is not a regular file"):
            regular_file.opened(str(path))
    assert len(os.listdir("/proc/self/fd")) == before
