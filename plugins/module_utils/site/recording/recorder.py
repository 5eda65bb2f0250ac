# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Keeps what a server answers while readers read it, of the hosts and virtual machines of a scope alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from ...vsphere.sdk import vmodl
from ...vsphere.typed import is_object
from ...vsphere.wire import ApiCall
from . import guard
from .recording import Answer, Command, Recorded, Recording, Request, key_of_call, key_of_link

# A property with passwords for guests among its values; it comes as a whole or not at all.
NEVER_READ = ("config.extraConfig",)
_LIMITED = ("HostSystem", "VirtualMachine")
# They make or end something of the session, and a replay answers them by itself.
_OF_THE_SESSION = ("CreateContainerView", "DestroyView", "RetrieveManagedMethodExecuter")
_SESSIONS = ("/api/session", "/rest/com/vmware/cis/session")
_HANDLER = "ha-cli-handler-"


@dataclass(frozen=True)
class Scope:
    """The ids of the hosts and virtual machines that a recording may hold, None for all; and what is never read."""

    ids: frozenset[str] | None
    never_read: frozenset[str] = frozenset(NEVER_READ)

    def holds(self, ref: Any) -> bool:
        """Whether an object may be recorded."""
        return self.ids is None or ref._wsdlName not in _LIMITED or ref._moId in self.ids

    def limited(self, value: Any) -> Any:
        """A list of references without those to objects that may not be recorded; any other value as it is."""
        if isinstance(value, list) and value and all(is_object(one) for one in value):
            return type(value)([one for one in value if self.holds(one)])
        return value


class Recorder:
    """The tap that records. What it leaves out of an answer, the reader does not see either."""

    def __init__(self, recording: Recording, scope: Scope) -> None:
        self.recording, self._scope = recording, scope
        self._lock = Lock()
        self._pages: dict[str, Any] = {}
        self._executers: dict[str, str] = {}

    def soap(self, call: ApiCall, carry: Callable[[], Any]) -> Any:
        """Carry one call, and keep its answer."""
        guard.must_read(call.method, call.arguments)
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
        """Carry one request, and keep its answer; never a token."""
        guard.must_request(verb, path)
        status, text = carry()
        if path not in _SESSIONS:
            with self._lock:
                self.recording.requests.append(Request(verb, path, body, status, text))
        return status, text

    def _properties(self, call: ApiCall, carry: Callable[[], Any]) -> Any:
        (asked,) = call.arguments[0]
        for one in asked.propSet:
            one.pathSet = [path for path in one.pathSet if path not in self._scope.never_read]
        with self._lock:
            for one in asked.propSet:
                self.recording.asked.setdefault(one.type._wsdlName, set()).update(one.pathSet)
        return self._page(asked, carry())

    def _page(self, asked: Any, page: Any) -> Any:
        if page is None:
            with self._lock:
                self._link(asked, [])
            return None
        if page.token:
            self._pages[page.token] = asked
        kept = [one for one in page.objects if self._scope.holds(one.obj)]
        with self._lock:
            for entry in kept:
                self._object(entry)
            self._link(asked, [one.obj for one in kept])
        is_left_out = bool(page.objects) and not kept
        page.objects[:] = kept  # the list of the API's own type
        # A server says nothing where there are no objects; what it says instead of objects is left to the reader.
        return None if is_left_out and not page.token else page

    def _object(self, entry: Any) -> None:
        for item in entry.propSet:
            item.val = self._scope.limited(item.val)
        recorded = self.recording.objects.setdefault(entry.obj._moId, Recorded(entry.obj._wsdlName))
        recorded.values.update({item.name: item.val for item in entry.propSet})

    def _link(self, asked: Any, found: Iterable[Any]) -> None:
        """Note where a walk from objects along a property led; a walk through all of the inventory needs no note."""
        walks = [step for one in asked.objectSet for step in one.selectSet or [] if step.path != "view"]
        if walks:
            starts = [one.obj for one in asked.objectSet]
            key = key_of_link(starts, walks[0].path, asked.propSet[0].type._wsdlName)
            known = self.recording.links.setdefault(key, [])
            known += [ref._moId for ref in found if ref._moId not in known]

    def _command(self, call: ApiCall, carry: Callable[[], Any]) -> Any:
        handler, _version, method, given = call.arguments
        answer = carry()
        if handler.startswith(_HANDLER):
            arguments = {one.name: one.val for one in given or []}
            fault = answer.fault if answer else None
            said = (answer.response if answer else None, *((fault.faultMsg, fault.faultDetail) if fault else ()))
            command = " ".join(method.removeprefix("vim.EsxCLI.").split("."))
            with self._lock:
                host = self._executers.get(call.id, "")
                self.recording.commands.append(Command(host, command, arguments, *said))
        return answer

    def _call(self, call: ApiCall, carry: Callable[[], Any]) -> Any:
        key = key_of_call(call.kind, call.id, call.method, call.arguments)
        try:
            answer = carry()
        except vmodl.MethodFault as fault:
            with self._lock:
                self.recording.calls[key] = Answer(fault=fault)
            raise
        with self._lock:
            self.recording.calls[key] = Answer(self._scope.limited(answer))
        return self.recording.calls[key].value
