# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Arguments of modules that look into the nodes of a job, as the documentation fragment of nodes describes them."""

from __future__ import annotations

NODE = {
    "name": {"type": "str", "required": True},
    "reach": {"type": "list", "elements": "str", "required": True},
}
NODES = {
    "nodes": {"type": "list", "elements": "dict", "required": True, "options": NODE},
    "folder": {"type": "str", "required": True},
}
