"""Names of objects in the inventory: vCenter escapes ``/``, ``\\`` and ``%`` in them, and returns them escaped.

vCenter 7.0 U3 returns a folder ``with/slash`` as ``with%2fslash`` (govmomi, issue 2717). Clusters, datastores and
data centres are escaped too (ManageIQ, providers-vmware, pull request 53). Users and the vSphere Client do not escape.
"""

from __future__ import annotations

import re

_ESCAPES = {"%25": "%", "%2f": "/", "%5c": "\\"}
_ESCAPE = re.compile("|".join(_ESCAPES), re.IGNORECASE)


def plain(name: str) -> str:
    """Return a name as users write it, from either form."""
    return _ESCAPE.sub(lambda found: _ESCAPES[found[0].lower()], name)


def escaped(name: str) -> str:
    """Return a name as vCenter stores it: every server accepts this form."""
    return "".join(next((code for code, one in _ESCAPES.items() if one == letter), letter) for letter in plain(name))


def file_name(name: str) -> str:
    """Return a name as a path component that leads to no other folder and is not hidden."""
    safe = escaped(name).replace("\0", "%00")
    return f"%2e{safe[1:]}" if safe.startswith(".") else safe
