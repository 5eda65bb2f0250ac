# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a module that ended without a message: one that was killed, or that ended with an unexpected error."""

from __future__ import annotations

from ansible.utils.display import Display

from ..module_utils.durable.calls import Result
from ..module_utils.guests.task_failure import message_of, output_of

KILLED = {-9, 137}
REPORT = "this is a fault of the module: please report it, with the output of a run with -vvv"
OUT_OF_MEMORY = "perhaps for lack of memory: see the kernel's log of that machine (dmesg), and run again"


def explained(name: str, result: Result) -> Result:
    """Return the result of a module; one that failed always has a message."""
    if not result.get("failed"):
        return dict(result)
    if "module_stdout" in result:
        return {**result, "msg": _without_result(name, result)}
    if "cmd" in result:
        # The controller keeps only the message of a failed reply.
        return {**result, "msg": message_of(result)}
    if result.get("msg"):
        return dict(result)
    event = getattr(result.get("exception"), "event", None)
    Display().vvv(str(getattr(event, "formatted_traceback", None) or result.get("exception") or ""))
    what = getattr(event, "msg", None) or result.get("exception") or "it has no message"
    return {**result, "msg": f"the module {name} ended with an unexpected error: {what}; {REPORT}"}


def _without_result(name: str, result: Result) -> str:
    """Return a sentence about a module whose output Ansible could not read."""
    code = result.get("rc")
    if code in KILLED:
        return f"the module {name} was killed, {OUT_OF_MEMORY}"
    output = output_of(result) or "it wrote nothing"
    return f"the module {name} ended with exit code {code} and without a result: {output.splitlines()[-1]}"
