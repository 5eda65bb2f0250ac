"""The settings of a maintenance window, as its journal keeps them; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypedDict

from ...core.findings import listed
from ...errors import Refused
from ...hosts.change_hosts import HostChangeOptions
from ...maintenance.window_limits import LIMITS


class WindowSettings(TypedDict, total=False):
    """The settings besides the limits (WindowLimits) and the options of a change (HostChangeOptions)."""

    # The hosts to change, and how often each reboots; all hosts that the user named, and the canary.
    hosts: list[str]
    reboots: dict[str, int]
    only_hosts: list[str]
    canary: str
    # The accepted stop rules, and the decision about an unfinished window with other settings.
    accepted: list[str]
    settings: str
    requires_ack: bool
    notify: list[dict[str, Any]]
    # The other training jobs on the workers, and which of them need no verdict.
    other_jobs: list[dict[str, Any]]
    accept_other_jobs: bool
    ignored_jobs: str
    unread_is_idle: bool
    # The way through the window, and the stop of the job at a checkpoint.
    by: str
    checkpoint_wait: float
    checkpoint_signal: str
    accept_repeat_s: float
    # The hosts of another cluster that take workers for a time.
    spare: dict[str, Any]


KNOWN = {*WindowSettings.__annotations__, *LIMITS, *(field.name for field in fields(HostChangeOptions))}


def require_known(window: Mapping[str, object]) -> None:
    """Refuse settings that nothing reads."""
    unknown = sorted({*window} - KNOWN)
    if unknown:
        cause = f"a maintenance window has no setting {listed(unknown)}"
        raise Refused("vmotion_test_window", "read it", cause, "correct the name, or leave it out")
    if window.get("spare") and window.get("by") == "restart":
        cause = "with window_by=restart, the workers of the job are shut down and move to no other host"
        raise Refused("window_spare", "use it", cause, "leave it out, or set window_by to move or auto")
