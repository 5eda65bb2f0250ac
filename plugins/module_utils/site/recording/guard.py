# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The guard of read-only runs: it passes reads, and refuses every other call before it is sent."""

from __future__ import annotations

import re

from ...errors import Refused

# Views, collectors and sessions exist only for the reader and end with its session.
_READS = re.compile(
    r"(Query|Retrieve|ContinueRetrieve|Fetch|Find|HasPrivilege)\w*"
    r"|DirectPathProfileManagerQueryCapacity|CurrentTime|ExecuteSoap|CreateContainerView|DestroyView"
)
_COMMANDS = re.compile(r"vim\.EsxCLI\.[\w.]+\.(get|list)|vim\.CLIInfo\.FetchCLIInfo")
_REQUESTS = re.compile(
    r"GET /.*|(POST|DELETE) /api/session"
    r"|POST /api/cis/tagging/[\w-]+\?action=list-[a-z-]+"
)


def must_read(method: str, arguments: tuple[object, ...] = ()) -> None:
    """Refuse a method that is not a read, and an esxcli command that is neither a get nor a list."""
    words = [argument for argument in arguments if isinstance(argument, str)]
    is_command = any(_COMMANDS.fullmatch(word) for word in words)
    if not _READS.fullmatch(method) or (method == "ExecuteSoap" and not is_command):
        raise _refused(" ".join((method, *words)))


def must_request(verb: str, path: str) -> None:
    """Refuse a request of the REST API that is not a read."""
    if not _REQUESTS.fullmatch(f"{verb} {path}"):
        raise _refused(f"{verb} {path}")


def _refused(call: str) -> Refused:
    return Refused(
        "this run", f"call {call}", "the run is read-only, and this is not a known read", "report this error"
    )
