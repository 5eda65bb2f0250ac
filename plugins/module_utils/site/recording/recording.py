"""A recording of a server's answers to reads: by object and property, by command, by call and by request."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...vsphere.typed import plain


@dataclass
class RecordedObject:
    """One object: its kind, and the values of its properties by path."""

    kind: str
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class EsxcliCommand:
    """One esxcli command on one host (by id): the arguments, and the answer or the fault."""

    host: str
    command: str
    arguments: dict[str, str]
    response: str | None = None
    fault: str | None = None
    detail: str | None = None


@dataclass
class CallAnswer:
    """The answer to one call, or its fault."""

    value: Any = None
    fault: Any = None


@dataclass
class RestRequest:
    """One request to the REST API and its answer."""

    verb: str
    path: str
    body: str | None
    status: int
    text: str


@dataclass
class Recording:
    """All answers.

    ``requested`` are the requested paths, by kind of object: a path that an object lacks is unset. ``links`` are the
    objects that a traversal along a property of other objects found. ``schemas`` are esxcli's descriptions of its
    commands, by namespace.
    """

    server: dict[str, Any] = field(default_factory=dict)
    content: Any = None
    requested: dict[str, set[str]] = field(default_factory=dict)
    objects: dict[str, RecordedObject] = field(default_factory=dict)
    links: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[str, CallAnswer] = field(default_factory=dict)
    commands: list[EsxcliCommand] = field(default_factory=list)
    schemas: dict[str, str] = field(default_factory=dict)
    requests: list[RestRequest] = field(default_factory=list)

    def add(self, other: Recording) -> None:
        self.server.update(other.server)
        for kind, paths in other.requested.items():
            self.requested.setdefault(kind, set()).update(paths)
        for key, recorded in other.objects.items():
            self.objects.setdefault(key, RecordedObject(recorded.kind)).values.update(recorded.values)
        self.links.update(other.links)
        self.calls.update(other.calls)
        self.commands += [command for command in other.commands if not find_command(self.commands, command)]
        self.requests += [request for request in other.requests if request not in self.requests]


def key_of_call(kind: str, key: str, method: str, arguments: Iterable[object]) -> str:
    """Return the key of a call in a recording: the same call always has the same key."""
    return f"{kind} {key} {method} {json.dumps(plain(tuple(arguments)), sort_keys=True)}"


def key_of_link(starts: Iterable[Any], path: str, kind: str) -> str:
    """Return the key of a traversal along a property of objects in a recording."""
    return f"{','.join(sorted(str(ref._moId) for ref in starts))} {path} {kind}"


def find_command(commands: Iterable[EsxcliCommand], desired: EsxcliCommand) -> EsxcliCommand | None:
    """Return the recorded command with the same arguments on the same host, or None."""
    key = (desired.host, desired.command, desired.arguments)
    return next((each for each in commands if (each.host, each.command, each.arguments) == key), None)
