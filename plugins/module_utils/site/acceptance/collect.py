"""Record a site: the answers to all readers for the named hosts and virtual machines, without the names of the site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...errors import CollectionError
from ...runner import Params
from ...vsphere import host_clocks, properties
from ...vsphere.esxcli import Esxcli
from ...vsphere.properties import id_of
from ...vsphere.sdk import vim
from ...vsphere.session import Session
from ..recording import anonymization, archive
from ..recording.pseudonyms import Pseudonyms
from ..recording.recorder import Scope
from ..recording.recording import Recording
from . import acceptance
from .reader import ReadRequest
from .readers import READERS


@dataclass(frozen=True)
class CollectedRecording:
    """The files of a recording, and their manifest."""

    files: Mapping[str, str]
    manifest: Mapping[str, Any]

    @property
    def archive(self) -> bytes:
        """Return the files and the manifest as one archive."""
        return archive.archive_bytes(self.files, self.manifest)


def collect(session: Session, params: Params) -> CollectedRecording:
    """Read the site, replace its names, and return the files with their manifest."""
    request = _with_hosts_of_machines(session, acceptance.read_request(session, params))
    scope = Scope(frozenset(id_of(ref) for ref in (*request.hosts.values(), *request.vms.values())))
    run = acceptance.AcceptanceRun(session, request, scope, READERS)
    recording = run.recording
    recording.server.update(_server(session))
    recording.schemas = _schemas(session, request, recording)
    pseudonyms = _pseudonyms(session)
    anonymization.replace_names(recording, pseudonyms)
    files = archive.files_of(recording)
    left = pseudonyms.left_in("\n".join(files.values()))
    manifest = archive.manifest_of(recording, files, pseudonyms.counted())
    not_understood = [f"{row['reader']}: {pseudonyms.free_text(text)}" for row in run.rows for text in row["what"]]
    return CollectedRecording(files, {**manifest, "left": left, "not_understood": not_understood})


def _with_hosts_of_machines(session: Session, request: ReadRequest) -> ReadRequest:
    values = properties.read_many(session, list(request.vms.values()), ("runtime.host",))
    hosts = [each["runtime.host"] for each in values.values() if each.get("runtime.host")]
    refs = {id_of(host): host for host in hosts}
    names = properties.read_many(session, list(refs.values()), ("name",))
    return replace(request, hosts={**{names[key]["name"]: ref for key, ref in refs.items()}, **request.hosts})


def _pseudonyms(session: Session) -> Pseudonyms:
    """Return pseudonyms for vCenter and all objects: texts in a recording may contain names of other objects."""
    pseudonyms = Pseudonyms()
    server = str(session.params["hostname"])
    # The name may include a port; an IPv6 address is recognised by its format.
    pseudonyms.name("host", server if server.count(":") > 1 else server.partition(":")[0])
    for kind, word in (
        (vim.HostSystem, "host"),
        (vim.VirtualMachine, "guest"),
        (vim.ClusterComputeResource, "cluster"),
    ):
        for _ref, values in properties.find_all(session, kind, ("name",)):
            pseudonyms.name(word, values["name"])
    return pseudonyms


def _server(session: Session) -> dict[str, Any]:
    about = session.content.about
    return {
        "version": about.version,
        "build": about.build,
        "api": about.apiVersion,
        "soap": session.stub.version,
        "recorded": host_clocks.server_time(session).date().isoformat(),
    }


def _schemas(session: Session, request: ReadRequest, recording: Recording) -> dict[str, str]:
    """Return the descriptions of the recorded commands from the esxcli of one host."""
    if not recording.commands:
        return {}
    first = recording.commands[0].host
    name, ref = next((name, ref) for name, ref in request.hosts.items() if id_of(ref) == first)
    esxcli = Esxcli(session, ref, name)
    namespaces = sorted({command.command.rpartition(" ")[0] for command in recording.commands})
    return {namespace: _schema(esxcli, namespace) for namespace in namespaces}


def _schema(esxcli: Esxcli, namespace: str) -> str:
    try:
        return esxcli.schema(namespace)
    except CollectionError as error:
        return f"not available: {error.reason}"


def lines(manifest: Mapping[str, Any]) -> list[str]:
    """Return the manifest as lines of text, for the decision whether to share the recording."""
    server, size = manifest["server"], sum(manifest["files"].values())
    return [
        f"vCenter {server['version']} build {server['build']}, recorded {server['recorded']}: {size} bytes unpacked",
        f"objects: {_counted(manifest['objects'])}",
        *(f"properties of {kind}: {', '.join(paths)}" for kind, paths in manifest["properties"].items()),
        f"esxcli: {_counted(manifest['esxcli'])}",
        f"other calls: {_counted(manifest['calls'])}",
        f"REST: {', '.join(manifest['requests']) or 'nothing'}",
        f"replaced with pseudonyms: {_counted(manifest['replaced'])}",
        f"never read: {', '.join(manifest['never_read'])}",
        f"remaining words of the site: {', '.join(manifest['left']) or 'none'}",
        *(f"not understood: {text}" for text in manifest["not_understood"]),
    ]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in counts.items()) or "nothing"
