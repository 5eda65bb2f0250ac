"""A recording as an archive of JSON files, with a manifest of their content."""

from __future__ import annotations

import io
import json
import tarfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

from ...errors import Refused
from ...vsphere.wire import text_of, value_of
from .recorder import NEVER_READ
from .recording import CallAnswer, EsxcliCommand, RecordedObject, Recording, RestRequest

FORMAT = 1
MANIFEST = "manifest.json"
# The exceptions for malformed files; pyVmomi has no specific exceptions for them.
_NO_RECORDING = (
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError),
    *(ExpatError, tarfile.TarError),
)
_LARGEST = 64 * 1024 * 1024


def files_of(recording: Recording) -> dict[str, str]:
    """Return the files of a recording by name, without the manifest."""
    version = recording.server["soap"]

    def xml(value: object) -> str | None:
        return None if value is None else text_of(value, version)

    parts = {
        "server.json": recording.server,
        "content.json": xml(recording.content),
        "asked.json": {kind: sorted(paths) for kind, paths in recording.requested.items()},
        "objects.json": {
            key: {"kind": recorded.kind, "values": {path: xml(value) for path, value in recorded.values.items()}}
            for key, recorded in recording.objects.items()
        },
        "links.json": recording.links,
        "calls.json": {
            key: {"value": xml(answer.value), "fault": xml(answer.fault)} for key, answer in recording.calls.items()
        },
        "esxcli.json": [asdict(command) for command in recording.commands],
        "esxcli_schemas.json": recording.schemas,
        "rest.json": [asdict(request) for request in recording.requests],
    }
    return {name: json.dumps(part, indent=1, sort_keys=True) for name, part in parts.items()}


def manifest_of(recording: Recording, files: Mapping[str, str], replaced: Mapping[str, int]) -> dict[str, Any]:
    """Return a summary of an archive, for the decision whether to share it."""
    return {
        "format": FORMAT,
        "server": {key: recording.server[key] for key in ("version", "build", "recorded")},
        "objects": dict(sorted(Counter(recorded.kind for recorded in recording.objects.values()).items())),
        "properties": {kind: sorted(paths) for kind, paths in sorted(recording.requested.items())},
        "esxcli": dict(sorted(Counter(command.command for command in recording.commands).items())),
        "calls": dict(sorted(Counter(key.split(" ")[2] for key in recording.calls).items())),
        "requests": sorted({f"{request.verb} {request.path.partition('?')[0]}" for request in recording.requests}),
        "replaced": dict(replaced),
        "never_read": sorted(NEVER_READ),
        "files": {name: len(text.encode()) for name, text in files.items()},
    }


def archive_bytes(files: Mapping[str, str], manifest: Mapping[str, object]) -> bytes:
    """Return the archive; its bytes depend only on its content."""
    everything = {MANIFEST: json.dumps(manifest, indent=1, sort_keys=True), **files}
    packed_files = io.BytesIO()
    with tarfile.open(fileobj=packed_files, mode="w:xz") as archive:
        for name, text in everything.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text.encode()), 0o644
            archive.addfile(info, io.BytesIO(text.encode()))
    return packed_files.getvalue()


def read(path: Path, stub: object) -> Recording:
    """Return the recording in an archive, or in a folder with its files; its objects send their calls to ``stub``."""
    try:
        return _read(path, stub)
    except _NO_RECORDING as error:
        cause = f"its files are not those of a recording ({type(error).__name__}: {error})"
        raise Refused(str(path), "replay it", cause, "use a recording from record.yml, or record again") from error


def _read(path: Path, stub: object) -> Recording:
    parts = {name: json.loads(text) for name, text in _texts(path).items()}
    if parts[MANIFEST]["format"] != FORMAT:
        cause = f"its format is {parts[MANIFEST]['format']}, not {FORMAT}"
        raise Refused(str(path), "replay it", cause, "record again")

    def value(text: str | None) -> Any:
        return None if text is None else value_of(text, stub)

    return Recording(
        server=parts["server.json"],
        content=value(parts["content.json"]),
        requested={kind: set(paths) for kind, paths in parts["asked.json"].items()},
        objects={
            key: RecordedObject(entry["kind"], {path: value(text) for path, text in entry["values"].items()})
            for key, entry in parts["objects.json"].items()
        },
        links=parts["links.json"],
        calls={
            key: CallAnswer(value(entry["value"]), value(entry["fault"])) for key, entry in parts["calls.json"].items()
        },
        commands=[EsxcliCommand(**entry) for entry in parts["esxcli.json"]],
        schemas=parts["esxcli_schemas.json"],
        requests=[RestRequest(**entry) for entry in parts["rest.json"]],
    )


def _texts(path: Path) -> dict[str, str]:
    if path.is_dir():
        return {file.name: file.read_text(encoding="utf-8") for file in sorted(path.glob("*.json"))}
    texts = dict[str, str]()
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is None or member.size > _LARGEST:
                raise Refused(str(path), "read it", f"{member.name} is not a file of a recording", "record again")
            texts[member.name] = file.read().decode()
    return texts
