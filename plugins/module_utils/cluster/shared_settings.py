"""Subjects: shared settings. Options of a whole vCenter, and DRS options of a whole cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..core.option_types import BOOL, TEXT, kind_of, typed
from ..errors import Refused
from ..plan import Plan, State
from ..vsphere import tasks
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import find_cluster
from ..vsphere.option_definitions import kind_of as kind_of_definition
from ..vsphere.option_definitions import option_value
from ..vsphere.options import is_on, vcenter_option
from ..vsphere.sdk import vim
from ..vsphere.session import Session
from ..workers.capacity.running_vm import HOT_MIGRATE

RECONFIGURE_SECONDS = 300


def vcenter_options(session: Session) -> dict[str, object]:
    """Return the vCenter options for moves of virtual GPUs; an option that this vCenter does not have is None."""
    value = vcenter_option(session, HOT_MIGRATE)
    return {HOT_MIGRATE: None if value is None else is_on(value)}


class _SharedSettings:
    """Shared settings: changed only with permission; their previous values are kept for a restore."""

    name = "shared settings"
    reach = ""

    def __init__(self, target: str, desired: State, *, allowed: bool) -> None:
        self.target, self.desired, self.allowed = target, dict(desired), allowed
        self.previous: State | None = None

    def read(self) -> State:
        """Return the values of the requested options; an option that is not set is None."""
        state = self._read()
        self.previous = state if self.previous is None else self.previous
        return state

    def plan(self, current: State) -> Plan:
        """Return the options to change; without permission each change is unmet, with its old and new value."""
        after = {key: self._typed(key, current[key]) for key in self.desired}
        kept = [key for key, desired in self.desired.items() if desired is None and after[key] is not None]
        warnings = [f"its option {key} stays {_shown(after[key])}: vCenter does not remove options" for key in kept]
        plan = Plan(before=current, after=after, warnings=tuple(warnings))
        if self.allowed:
            return plan
        unmet = [
            f"{change.key} is {_shown(change.before)} for {self.reach} and would become {_shown(change.after)}: "
            "that reaches beyond this collection; allow_shared_settings: true permits it"
            for change in plan.changes
        ]
        return replace(plan, unmet=tuple(unmet))

    def _read(self) -> State:
        raise NotImplementedError

    def _typed(self, key: str, current: object) -> object:
        raise NotImplementedError


class VcenterOptions(_SharedSettings):
    """Options of vCenter itself."""

    def __init__(self, session: Session, desired: State, *, allowed: bool) -> None:
        super().__init__(session.server, desired, allowed=allowed)
        self.session, self.reach = session, f"all of vCenter {session.server}"
        with translating_faults(self.target, "read which options it has"):
            options = session.content.setting.supportedOption or []
        self.known = {option.key: option.optionType for option in options}

    def _read(self) -> State:
        return {key: vcenter_option(self.session, key) for key in self.desired}

    def _typed(self, key: str, current: object) -> object:
        if self.desired[key] is None:
            return current
        kind = self._kind(key, current)
        try:
            return typed(self.desired[key], kind)
        except ValueError as error:
            raise Refused(self.target, f"set its option {key}", str(error), f"give it a {kind} value") from error

    def _kind(self, key: str, current: object) -> str:
        if key in self.known:
            return kind_of_definition(self.known[key])
        if key == HOT_MIGRATE:
            return BOOL
        return kind_of(self.desired[key] if current is None else current)

    def apply(self, plan: Plan) -> None:
        """Write the changed options, each in the type that vCenter declares."""
        values = [option_value(change.key, change.after, self.known.get(change.key)) for change in plan.changes]
        with translating_faults(self.target, f"set {', '.join(option.key for option in values)}"):
            self.session.content.setting.UpdateOptions(changedValue=values)


class DrsOptions(_SharedSettings):
    """The advanced options of a cluster's DRS, which are texts."""

    def __init__(self, session: Session, cluster: str, desired: State, *, allowed: bool) -> None:
        super().__init__(cluster, desired, allowed=allowed)
        self.session, self.reach = session, f"DRS of cluster {cluster}"
        self.all: dict[str, str] = {}
        self.ref: Any = None

    def _read(self) -> State:
        self.ref, values = find_cluster(self.session, self.target, ("configurationEx",))
        config = values["configurationEx"].drsConfig
        self.all = {option.key: str(option.value) for option in config.option or [] if str(option.value) != ""}
        return {key: self.all.get(key) for key in self.desired}

    def _typed(self, key: str, current: object) -> object:  # noqa: ARG002 - DRS options are always texts
        desired = self.desired[key]
        return None if desired is None or desired == "" else typed(desired, TEXT)

    def apply(self, plan: Plan) -> None:
        """Send all options, with an empty value for each removed one: correct whether the server merges or replaces."""
        left = {**self.all, **{change.key: change.after or "" for change in plan.changes}}
        options = [vim.option.OptionValue(key=key, value=value) for key, value in left.items()]
        spec = vim.cluster.ConfigSpecEx(drsConfig=vim.cluster.DrsConfigInfo(option=options))
        tried = f"set the DRS options {', '.join(change.key for change in plan.changes)}"
        with translating_faults(self.target, tried):
            task = self.ref.ReconfigureComputeResource_Task(spec=spec, modify=True)
        tasks.wait(self.session, tasks.Started(task, self.target, tried), RECONFIGURE_SECONDS)


def _shown(value: object) -> str:
    return "not set" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
