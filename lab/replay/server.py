"""Answers reads from a recording, so that a recording of a real site can test the readers.

    with replayed(Path("recording.tar.xz")) as session: ...

Recorded requests get the recorded answer; other requests raise NotRecorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plugins.module_utils.site.acceptance import acceptance
from plugins.module_utils.site.acceptance.readers import READERS
from plugins.module_utils.site.recording import archive
from plugins.module_utils.site.recording.recorder import NEVER_READ
from plugins.module_utils.site.recording.recording import (
    EsxcliCommand,
    Recording,
    find_command,
    key_of_call,
    key_of_link,
)
from plugins.module_utils.vsphere import properties
from plugins.module_utils.vsphere.esxcli import executer_of, result_of
from plugins.module_utils.vsphere.sdk import SoapAdapter, VmomiSupport, vim, vmodl
from plugins.module_utils.vsphere.session import Session
from plugins.module_utils.vsphere.wire import newest_version

SERVER = "the recording"
ACCOUNT = {"username": "replay", "password": "replay"}


class NotRecorded(Exception):
    """A request that the recording does not contain."""


class Replay(SoapAdapter.StubAdapterBase):  # type: ignore[misc]
    """A connection to a recording in place of a server."""

    silent = False  # it always answers

    def __init__(self) -> None:
        super().__init__(newest_version())
        self.recording = Recording()
        self._views: dict[str, list[str]] = {}

    def InvokeMethod(self, ref: Any, info: Any, arguments: Any, *_more: Any) -> Any:  # noqa: N802 - pyVmomi's name
        """Return the recorded answer to a call."""
        own = getattr(self, f"_{info.wsdlName}", None)
        if own:
            return own(ref, *arguments)
        key = key_of_call(ref._wsdlName, ref._moId, info.wsdlName, arguments)
        if key not in self.recording.calls:
            raise NotRecorded(f"call {key} is not in the recording")
        answer = self.recording.calls[key]
        if answer.fault is not None:
            raise answer.fault
        return answer.value

    def exchange(self, verb: str, path: str, body: str | None, _carry: Any) -> tuple[int, str]:
        """Return the recorded answer to a request of the REST API."""
        if path.endswith("/session"):
            return (201, '{"value": "replayed"}' if path.startswith("/rest") else '"replayed"')
        for request in self.recording.requests:
            if (request.verb, request.path, request.body) == (verb, path, body):
                return request.status, request.text
        raise NotRecorded(f"request {verb} {path} is not in the recording")

    def object(self, key: str) -> Any:
        """Return the object with an id, bound to this recording."""
        return VmomiSupport.GetWsdlType("urn:vim25", self.recording.objects[key].kind)(key, self)

    def _CreateContainerView(self, _ref: Any, _container: Any, kinds: Any, _recursive: Any) -> Any:  # noqa: N802
        ids = [key for kind in kinds for key in self._of_type(kind)]
        name = f"view-{len(self._views)}"
        self._views[name] = ids
        return vim.view.ContainerView(name, self)

    def _DestroyView(self, ref: Any) -> None:  # noqa: N802
        self._views.pop(ref._moId)

    def _of_type(self, kind: Any) -> list[str]:
        return [key for key in self.recording.objects if isinstance(self.object(key), kind)]

    def _RetrieveManagedMethodExecuter(self, ref: Any) -> Any:  # noqa: N802
        return executer_of(f"executer-{ref._moId}", self)

    def _ExecuteSoap(  # noqa: N802
        self, ref: Any, _moid: str, _version: str, method: str, given: Any
    ) -> Any:
        command = " ".join(method.removeprefix("vim.EsxCLI.").split("."))
        host = ref._moId.removeprefix("executer-")
        arguments = {argument.name: argument.val for argument in given or []}
        found = find_command(self.recording.commands, EsxcliCommand(host, command, arguments))
        if found is None:
            raise NotRecorded(f"esxcli {command} {arguments} of {host} is not in the recording")
        return result_of(found.response, found.fault, found.detail)

    def _RetrievePropertiesEx(self, _ref: Any, specs: Any, _options: Any) -> Any:  # noqa: N802
        (spec,) = specs
        collector = vmodl.query.PropertyCollector
        result = collector.RetrieveResult()
        result.objects.extend(self._content(spec, key) for key in self._chosen(spec))
        return result if result.objects else None

    def _chosen(self, spec: Any) -> list[str]:
        """Return the ids of the objects that a filter selects."""
        starts = [entry.obj for entry in spec.objectSet]
        walks = [step for entry in spec.objectSet for step in entry.selectSet or []]
        if not walks:
            for ref in starts:
                if ref._moId not in self.recording.objects:
                    raise vmodl.fault.ManagedObjectNotFound(obj=ref, msg="the object is not in the recording")
            return [ref._moId for ref in starts]
        kind = spec.propSet[0].type
        if walks[0].path == "view":
            return [key for key in self._views[starts[0]._moId] if isinstance(self.object(key), kind)]
        link = key_of_link(starts, walks[0].path, kind._wsdlName)
        if link not in self.recording.links:
            raise NotRecorded(f"the traversal {link} is not in the recording")
        return self.recording.links[link]

    def _content(self, spec: Any, key: str) -> Any:
        recorded, ref = self.recording.objects[key], self.object(key)
        paths = [path for selected in spec.propSet if isinstance(ref, selected.type) for path in selected.pathSet]
        found = [
            (path, self._value(recorded, selected.type, path))
            for selected in spec.propSet
            for path in selected.pathSet
            if path in paths
        ]
        collector = vmodl.query.PropertyCollector
        given = [vmodl.DynamicProperty(name=path, val=value) for path, value in found if value is not None]
        return collector.ObjectContent(obj=ref, propSet=given)

    def _value(self, recorded: Any, kind: Any, path: str) -> Any:
        """Return a property, or None if the server did not return it when the recording was made."""
        if path in recorded.values:
            return recorded.values[path]
        by_kind = self.recording.requested
        requested = {path for name in (kind._wsdlName, recorded.kind) for path in by_kind.get(name, ())}
        if path in requested or path in NEVER_READ:
            return None
        raise NotRecorded(f"property {path} of {recorded.kind} is not in the recording")


@contextmanager
def replayed(path: Path) -> Iterator[Session]:
    """Open a session with the recording in an archive or folder."""
    stub = Replay()
    stub.recording = archive.read(path, stub)
    yield Session(SERVER, stub.recording.content, stub, ACCOUNT, stub.exchange)


def accept(session: Session) -> acceptance.AcceptanceRun:
    """Return the results of all readers on a recording."""
    named = {kind: _names(session, kind) for kind in (vim.VirtualMachine, vim.HostSystem, vim.DistributedVirtualSwitch)}
    params = {key: option.get("default") for key, option in acceptance.OPTIONS.items()}
    params.update(vms=named[vim.VirtualMachine], hosts=named[vim.HostSystem], days=3650.0)
    params["switch"] = next(iter(named[vim.DistributedVirtualSwitch]), "")
    request, scope = acceptance.read_request(session, params), acceptance.full_scope()
    return acceptance.AcceptanceRun(session, request, scope, READERS)


def _names(session: Session, kind: Any) -> list[str]:
    return sorted(str(values["name"]) for _ref, values in properties.find_all(session, kind, ("name",)))
