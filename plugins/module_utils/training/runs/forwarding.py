# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The command that forwards ports of a node, such as that of TensorBoard, to the controller; pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

SSH, USER_CHANGE = "ssh", "sudo"


def command(reach: Sequence[str], ports: Sequence[int]) -> str:
    """Return the command, made from the one that reaches the node; empty without ports, or if that is not ssh."""
    words = [str(word) for word in reach]
    if not ports or words[:1] != [SSH]:
        return ""
    login = words.index(USER_CHANGE) if USER_CHANGE in words else len(words)
    forwarded = [word for port in ports for word in ("-L", f"{int(port)}:localhost:{int(port)}")]
    return shlex.join([SSH, "-N", *forwarded, *words[1:login]])
