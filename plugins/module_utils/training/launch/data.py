"""The data of a run: files of the controller or of a URL, which runs share on each node by their checksum."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from ...errors import Refused
from .folder import EMPTY, LINK, MEGABYTE, OTHER, FolderFile

SHA256 = re.compile(r"[0-9a-f]{64}\Z")
URL, ACCOUNT = re.compile(r"https?://", re.IGNORECASE), re.compile(r"https?://[^/?#]*@", re.IGNORECASE)


def is_url(given: str) -> bool:
    return URL.match(given) is not None


def sha256_of(given: str, sha256: str) -> str:
    """Return the checksum in lower case, empty without one; refuse a malformed one, and a URL without one."""
    if ACCOUNT.match(given):
        # Manifests, reports and process lists would show it.
        cause = "its URL contains an account"
        raise Refused("training_data", "copy it to the nodes", cause, "serve it without one, or set it to a path here")
    plain = sha256.strip().lower()
    plain = plain[len("sha256:") :] if plain.startswith("sha256:") else plain
    if plain and not SHA256.match(plain):
        cause = f"training_data_sha256 is {sha256!r}, which is not a SHA-256 checksum"
        raise refused(given, cause, "set it to the 64 digits that sha256sum prints")
    if is_url(given) and not plain:
        raise refused(given, "a URL needs a checksum", "set training_data_sha256 to that of its file")
    return plain


def file_of(url: str) -> str:
    """Return the name of the file of a URL on a node."""
    path = re.split(r"[?#]", url, maxsplit=1)[0].partition("://")[2].partition("/")[2]
    name = posixpath.basename(path)
    return name if name.strip(".") else "data"


def check(given: str, files: Sequence[FolderFile], limit_mb: int) -> None:
    """Refuse data that is empty or too large, or that contains links that leave it, or devices."""
    odd = next((file for file in files if file.kind == OTHER or (file.kind == LINK and file.leads_out)), None)
    if odd is not None:
        kind = f"the link {odd.path} points outside, to {odd.link}" if odd.kind == LINK else f"{odd.path} is not a file"
        raise refused(given, kind, "copy the files there, or set training_data to another folder")
    size = sum(file.size for file in files)
    has_files = any(file.kind != EMPTY for file in files)
    if not has_files or size > limit_mb * MEGABYTE:
        cause = f"it has {size / MEGABYTE:.0f} MB, more than {limit_mb} MB" if has_files else "it contains no file"
        raise refused(given, cause, "set training_data_limit" if has_files else "set training_data to another folder")


def refused(given: str, cause: str, remedy: str) -> Refused:
    """Return why the data cannot be copied."""
    return Refused(f"training_data {given}", "copy it to the nodes", cause, remedy)


def other_content(given: str, expected: str, found: str) -> Refused:
    """Return the error of data whose checksum is another one."""
    cause = f"its checksum is {found}, and {expected} is expected"
    return refused(given, cause, "correct training_data_sha256, or restore the data")
