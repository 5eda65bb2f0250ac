# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The guard of whatever only looks: it lets reads through and refuses every other call before it is sent."""

from __future__ import annotations

import re

from ...errors import Refused

# Views, collectors and sessions are made for the reader alone and vanish with it.
_READS = re.compile(
    r"(Query|Retrieve|ContinueRetrieve|Fetch|Find|HasPrivilege)\w*"
    r"|CurrentTime|ExecuteSoap|CreateContainerView|DestroyView"
)
_COMMANDS = re.compile(r"vim\.EsxCLI\.[\w.]+\.(get|list)|vim\.CLIInfo\.FetchCLIInfo")
_REQUESTS = re.compile(
    r"GET /.*|(POST|DELETE) (/api|/rest/com/vmware/cis)/session"
    r"|POST (/api|/rest/com/vmware)/cis/tagging/[\w-]+(/[^/?]+)?\?~?action=list-[a-z-]+"
)


def must_read(method: str, arguments: tuple[object, ...] = ()) -> None:
    """Refuse a method that is no read; of esxcli, a command that does not get or list."""
    words = [one for one in arguments if isinstance(one, str)]
    if not _READS.fullmatch(method) or (method == "ExecuteSoap" and not any(_COMMANDS.fullmatch(one) for one in words)):
        raise _refused(" ".join((method, *words)))


def must_request(verb: str, path: str) -> None:
    """Refuse a request of the REST API that is no read."""
    if not _REQUESTS.fullmatch(f"{verb} {path}"):
        raise _refused(f"{verb} {path}")


def _refused(call: str) -> Refused:
    return Refused("this run", f"call {call}", "it only reads, and this is no read that it knows", "report this error")
