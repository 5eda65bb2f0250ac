# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""A recording as an archive: a few files of JSON and a manifest that says what is in them."""

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
from .recording import Answer, Command, Recorded, Recording, Request

FORMAT = 1
MANIFEST = "manifest.json"
# What its parts raise where they find something else than was written; pyVmomi has no errors of its own for that.
_NO_RECORDING = (
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError),
    *(ExpatError, tarfile.TarError),
)
_LARGEST = 64 * 1024 * 1024


def files_of(recording: Recording) -> dict[str, str]:
    """The files of a recording by name, without the manifest."""
    version = recording.server["soap"]

    def xml(value: Any) -> str | None:
        return None if value is None else text_of(value, version)

    parts = {
        "server.json": recording.server,
        "content.json": xml(recording.content),
        "asked.json": {kind: sorted(paths) for kind, paths in recording.asked.items()},
        "objects.json": {
            key: {"kind": one.kind, "values": {path: xml(value) for path, value in one.values.items()}}
            for key, one in recording.objects.items()
        },
        "links.json": recording.links,
        "calls.json": {key: {"value": xml(one.value), "fault": xml(one.fault)} for key, one in recording.calls.items()},
        "esxcli.json": [asdict(one) for one in recording.commands],
        "esxcli_schemas.json": recording.schemas,
        "rest.json": [asdict(one) for one in recording.requests],
    }
    return {name: json.dumps(part, indent=1, sort_keys=True) for name, part in parts.items()}


def manifest_of(recording: Recording, files: Mapping[str, str], replaced: Mapping[str, int]) -> dict[str, Any]:
    """What is in an archive, for whoever decides whether to keep it."""
    return {
        "format": FORMAT,
        "server": {key: recording.server[key] for key in ("version", "build", "recorded")},
        "objects": dict(sorted(Counter(one.kind for one in recording.objects.values()).items())),
        "properties": {kind: sorted(paths) for kind, paths in sorted(recording.asked.items())},
        "esxcli": dict(sorted(Counter(one.command for one in recording.commands).items())),
        "calls": dict(sorted(Counter(key.split(" ")[2] for key in recording.calls).items())),
        "requests": sorted({f"{one.verb} {one.path.partition('?')[0]}" for one in recording.requests}),
        "replaced": dict(replaced),
        "never_read": sorted(NEVER_READ),
        "files": {name: len(text.encode()) for name, text in files.items()},
    }


def packed(files: Mapping[str, str], manifest: Mapping[str, Any]) -> bytes:
    """The archive; its bytes follow from its content alone."""
    everything = {MANIFEST: json.dumps(manifest, indent=1, sort_keys=True), **files}
    packed_files = io.BytesIO()
    with tarfile.open(fileobj=packed_files, mode="w:xz") as archive:
        for name, text in everything.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text.encode()), 0o644
            archive.addfile(info, io.BytesIO(text.encode()))
    return packed_files.getvalue()


def read(path: Path, stub: Any) -> Recording:
    """The recording of an archive, or of a folder with its files; its objects are asked over ``stub``."""
    try:
        return _read(path, stub)
    except _NO_RECORDING as error:
        said = f"its files are not those of a recording ({type(error).__name__}: {error})"
        raise Refused(str(path), "replay it", said, "name a recording as record.yml made it, or record anew") from error


def _read(path: Path, stub: Any) -> Recording:
    parts = {name: json.loads(text) for name, text in _texts(path).items()}
    if parts[MANIFEST]["format"] != FORMAT:
        raise Refused(str(path), "replay it", f"its format is {parts[MANIFEST]['format']}, not {FORMAT}", "record anew")

    def value(text: str | None) -> Any:
        return None if text is None else value_of(text, stub)

    return Recording(
        server=parts["server.json"],
        content=value(parts["content.json"]),
        asked={kind: set(paths) for kind, paths in parts["asked.json"].items()},
        objects={
            key: Recorded(one["kind"], {path: value(text) for path, text in one["values"].items()})
            for key, one in parts["objects.json"].items()
        },
        links=parts["links.json"],
        calls={key: Answer(value(one["value"]), value(one["fault"])) for key, one in parts["calls.json"].items()},
        commands=[Command(**one) for one in parts["esxcli.json"]],
        schemas=parts["esxcli_schemas.json"],
        requests=[Request(**one) for one in parts["rest.json"]],
    )


def _texts(path: Path) -> dict[str, str]:
    if path.is_dir():
        return {one.name: one.read_text(encoding="utf-8") for one in sorted(path.glob("*.json"))}
    found = dict[str, str]()
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is None or member.size > _LARGEST:
                raise Refused(str(path), "read it", f"{member.name} is no file of a recording", "record anew")
            found[member.name] = file.read().decode()
    return found
