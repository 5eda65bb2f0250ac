# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The log of a pod has a limit, in the request and in the result."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.kubernetes.api.jobs import LOG_BYTES, LOG_LIMIT, launcher_log


class Loud:
    """A server whose pods write long lines."""

    def __init__(self) -> None:
        self.queries: list[dict[str, Any]] = []

    def text(self, _path: str, **query: Any) -> str:
        self.queries.append(query)
        return "x" * LOG_LIMIT + "the end"


def test_keeps_only_the_end_of_a_long_log() -> None:
    server: Any = Loud()
    log = launcher_log(server, "ml", "job-launcher")
    assert len(log) == LOG_BYTES and log.endswith("the end")
    assert server.queries == [{"tailLines": 5000, "limitBytes": LOG_LIMIT}]
    assert launcher_log(server, "ml", "job-launcher", last=7) == "the end"
