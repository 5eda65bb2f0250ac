# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps of a maintenance window: take an empty host out of service, change it, reboot it, and return it; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from ....core.findings import stops
from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step, failed
from ..trial_state import Entry, HostChange, TrialState

# A profile needs at most two reboots: the end of passthrough, then the driver.
MOST_ROUNDS = 6
DRIVER_SECONDS = 60.0
OF_MAINTENANCE = ("maintenance_timeout", "power_off", "moved_by", "non_disruptive")


def _host(state: TrialState) -> HostChange:
    """Return the host at hand; a step of this file is due only if there is one."""
    return cast(HostChange, state.host)


def _is_out(state: TrialState) -> bool:
    return state.host is not None and state.host.is_out


def _power(state: TrialState, target: str, **options: Any) -> ModuleCall:
    options = {"hosts": [_host(state).host], "state": target, **options}
    return ModuleCall("esxi_power", options, may_fail=True)


def _entries(
    name: str, content: Callable[[Result, TrialState], dict[str, Any]]
) -> Callable[[Result, TrialState, Controller], Entries]:
    """Return the function that makes the entry of a step, or the entry of its failure with the way to continue."""

    def entries(result: Result, state: TrialState, _controller: Controller) -> Entries:
        if result.get("failed"):
            return _failed(name, state, str(result.get("msg") or "it failed without a message"))
        return [(name, content(result, state))]

    return entries


def _named(_result: Result, state: TrialState) -> dict[str, Any]:
    return {"host": _host(state).host}


def _failed(name: str, state: TrialState, reason: str) -> Entries:
    host = _host(state).host
    return failed(name, f"{reason.rstrip('.')}; {host} keeps its state, and the next run continues with it")


def _rules(state: TrialState, _controller: Controller) -> ModuleCall:
    window = state.settings["window"]
    most = int(window.get("max_out_of_service") or 1)
    options = {"cluster": state.cluster, "leaving": [_host(state).host], "max_out_of_service": most}
    return ModuleCall("cluster_info", options, may_fail=True)


