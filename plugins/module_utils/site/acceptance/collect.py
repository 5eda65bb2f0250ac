# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Makes a recording of a site: all that the readers read of the named hosts and virtual machines, without names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...errors import CollectionError
from ...vsphere import host_clocks, properties
from ...vsphere.esxcli import Esxcli
from ...vsphere.properties import id_of
from ...vsphere.sdk import vim
from ...vsphere.session import Session
from ..recording import archive, nameless
from ..recording.pseudonyms import Pseudonyms
from ..recording.recorder import Scope
from ..recording.recording import Recording
from . import acceptance
from .readers import Question


@dataclass(frozen=True)
class Collected:
    """The files of a recording, and what is in them."""

    files: Mapping[str, str]
    manifest: Mapping[str, Any]

    @property
    def archive(self) -> bytes:
        """The files and the manifest as one archive."""
        return archive.packed(self.files, self.manifest)


def collect(session: Session, params: Mapping[str, Any]) -> Collected:
    """Read the site, replace its names, and say what there is."""
    asked = _with_hosts_of_machines(session, acceptance.question(session, params))
    scope = Scope(frozenset(id_of(ref) for ref in (*asked.hosts.values(), *asked.vms.values())))
    seen = acceptance.Acceptance(session, asked, scope)
    recording = seen.recording
    recording.server.update(_server(session))
    recording.schemas = _schemas(session, asked, recording)
    pseudonyms = _named(session)
    nameless.replace(recording, pseudonyms)
    files = archive.files_of(recording)
    left = pseudonyms.left_in("\n".join(files.values()))
    manifest = archive.manifest_of(recording, files, pseudonyms.counted())
    stumbled = [f"{row['reader']}: {pseudonyms.text(text)}" for row in seen.rows for text in row["what"]]
    return Collected(files, {**manifest, "left": left, "not_understood": stumbled})


def _with_hosts_of_machines(session: Session, asked: Question) -> Question:
    """The question with the hosts on which its virtual machines are."""
    values = properties.read_many(session, list(asked.vms.values()), ("runtime.host",))
    refs = {id_of(one.get("runtime.host")): one["runtime.host"] for one in values.values() if one.get("runtime.host")}
    names = properties.read_many(session, list(refs.values()), ("name",))
    return replace(asked, hosts={**{names[key]["name"]: ref for key, ref in refs.items()}, **asked.hosts})


def _named(session: Session) -> Pseudonyms:
    """Pseudonyms that know the names of all objects, as those outside of the recording stand in texts within."""
    pseudonyms = Pseudonyms()
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


def _schemas(session: Session, asked: Question, recording: Recording) -> dict[str, str]:
    """esxcli's own descriptions of the commands that were used, as one host gives them."""
    if not recording.commands:
        return {}
    first = recording.commands[0].host
    name, ref = next((name, ref) for name, ref in asked.hosts.items() if id_of(ref) == first)
    esxcli, found = Esxcli(session, ref, name), dict[str, str]()
    for namespace in sorted({one.command.rpartition(" ")[0] for one in recording.commands}):
        found[namespace] = _schema(esxcli, namespace)
    return found


def _schema(esxcli: Esxcli, namespace: str) -> str:
    try:
        return esxcli.schema(namespace)
    except CollectionError as error:
        return f"not given: {error.said}"


def lines(manifest: Mapping[str, Any]) -> list[str]:
    """What is in a recording, for whoever decides whether to keep it."""
    server, size = manifest["server"], sum(manifest["files"].values())
    return [
        f"vCenter {server['version']} build {server['build']}, recorded {server['recorded']}: {size} bytes unpacked",
        f"objects: {_counted(manifest['objects'])}",
        *(f"properties of {kind}: {', '.join(paths)}" for kind, paths in manifest["properties"].items()),
        f"esxcli: {_counted(manifest['esxcli'])}",
        f"other calls: {_counted(manifest['calls'])}",
        f"REST: {', '.join(manifest['requests']) or 'nothing'}",
        f"replaced by pseudonyms: {_counted(manifest['replaced'])}",
        f"never read: {', '.join(manifest['never_read'])}",
        f"words of the site that are left: {', '.join(manifest['left']) or 'none'}",
        *(f"not understood: {text}" for text in manifest["not_understood"]),
    ]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in counts.items()) or "nothing"
