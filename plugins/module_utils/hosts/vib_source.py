# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The source of a VIB: a path on the host or a URL, and the esxcli option for it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ..errors import Refused

_DATASTORE = re.compile(r"\[([^\]/]+)\] *([^/].*)")


def option_of(source: str) -> dict[str, str]:
    """Return the esxcli option for a source: ``depot`` for an offline bundle or an online depot, else ``viburl``."""
    location = _absolute(source)
    file = urlsplit(location).path.rsplit("/", maxsplit=1)[-1].lower()
    if file.endswith(".vib"):
        return {"viburl": location}
    if file.endswith(".zip") or (file.endswith(".xml") and "://" in location):
        return {"depot": location}
    raise Refused(
        "source",
        "read it",
        f"{source!r} is neither a .zip bundle, nor a .vib, nor the URL of a depot's index.xml",
        "correct it",
    )


def _absolute(source: str) -> str:
    """Return a path below /vmfs/volumes, also for "[datastore] folder/file", or a URL."""
    match = _DATASTORE.fullmatch(source.strip())
    if match:
        return f"/vmfs/volumes/{match[1]}/{match[2]}"
    if urlsplit(source).username is not None:
        # The errors of esxcli and the logs of the host contain the URL.
        raise Refused(
            "source", "read it", "its URL contains an account", "serve the file without one, or use a datastore"
        )
    if source.startswith("/") or urlsplit(source).scheme in ("http", "https"):
        return source
    raise Refused(
        "source",
        "read it",
        f"{source!r} is a relative path, which esxcli does not accept",
        "write [datastore] folder/file, /vmfs/volumes/DATASTORE/folder/file, or an http(s) URL",
    )
