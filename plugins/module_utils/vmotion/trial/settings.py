# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The options of a vMotion test, which the module vmotion_test documents; pure."""

from __future__ import annotations

from typing import Any

from ...continuity.limits import read_limits
from ...errors import Refused

OPTIONS: dict[str, dict[str, Any]] = {
    "folder": {"type": "str", "default": ""},
    "cluster": {"type": "str", "required": True},
    "workers": {"type": "list", "elements": "str", "default": []},
    "launcher": {"type": "str", "default": ""},
    "user": {"type": "str", "default": ""},
    "run_dir": {"type": "path", "default": ""},
    "records": {"type": "path", "default": ""},
    "nodes": {"type": "list", "elements": "dict", "default": []},
    "kubernetes": {"type": "dict", "default": {}},
    "dir": {"type": "path", "required": True},
    "rounds": {"type": "int", "default": 1},
    "duration": {"type": "int", "default": 0},
    "max_moves": {"type": "int", "default": 1},
    "canary": {"type": "str", "default": "auto"},
    "return_home": {"type": "bool", "default": False},
    "one_per_host": {"type": "bool", "default": True},
    "warmup_steps": {"type": "int", "default": 20},
    "steps": {"type": "int", "default": 20},
    "warm_timeout": {"type": "int", "default": 600},
    "move_timeout": {"type": "int", "default": 1800},
    "look_timeout": {"type": "int", "default": 30},
    "finish_timeout": {"type": "int", "default": 0},
    "ends_job": {"type": "bool", "default": False},
    "stun_budget": {"type": "float", "default": 100},
    "guest_checks": {"type": "bool", "default": True},
    "checkpoints": {"type": "str", "default": ""},
    "checkpoint_minutes": {"type": "int", "default": 60},
    "checkpoint_seconds": {"type": "int", "default": 0},
    "accept": {"type": "list", "elements": "str", "default": []},
    "limits": {"type": "dict", "default": {}},
    "require": {
        "type": "list",
        "elements": "str",
        "choices": ["launcher", "transport", "vsphere"],
        "default": ["launcher", "transport", "vsphere"],
    },
    "go_on": {"type": "bool", "default": False},
    "drs_override": {"type": "str", "default": "manual"},
    "window": {"type": "dict", "default": {}},
    "observe": {"type": "dict", "default": {}},
    "site": {"type": "str", "default": ""},
    "ending": {"type": "str", "default": ""},
}


def check_limits(limits: dict[str, Any]) -> None:
    """Raise Refused for limits that the verdict would refuse after the moves."""
    try:
        read_limits(limits)
    except ValueError as error:
        raise Refused("limits", "judge a test with them", str(error), "correct the named value") from error
