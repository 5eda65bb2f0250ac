# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""A recording: what a server answered to reads, by object and property, by command, by call and by request."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...vsphere.typed import plain


@dataclass
class Recorded:
    """One object: its kind, and its properties by path."""

    kind: str
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class Command:
    """One esxcli command on one host, by the host's id: its arguments, and its answer or what it failed with."""

    host: str
    command: str
    arguments: dict[str, str]
    response: str | None = None
    fault: str | None = None
    detail: str | None = None


@dataclass
class Answer:
    """The answer to one call, or the fault with which it failed."""

    value: Any = None
    fault: Any = None


@dataclass
class Request:
    """One request of the REST API and its answer."""

    verb: str
    path: str
    body: str | None
    status: int
    text: str


@dataclass
class Recording:
    """All answers.

    ``asked`` are the paths that were asked for, by kind of object: one of them that an object lacks is unset there.
    ``links`` are the objects to which a property of others led. ``schemas`` are esxcli's own descriptions of its
    commands, by namespace.
    """

    server: dict[str, Any] = field(default_factory=dict)
    content: Any = None
    asked: dict[str, set[str]] = field(default_factory=dict)
    objects: dict[str, Recorded] = field(default_factory=dict)
    links: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[str, Answer] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    schemas: dict[str, str] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    def add(self, other: Recording) -> None:
        """Take over all that another recording holds."""
        self.server.update(other.server)
        for kind, paths in other.asked.items():
            self.asked.setdefault(kind, set()).update(paths)
        for key, one in other.objects.items():
            self.objects.setdefault(key, Recorded(one.kind)).values.update(one.values)
        self.links.update(other.links)
        self.calls.update(other.calls)
        self.commands += [one for one in other.commands if not found_command(self.commands, one)]
        self.requests += [one for one in other.requests if one not in self.requests]

    def of_kind(self, kind: str) -> list[str]:
        """The ids of all objects of a kind."""
        return [key for key, one in self.objects.items() if one.kind == kind]


def key_of_call(kind: str, key: str, method: str, arguments: Iterable[Any]) -> str:
    """The name of a call in a recording: the same for the same question at any time."""
    return f"{kind} {key} {method} {json.dumps(plain(tuple(arguments)), sort_keys=True)}"


def key_of_link(starts: Iterable[Any], path: str, kind: str) -> str:
    """The name of a walk along a property of some objects in a recording."""
    return f"{','.join(sorted(str(ref._moId) for ref in starts))} {path} {kind}"


def found_command(commands: Iterable[Command], wanted: Command) -> Command | None:
    """The recorded answer to the same command with the same arguments on the same host."""
    asked = (wanted.host, wanted.command, wanted.arguments)
    return next((one for one in commands if (one.host, one.command, one.arguments) == asked), None)
