# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gives an AnsibleModule its arguments, also where ansible-core (before 2.19) brings no function for that."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from ansible.module_utils import basic

try:
    from ansible.module_utils.testing import patch_module_args
except ImportError:

    def patch_module_args(args: dict[str, Any] | None = None) -> AbstractContextManager[Any]:
        """Let modules made within this context see these arguments."""
        return mock.patch.object(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": args or {}}).encode())


__all__ = ["patch_module_args"]
