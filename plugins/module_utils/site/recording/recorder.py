"""Record the answers of a server to the readers, only for the hosts and virtual machines of a scope."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from ...errors import Refused
from ...vsphere.sdk import vmodl
from ...vsphere.typed import is_object
from ...vsphere.wire import ApiCall
from .recording import CallAnswer, EsxcliCommand, RecordedObject, Recording, RestRequest, key_of_call, key_of_link

# Properties that may contain guest passwords, and of which the API cannot read only a part.
NEVER_READ = ("config.extraConfig", "config.vAppConfig")
_LIMITED = ("HostSystem", "VirtualMachine")
# These calls create or end objects of the session; a replay answers them without a recording.
_OF_THE_SESSION = ("CreateContainerView", "DestroyView", "RetrieveManagedMethodExecuter")
_SESSION = "/api/session"
_HANDLER = "ha-cli-handler-"


@dataclass(frozen=True)
class Scope:
    """The ids of the hosts and virtual machines that a recording may contain, None for all; and properties to omit."""

    ids: frozenset[str] | None
    never_read: frozenset[str] = frozenset(NEVER_READ)

    def holds(self, ref: Any) -> bool:
        return self.ids is None or ref._wsdlName not in _LIMITED or ref._moId in self.ids

    def limited(self, value: object) -> object:
        """Return a list of references without objects outside the scope; any other value is unchanged."""
        if isinstance(value, list) and value and all(is_object(item) for item in value):
            return type(value)([ref for ref in value if self.holds(ref)])
        return value


class Recorder:
    """The recorder between a reader and the server; the reader gets the same reduced answers that are recorded."""

    def __init__(self, recording: Recording, scope: Scope) -> None:
        self.recording, self._scope = recording, scope
        self._lock = Lock()
        self._pages: dict[str, Any] = {}
        self._executers: dict[str, str] = {}

    def soap(self, call: ApiCall, carry: Callable[[], Any]) -> object:
        """Send one call, and record its answer."""
        must_read(call.method, call.arguments)
        if call.method == "RetrievePropertiesEx":
            return self._properties(call, carry)
        if call.method == "ContinueRetrievePropertiesEx":
            return self._page(self._pages.pop(call.arguments[0]), carry())
        if call.method == "ExecuteSoap":
            return self._command(call, carry)
        if call.method in _OF_THE_SESSION:
            answer = carry()
            if call.method == "RetrieveManagedMethodExecuter":
                self._executers[answer._moId] = call.id
                self.recording.server["executer"] = answer._wsdlName
            return answer
        return self._call(call, carry)

    def rest(self, verb: str, path: str, body: str | None, carry: Callable[[], tuple[int, str]]) -> tuple[int, str]:
        """Send one request, and record its answer without session tokens."""
        must_request(verb, path)
        status, text = carry()
        if path != _SESSION:
            with self._lock:
                self.recording.requests.append(RestRequest(verb, path, body, status, text))
        return status, text

    def _properties(self, call: ApiCall, carry: Callable[[], object]) -> object:
        (requested,) = call.arguments[0]
        for spec in requested.propSet:
            spec.pathSet = [path for path in spec.pathSet if path not in self._scope.never_read]
        with self._lock:
            for spec in requested.propSet:
                self.recording.requested.setdefault(spec.type._wsdlName, set()).update(spec.pathSet)
        return self._page(requested, carry())

    def _page(self, requested: Any, page: Any) -> object:
        if page is None:
            with self._lock:
                self._link(requested, [])
            return None
        if page.token:
            self._pages[page.token] = requested
        kept = [entry for entry in page.objects if self._scope.holds(entry.obj)]
        with self._lock:
            for entry in kept:
                self._object(entry)
            self._link(requested, [entry.obj for entry in kept])
        is_left_out = bool(page.objects) and not kept
        page.objects[:] = kept  # keeps the list type of the API
        # A server returns None if there are no objects; the reader handles any other answer without objects.
        return None if is_left_out and not page.token else page

    def _object(self, entry: Any) -> None:
        for item in entry.propSet:
            item.val = self._scope.limited(item.val)
        recorded = self.recording.objects.setdefault(entry.obj._moId, RecordedObject(entry.obj._wsdlName))
        recorded.values.update({item.name: item.val for item in entry.propSet})

    def _link(self, requested: Any, refs: Iterable[Any]) -> None:
        """Record the result of a traversal from objects along a property; omit traversals of the inventory."""
        traversals = [step for spec in requested.objectSet for step in spec.selectSet or [] if step.path != "view"]
        if traversals:
            starts = [spec.obj for spec in requested.objectSet]
            key = key_of_link(starts, traversals[0].path, requested.propSet[0].type._wsdlName)
            known = self.recording.links.setdefault(key, [])
            known += [ref._moId for ref in refs if ref._moId not in known]

    def _command(self, call: ApiCall, carry: Callable[[], Any]) -> object:
        handler, _version, method, given = call.arguments
        answer = carry()
        if handler.startswith(_HANDLER):
            arguments = {argument.name: argument.val for argument in given or []}
            fault = answer.fault if answer else None
            texts = (answer.response if answer else None, *((fault.faultMsg, fault.faultDetail) if fault else ()))
            command = " ".join(method.removeprefix("vim.EsxCLI.").split("."))
            with self._lock:
                host = self._executers.get(call.id, "")
                self.recording.commands.append(EsxcliCommand(host, command, arguments, *texts))
        return answer

    def _call(self, call: ApiCall, carry: Callable[[], object]) -> object:
        key = key_of_call(call.kind, call.id, call.method, call.arguments)
        try:
            answer = carry()
        except vmodl.MethodFault as fault:
            with self._lock:
                self.recording.calls[key] = CallAnswer(fault=fault)
            raise
        with self._lock:
            self.recording.calls[key] = CallAnswer(self._scope.limited(answer))
        return self.recording.calls[key].value


# Views, collectors and sessions exist only for the reader and end with its session.
_READS = re.compile(
    r"(Query|Retrieve|ContinueRetrieve|Fetch|Find|HasPrivilege)\w*"
    r"|DirectPathProfileManagerQueryCapacity|CurrentTime|ExecuteSoap|CreateContainerView|DestroyView"
)
_COMMANDS = re.compile(r"vim\.EsxCLI\.[\w.]+\.(get|list)|vim\.CLIInfo\.FetchCLIInfo")
_REQUESTS = re.compile(
    r"GET /.*|(POST|DELETE) /api/session"
    r"|POST /api/cis/tagging/[\w-]+\?action=list-[a-z-]+"
    r"|POST /api/cis/tasks\?action=list"
)


def must_read(method: str, arguments: tuple[object, ...] = ()) -> None:
    """Refuse a method that is not a read, and an esxcli command that is neither a get nor a list."""
    words = [argument for argument in arguments if isinstance(argument, str)]
    is_command = any(_COMMANDS.fullmatch(word) for word in words)
    if not _READS.fullmatch(method) or (method == "ExecuteSoap" and not is_command):
        raise _refused(" ".join((method, *words)))


def must_request(verb: str, path: str) -> None:
    """Refuse a request of the REST API that is not a read."""
    if not _REQUESTS.fullmatch(f"{verb} {path}"):
        raise _refused(f"{verb} {path}")


def _refused(call: str) -> Refused:
    return Refused(
        "this run", f"call {call}", "the run is read-only, and this is not a known read", "report this error"
    )
