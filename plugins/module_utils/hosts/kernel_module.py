"""Subject: the options of one kernel module, as configured and as active since the last boot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from ..errors import Failed, Refused
from ..maintenance import boot
from ..plan import REBOOT, Plan, State
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.sdk import ApiObject, vim
from . import driver_options, network, roce_settings
from .part import Part, PlannedSubject, ProfileContext, list_of
from .privileges.privilege_table import NOTE
from .reading import Entry, Group, Reading
from .rollback import restoring

PATHS = ("configManager.kernelModuleSystem", *boot.PATHS)
PARAMETERS = "system module parameters list"
CALLS = (*NOTE, "HostSystem.QueryConfiguredModuleOptionString", "HostSystem.UpdateModuleOptionString")
SIMILAR = 0.6
OPTIONS: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "options": {"type": "dict", "required": True},
    "exact": {"type": "bool", "default": False},
}


class KernelModule:
    """The options of one kernel module of one host."""

    def __init__(self, host: Host, module: str, requested: Iterable[str] = ()) -> None:
        self.host, self.module, self._requested = host, module, frozenset(requested)
        self.target, self.name = host.name, f"options of kernel module {module}"
        # The parameters of the module, and why they are unknown; empty if no new option is requested.
        self.parameters: tuple[str, ...] = ()
        self.unread = ""

    def read(self) -> State:
        """Return the options as configured, and as active since the last boot."""
        self.host.must_answer(f"read the {self.name}")
        with translating_faults(self.target, f"read the {self.name}"):
            try:
                configured = self._system.QueryConfiguredModuleOptionString(self.module) or ""
            except vim.fault.NotFound as fault:
                raise self._unknown() from fault
        options = self._parsed(configured)
        if self._requested - set(options):
            self._read_parameters()
        active = self._parsed(boot.pending(self.host).get(self.module, configured))
        return {"options": options, "active": active}

    def _read_parameters(self) -> None:
        """Read the parameters that the module has: a driver silently ignores others."""
        tried = f"list the parameters of kernel module {self.module}"
        try:
            rows = self.host.esxcli.rows(PARAMETERS, tried=tried, module=self.module)
            self.parameters = tuple(str(row["Name"]) for row in rows)
            self.unread = "" if rows else f"{self.target}: kernel module {self.module} lists no parameters"
        except Failed as error:
            self.parameters, self.unread = (), str(error)

    def apply(self, plan: Plan) -> None:
        """Write the complete option string, because the API replaces it instead of merging."""
        boot.remember(self.host, self.module, driver_options.render(plan.before["active"]))
        with translating_faults(self.target, f"set the {self.name}"):
            # Another part of the same profile may have set options of this module since the plan was made.
            now = self._parsed(self._system.QueryConfiguredModuleOptionString(self.module) or "")
            options = _carried_over(now, plan.before["options"], plan.after["options"])
            self._system.UpdateModuleOptionString(self.module, driver_options.render(options))

    @property
    def _system(self) -> ApiObject:
        return self.host["configManager.kernelModuleSystem"]

    def _parsed(self, text: str) -> dict[str, str]:
        try:
            return driver_options.parse(text)
        except ValueError as error:
            raise Refused(self.target, f"read the {self.name}", str(error), "correct it by hand on the host") from error

    def _unknown(self) -> Refused:
        return Refused(
            self.target,
            f"read the {self.name}",
            "the host has no such module",
            "correct the name (esxcli system module list) or install its driver first",
        )


def _carried_over(now: Mapping[str, str], before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the currently configured options with the changes of a plan."""
    kept = {key: value for key, value in now.items() if key in after or key not in before}
    return {**kept, **{key: value for key, value in after.items() if before.get(key) != value}}


def plan_options(current: State, desired: State, *, exact: bool = False) -> Plan:
    """Merge the desired options with the configured ones; the host needs a reboot while its active ones differ."""
    try:
        merged = driver_options.parse(driver_options.merge(driver_options.render(current["options"]), desired, exact))
        waiting = driver_options.differing(driver_options.render(current["active"]), desired, exact)
    except ValueError as error:
        raise Refused("options", "merge them", str(error), "correct them") from error
    return Plan(
        before=current,
        after={**current, "options": merged},
        needs=frozenset({REBOOT}) if waiting else frozenset(),
        why=tuple(f"{key} takes effect only when the host boots" for key in waiting),
    )


def plan_known(module: KernelModule, requested: State, current: State) -> Plan:
    """Return the plan of the options; refuse new ones that the module does not have, and suggest similar names."""
    plan = plan_options(current, requested["options"], exact=requested["exact"])
    new = [name for name in requested["options"] if name not in current["options"]]
    if not new or module.unread:
        warnings = (f"{module.unread}; the names of its options were not checked",) if new else ()
        return replace(plan, warnings=(*plan.warnings, *warnings))
    unknown = [_unknown(name, module.parameters) for name in new if name not in module.parameters]
    if unknown:
        cause = f"kernel module {module.module} has no parameter {', '.join(unknown)}"
        raise Refused("options", "set them", cause, f"its parameters are {', '.join(sorted(module.parameters))}")
    return plan


def _unknown(name: str, parameters: Sequence[str]) -> str:
    close = get_close_matches(name, parameters, 1, SIMILAR)
    return f"{name} (did you mean {close[0]}?)" if close else name


def _members(host: Host, requested: Sequence[Mapping[str, Any]], _context: ProfileContext) -> Iterator[PlannedSubject]:
    for module in requested:
        subject = KernelModule(host, module["name"], module["options"])
        yield PlannedSubject(f"kernel module {module['name']}", subject, partial(plan_known, subject, module))


def _read(reading: Reading) -> Entry:
    """Return the modules of network cards and GPUs, and all others with options; they are read with one call."""
    host, drivers = reading.host, {card["driver"] for card in reading.net["uplinks"].values()}
    rdma_modules = {module for driver in drivers for module in roce_settings.DRIVER_OPTIONS.get(driver, ())}
    names = {*drivers, *rdma_modules, "nvidia"}
    with translating_faults(host.name, "read the options of its kernel modules"):
        modules = host["configManager.kernelModuleSystem"].QueryModules()
    shown = [module for module in modules if module.name in names or module.optionString]
    return {"kernel_modules": {module.name: _facts(host, module) for module in shown}}


def _facts(host: Host, module: ApiObject) -> dict[str, Any]:
    """Return one module; an option string that cannot be parsed is only shown as text."""
    text = module.optionString or ""
    try:
        shown: dict[str, Any] = {
            "options": driver_options.parse(text),
            "active": driver_options.parse(boot.pending(host).get(module.name, text)),
        }
    except ValueError:
        shown = {"options": None, "active": None}
    return {**shown, "text": text, "loaded": bool(module.loaded)}


def _waiting(entry: Entry) -> list[str]:
    modules = entry["kernel_modules"].items()
    return [f"kernel module {name}" for name, module in modules if module["options"] != module["active"]]


GROUP = Group(
    "driver",
    "options of kernel modules",
    (*network.PATHS, *PATHS),
    _read,
    ("HostSystem.QueryModules",),
    waiting=_waiting,
)
PART = Part(
    key="kernel_modules",
    module="esxi_kernel_module",
    spec=list_of(OPTIONS),
    members=_members,
    groups=(GROUP,),
    kept=("kernel_modules",),
    restore=restoring.kernel_modules,
    restores="all options of the modules; options added since then are removed",
    calls=(*CALLS, f"esxcli {PARAMETERS}"),
    paths=PATHS,
    after=("vibs",),
)
