"""Runs the readers of the collection against a recording: ``python -m lab.replay recording.tar.xz``."""

from __future__ import annotations

import sys
from pathlib import Path

from lab.replay.server import accept, replayed
from plugins.module_utils.site.acceptance import acceptance


def main() -> int:
    """Print which readers understand the recording, and return 1 if one does not."""
    with replayed(Path(sys.argv[1])) as session:
        result = accept(session)
        judged = acceptance.judged_assumptions(result.recording)
        print("\n".join([*acceptance.lines(result.rows), "", *acceptance.assumption_lines(judged)]))
        return 1 if acceptance.error(result.rows, judged, accept_new=True) else 0


if __name__ == "__main__":
    sys.exit(main())
