# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The GID of an address is found by what the kernel says of it."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.guests.rdma_gids import choose

LINK = {"index": 0, "gid": "fe80:0000:0000:0000:0250:56ff:fe01:0203", "type": "RoCE v2", "state": "4: ACTIVE"}
OLD = {"index": 2, "gid": "0000:0000:0000:0000:0000:ffff:0ad8:0128", "type": "IB/RoCE v1", "state": "4: ACTIVE"}
NEW = {**OLD, "index": 3, "type": "RoCE v2"}
OTHER = {**NEW, "index": 5, "gid": "0000:0000:0000:0000:0000:ffff:0ad8:0129"}
DOWN = {**NEW, "index": 7, "state": "1: DOWN"}
ROWS = [LINK, OLD, NEW, OTHER, DOWN]


@pytest.mark.parametrize(
    ("rows", "kind", "address", "indexes"),
    [
        (ROWS, "RoCE v2", "10.216.1.40", [3]),
        (ROWS, "IB/RoCE v1", "10.216.1.40", [2]),
        (ROWS, "RoCE v2", "", [3, 5]),
        (ROWS, "RoCE v2", "10.216.9.9", []),
        ([LINK, DOWN], "RoCE v2", "", []),
        ([], "RoCE v2", "10.216.1.40", []),
    ],
)
def test_the_index_is_found(rows: list[dict[str, Any]], kind: str, address: str, indexes: list[int]) -> None:
    chosen = choose(rows, kind, address)
    assert [row["index"] for row in chosen] == indexes
    assert all(row["address"].startswith("10.216.1.") for row in chosen)
