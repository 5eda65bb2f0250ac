"""An ESXi host without a server: the house's Host over managers that log their writes and can misbehave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from pyVmomi import vim

from plugins.module_utils.vsphere.esxcli import CommandFailed
from plugins.module_utils.vsphere.inventory import Host

BOOTED = datetime(2026, 1, 1, tzinfo=UTC)


class FakeHost(Host):
    """A host whose properties come from functions, read again at each refresh as a server would be."""

    def __init__(self, name: str = "esx01.lab") -> None:
        self.writes: list[tuple[Any, ...]] = []
        self.deaf = False
        self.faults: dict[str, Exception] = {}
        self.settled: list[bool] = []
        self.sources: dict[str, Callable[[], Any]] = {
            "name": lambda: name,
            "runtime.connectionState": lambda: "connected",
            "runtime.inMaintenanceMode": lambda: False,
            "runtime.bootTime": lambda: BOOTED,
            "config.product.version": lambda: "8.0.3",
        }
        content = SimpleNamespace(customFieldsManager=None, eventManager=FakeEvents())
        session = SimpleNamespace(server="vcenter.lab:443", content=content, account="VSPHERE.LOCAL\\robot")
        super().__init__(session, FakeReference(name), name)  # type: ignore[arg-type]
        self.fields = content.customFieldsManager = FakeFields(self)

    def has(self, **sources: Any) -> None:
        """Give the host properties; a double underscore stands for a dot, a function is asked at each refresh."""
        self.properties_of({key.replace("__", "."): value for key, value in sources.items()})

    def properties_of(self, sources: Mapping[str, Any]) -> None:
        """Give the host properties by their paths."""
        for path, value in sources.items():
            self.sources[path] = value if callable(value) else lambda value=value: value  # type: ignore[misc]

    def refresh(self) -> None:
        """Read all properties, as the batched read does: what is unset does not come."""
        values = {path: source() for path, source in self.sources.items()}
        self.properties = {path: value for path, value in values.items() if value is not None}

    def settle(self, paths: Any, done: Callable[[Mapping[str, Any]], bool], seconds: float = 0) -> bool:
        """Look once; the tests see what was found."""
        self.settled.append(done({path: self.sources[path]() for path in paths}))
        return self.settled[-1]

    def write(self, call: str, *arguments: Any) -> bool:
        """Log a write, raise the fault planned for it; whether the host keeps it."""
        self.writes.append((call, *arguments))
        if call in self.faults:
            raise self.faults[call]
        return not self.deaf


class FakeReference(vim.HostSystem):  # type: ignore[misc] # pyVmomi has no types
    """A reference without a server; writes of custom attributes set what it shows."""

    customValue: tuple[Any, ...] = ()  # noqa: N815 # as pyVmomi spells it


class FakeEvents:
    """The events of a host that vCenter still has."""

    def __init__(self, *events: Any) -> None:
        self.events = list(events)

    def QueryEvents(self, spec: Any) -> list[Any]:
        return [event for event in self.events if type(event).__name__.split(".")[-1] in spec.eventTypeId]


class FakeFields:
    """The custom attributes of vCenter, as one host sees them."""

    def __init__(self, host: FakeHost) -> None:
        self.host, self.values = host, dict[int, str]()
        self.field: list[Any] = []
        host.properties_of({"availableField": lambda: self.field, "customValue": self._values})

    def AddCustomFieldDef(self, name: str, moType: Any) -> Any:  # noqa: N803 # as pyVmomi spells it
        self.field.append(SimpleNamespace(name=name, key=100 + len(self.field), managedObjectType=moType))
        return self.field[-1]

    def SetField(self, entity: Any, key: int, value: str) -> None:
        self.host.write("SetField", value)
        self.values[key] = value  # a host that is deaf keeps nothing; its vCenter does
        self.host.ref.customValue = self._values()

    def _values(self) -> list[Any]:
        return [vim.CustomFieldsManager.StringValue(key=key, value=value) for key, value in self.values.items()]


class FakeOptions:
    """Advanced options of a host."""

    def __init__(self, host: FakeHost, **values: Any) -> None:
        self.host, self.values = host, {key.replace("__", "."): value for key, value in values.items()}
        host.properties_of({f'config.option["{key}"].value': self._reader(key) for key in self.values})
        host.properties_of({"config.option": self._all})
        host.has(configManager__advancedOption=self_of(self))

    def _all(self) -> list[Any]:
        return [vim.option.OptionValue(key=key, value=value) for key, value in self.values.items()]

    def _reader(self, key: str) -> Callable[[], Any]:
        return lambda: self.values[key]

    def UpdateOptions(self, changed: list[Any]) -> None:
        if self.host.write("UpdateOptions", *((one.key, one.value) for one in changed)):
            self.values.update({one.key: one.value for one in changed})


class FakeFirewall:
    """The firewall of a host: which rulesets are open."""

    def __init__(self, host: FakeHost, **rulesets: bool) -> None:
        self.host, self.open, self.allowed = host, rulesets, dict[str, list[str]]()
        host.properties_of({f'config.firewall.ruleset["{key}"]': self._reader(key) for key in rulesets})
        host.has(configManager__firewallSystem=self_of(self))

    def _reader(self, key: str) -> Callable[[], Any]:
        def read() -> Any:
            allowed = self.allowed.get(key, [])
            listed = vim.host.Ruleset.IpList(allIp=not allowed, ipAddress=allowed)
            return vim.host.Ruleset(key=key, enabled=self.open[key], allowedHosts=listed)

        return read

    def EnableRuleset(self, ruleset: str) -> None:
        if self.host.write("EnableRuleset", ruleset):
            self.open[ruleset] = True

    def DisableRuleset(self, ruleset: str) -> None:
        if self.host.write("DisableRuleset", ruleset):
            self.open[ruleset] = False


class FakeKernelModules:
    """The option strings of a host's kernel modules."""

    def __init__(self, host: FakeHost, **strings: str) -> None:
        self.host, self.strings = host, strings
        host.has(configManager__kernelModuleSystem=self_of(self))

    def QueryModules(self) -> list[Any]:
        return [SimpleNamespace(name=key, optionString=text, loaded=True) for key, text in self.strings.items()]

    def QueryConfiguredModuleOptionString(self, name: str) -> str:
        if name not in self.strings:
            raise vim.fault.NotFound(msg="no such module")
        return self.strings[name]

    def UpdateModuleOptionString(self, name: str, options: str) -> None:
        if self.host.write("UpdateModuleOptionString", name, options):
            self.strings[name] = options


class FakeEsxcli:
    """Answers of esxcli by command; a function gets the options of the call."""

    def __init__(self, host: FakeHost, answers: Mapping[str, Any]) -> None:
        self.answers, self.requests = dict(answers), list[str]()
        host.__dict__["esxcli"] = self

    def rows(self, command: str, **options: Any) -> list[dict[str, Any]]:
        self.requests.append(command)
        answer = self.answers[command]
        return list(answer(**options)) if callable(answer) else list(answer)


def no_dcb(host: FakeHost, nicname: str) -> list[dict[str, Any]]:
    """The answer of a card whose driver lacks DCB: the command itself ends with an error."""
    raise CommandFailed(
        host.name, "run esxcli network nic dcb status get", f"esxcli said DCB not supported for {nicname}"
    )


def self_of(manager: Any) -> Callable[[], Any]:
    """A source that gives the manager itself."""
    return lambda: manager


def refresh(subjects: Iterable[Any]) -> None:
    """Return what Fleet.refresh_for does, for fake hosts."""
    for host in dict.fromkeys(subject.host for subject in subjects):
        host.refresh()
