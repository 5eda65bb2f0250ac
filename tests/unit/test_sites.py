"""The readers understand each recording of a site, as far as it contains the requested data."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.replay.server import NotRecorded, accept, replayed
from plugins.module_utils.site.acceptance import acceptance

SITES = sorted((Path(__file__).parents[1] / "fixtures" / "sites").glob("*.tar.xz"))
# Data that a recording lacks, because a reader requests more since it was made, is not a misread answer.
UNASKED = NotRecorded.__name__


def test_finds_at_least_one_recording() -> None:
    assert SITES


@pytest.mark.parametrize("path", SITES, ids=lambda path: path.stem)
def test_readers_understand_a_recorded_site(path: Path) -> None:
    with replayed(path) as session:
        rows = accept(session).rows
    doubts = [text for row in rows if row["status"] == acceptance.NOT_UNDERSTOOD for text in row["what"]]
    assert [text for text in doubts if UNASKED not in text] == []
    assert sum(row["status"] == acceptance.UNDERSTOOD for row in rows) > len(rows) / 2


def test_reports_a_newer_vcenter_as_never_seen() -> None:
    with replayed(SITES[0]) as session:
        session.content.about.apiVersion = "9.2.0.0"
        (version, *_others) = accept(session).rows
    assert (version["reader"], version["status"], version["what"]) == (
        "version",
        acceptance.NEVER_SEEN,
        ["its API is 9.2.0.0"],
    )
