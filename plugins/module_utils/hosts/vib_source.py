# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Where a VIB comes from: a path on the host or a URL, and by which esxcli option it is named."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ..errors import Refused

_DATASTORE = re.compile(r"\[([^\]/]+)\] *([^/].*)")


def option_of(source: str) -> dict[str, str]:
    """The esxcli option for a source: an offline bundle or an online depot is a depot, a single package a viburl."""
    place = _absolute(source)
    ending = urlsplit(place).path.rsplit("/", maxsplit=1)[-1].lower()
    if ending.endswith(".vib"):
        return {"viburl": place}
    if ending.endswith(".zip") or (ending.endswith(".xml") and "://" in place):
        return {"depot": place}
    raise Refused(
        "source",
        "read it",
        f"{source!r} is neither a .zip bundle, nor a .vib, nor the URL of a depot's index.xml",
        "correct it",
    )


def _absolute(source: str) -> str:
    """A path below /vmfs/volumes or a URL; "[datastore] folder/file" becomes such a path."""
    match = _DATASTORE.fullmatch(source.strip())
    if match:
        return f"/vmfs/volumes/{match[1]}/{match[2]}"
    if urlsplit(source).username is not None:
        # esxcli repeats the URL in its errors and the host in its logs.
        raise Refused(
            "source", "read it", "its URL carries an account", "serve the file without one, or use a datastore"
        )
    if source.startswith("/") or urlsplit(source).scheme in ("http", "https"):
        return source
    raise Refused(
        "source",
        "read it",
        f"{source!r} is a relative path, which esxcli does not take",
        "write [datastore] folder/file, /vmfs/volumes/DATASTORE/folder/file, or an http(s) URL",
    )