def _rules_entries(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Return the failure that ends the window while the host is in service, if a rule stops."""
    host = _host(state).host
    if result.get("failed"):
        return failed("stop_rules", str(result.get("msg") or f"{host}: the stop rules could not be read"))
    accepted = state.settings["window"].get("accepted") or []
    texts = [str(stop["text"]).rstrip(".") for stop in stops(result["stops"], accepted)]
    if not texts:
        return [("stop_rules", {"host": host})]
    remedy = "remove the cause and run again, or accept it by its rule in esxi_host_accepted_stops"
    return failed("stop_rules", f"{host}: could not leave service: {'; '.join(texts)}; {remedy}")


def _is_leaving(state: TrialState) -> bool:
    """Return whether the host at hand is to be emptied, or to leave service, and its stop rules were not read since."""
    return state.host is not None and not state.host.out_at and "stop_rules" not in state.lately


STOP_RULES = Step(
    name="stop_rules",
    title="reads the stop rules of the cluster",
    due=(
        Due(Phase.ROUND, lambda state: bool(state.left) and _is_leaving(state), after=("plan",)),
        Due(Phase.HOST, _is_leaving, after=("hold",)),
    ),
    action=_rules,
    entries=_rules_entries,
    kinds=(EntryKind("stop_rules"),),
    is_repeated=True,
)


def _enter(state: TrialState, _controller: Controller) -> ModuleCall:
    """Return the call; a host that another controller left rebooting is awaited."""
    window = state.settings["window"]
    options = {key: window[key] for key in OF_MAINTENANCE if key in window}
    call = _power(state, "maintenance", **options)
    if not _host(state).is_continued:
        return call
    seconds = float(window.get("reboot_timeout") or 0)
    return ModuleCall(call.module, call.options, call.where, True, lambda result: not result.get("failed"), seconds)


def _has_entered(state: TrialState, entry: Entry) -> None:
    host = _host(state)
    host.is_out, host.needs = True, None
    host.out_at = host.out_at or float(entry["at"])


def _needs_entering(state: TrialState) -> bool:
    # A move that failed has stopped the test before: this phase is then closed.
    return state.host is not None and not state.host.is_out


def _may_be_lost(state: TrialState) -> None:
    """Enter and apply again: the controller before may have ended in the middle of a reboot."""
    if state.host is not None and state.host.out_at:
        state.host.is_out, state.host.is_continued = False, True


ENTER = Step(
    name="host_enter",
    title=lambda state: f"puts {_host(state).host}, which has no worker now, into maintenance mode",
    due=(Due(Phase.HOST, _needs_entering, after=("stop_rules",)),),
    action=_enter,
    entries=_entries("host_enter", _named),
    kinds=(EntryKind("host_enter", _has_entered),),
    continued=_may_be_lost,
)


def _apply(state: TrialState, _controller: Controller) -> ModuleCall:
    window = state.settings["window"]
    profiles = {"profile": window["profile"], "host_profiles": window.get("host_profiles") or {}}
    host = _host(state)
    # After the last planned reboot, a driver may need a moment: another reboot would not help it.
    is_booted = host.reboots and host.reboots >= int((window.get("reboots") or {}).get(host.host, 1))
    seconds = DRIVER_SECONDS if is_booted else 0.0
    call = ModuleCall("esxi_profile", {"hosts": [host.host], **profiles}, may_fail=True)
    return replace(call, until=lambda result: bool(result.get("failed") or not result.get("needs")), seconds=seconds)


def _apply_entries(result: Result, state: TrialState, controller: Controller) -> Entries:
    """Return the needs that are left; a need that no reboot satisfies, and a change without end, are failures."""
    if not result.get("failed"):
        needs, is_last = sorted(result.get("needs") or []), _host(state).rounds + 1 >= MOST_ROUNDS
        if needs and (is_last or not (result.get("changed") or "reboot" in needs)):
            why = "; ".join(reason for host in result["hosts"] for reason in host.get("why") or []) or "it differs"
            return _failed("host_apply", state, f"{_host(state).host}: could not activate its profile: {why}")
    content = _entries(
        "host_apply",
        lambda done, _state: {"changed": bool(done.get("changed")), "needs": list(done.get("needs") or [])},
    )
    return content(result, state, controller)


def _has_applied(state: TrialState, entry: Entry) -> None:
    host = _host(state)
    host.needs, host.changed = list(entry["needs"]), bool(entry["changed"])
    host.rounds += 1


def _needs_reboot(state: TrialState) -> bool:
    return _is_out(state) and "reboot" in (_host(state).needs or [])


def _needs_applying(state: TrialState) -> bool:
    """Return whether the profile was not applied since the last boot, or not verified since it was applied."""
    host = state.host
    return _is_out(state) and host is not None and (host.needs is None or host.changed) and not _needs_reboot(state)


APPLY = Step(
    name="host_apply",
    title=lambda state: f"applies the profile to {_host(state).host}, or verifies that it is active",
    due=(Due(Phase.HOST, _needs_applying, after=("host_enter",)),),
    action=_apply,
    entries=_apply_entries,
    kinds=(EntryKind("host_apply", _has_applied),),
)


def _reboot(state: TrialState, _controller: Controller) -> ModuleCall:
    window = state.settings["window"]
    return _power(state, "rebooted", **{key: window[key] for key in ("reboot_timeout",) if key in window})


def _has_booted(state: TrialState, _entry: Entry) -> None:
    host = _host(state)
    host.needs, host.reboots = None, host.reboots + 1


BOOT = Step(
    name="host_boot",
    title=lambda state: f"reboots {_host(state).host}",
    due=(Due(Phase.HOST, _needs_reboot, after=("host_apply",)),),
    action=_reboot,
    entries=_entries("host_boot", _named),
    kinds=(EntryKind("host_boot", _has_booted),),
)


def _return(state: TrialState, _controller: Controller) -> ModuleCall:
    return _power(state, "in_service")


def _is_active(state: TrialState) -> bool:
    host = state.host
    return _is_out(state) and host is not None and host.needs == [] and not host.changed


def _is_back(state: TrialState, entry: Entry) -> None:
    """Keep the host change, and have the job judged before anything else happens."""
    state.host_changes.append(replace(_host(state), back_at=float(entry["at"])))
    state.host, state.is_reviewed = None, False


def _back_entries(result: Result, state: TrialState, controller: Controller) -> Entries:
    seconds = max(0.0, controller.now - _host(state).out_at)
    content = {**_named(result, state), "seconds": round(seconds, 1)}
    return _entries("host_back", lambda _result, _state: content)(result, state, controller)


def _back_messages(entry: Entry, state: TrialState) -> list[str]:
    boots = _host(state).reboots
    return [
        f"{entry['host']} was out of service for {entry['seconds']:.0f} s, {boots} reboot{'' if boots == 1 else 's'}"
    ]


BACK = Step(
    name="host_back",
    title=lambda state: f"returns {_host(state).host} to service",
    due=(Due(Phase.HOST, _is_active, after=("host_boot",)),),
    action=_return,
    entries=_back_entries,
    kinds=(EntryKind("host_back", _is_back, _back_messages),),
)
