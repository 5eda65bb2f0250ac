# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Runs the readers against a site, and judges each by what the server answered to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import CollectionError, NotFound
from ...vsphere import inventory, properties
from ...vsphere.properties import id_of
from ...vsphere.sdk import vim
from ...vsphere.session import Session
from ...vsphere.wire import observed
from ..recording.recorder import Recorder, Scope
from ..recording.recording import Recording
from . import shapes
from .assumptions import REFUTED
from .readers import VCENTER, Question, Reader, Unread, chosen

UNDERSTOOD, NOT_UNDERSTOOD, NEVER_SEEN, NOTHING = "understood", "not understood", "never seen by us", "not there"
_KIND = ("config.product.version", "config.product.build", "summary.hardware.vendor", "summary.hardware.model")
KNOWN_VERSIONS = ((7, 0), (8, 0), (9, 0))
OPTIONS: dict[str, Any] = {
    "hosts": {"type": "list", "elements": "str"},
    "cluster": {"type": "str"},
    "vms": {"type": "list", "elements": "str", "default": []},
    "tag_category": {"type": "str", "default": ""},
    "switch": {"type": "str", "default": "rdma"},
    "days": {"type": "float", "default": 7.0},
}


def question(session: Session, params: Mapping[str, Any]) -> Question:
    """The objects that the options name: hosts with their clusters, and virtual machines."""
    hosts = inventory.find_hosts(session, params, ("parent", *_KIND))
    hosts.refresh()
    chosen_hosts = _one_of_each_kind(hosts.hosts) if params.get("short") else hosts.hosts
    machines = _machines(session, params["vms"])
    parents = {id_of(host["parent"]): host["parent"] for host in chosen_hosts}
    clusters = [ref for ref in parents.values() if isinstance(ref, vim.ClusterComputeResource)]
    names = properties.read_many(session, clusters, ("name",))
    return Question(
        hosts={host.name: host.ref for host in chosen_hosts},
        vms=machines,
        clusters={names[ref._moId]["name"]: ref for ref in clusters},
        tag_category=params["tag_category"],
        switch=params["switch"],
        days=params["days"],
    )


def _one_of_each_kind(hosts: Sequence[inventory.Host]) -> list[inventory.Host]:
    """One connected host of each version and model: the others answer alike."""
    kinds = {tuple(str(host[path]) for path in _KIND): host for host in reversed(hosts) if host.reachable}
    return sorted(kinds.values(), key=lambda host: host.name)


def _machines(session: Session, names: Sequence[str]) -> dict[str, Any]:
    if not names:
        return {}
    every = properties.find_all(session, vim.VirtualMachine, ("name",))
    count = Counter(values["name"] for _ref, values in every)
    for name in names:
        if count[name] != 1:
            said = f"{count[name]} objects have that name" if count[name] else "there is none"
            raise NotFound(session.server, f"find one virtual machine named {name!r}", said, "correct vms")
    return {values["name"]: ref for ref, values in every if values["name"] in names}


class Acceptance:
    """What the readers say of a site, reader by reader, and all that the server answered to them."""

    def __init__(self, session: Session, asked: Question, scope: Scope, *, short: bool = False) -> None:
        self.asked = asked
        self.recording = Recording(content=session.content)
        hosts = {id_of(ref): name for name, ref in asked.hosts.items()}
        pairs = chosen(asked, short=short)
        self.rows = [_version(session), *(self._row(session, reader, name, scope, hosts) for reader, name in pairs)]

    def _row(
        self, session: Session, reader: Reader, name: str, scope: Scope, hosts: Mapping[str, str]
    ) -> dict[str, Any]:
        recording = Recording()
        with observed(session, Recorder(recording, scope)) as looked_on:
            status, said = _attempt(looked_on, reader, self.asked, name)
        self.recording.add(recording)
        return {"reader": reader.name, "object": name, **_judged(recording, status, said, hosts)}


def _version(session: Session) -> dict[str, Any]:
    """Whether the collection was tried with a vCenter of this version, be it a simulated one."""
    is_known = session.api_version[:2] in KNOWN_VERSIONS
    said = [] if is_known else [f"its API is {session.content.about.apiVersion}"]
    status = UNDERSTOOD if is_known else NEVER_SEEN
    return {"reader": "version", "object": VCENTER, "status": status, "what": said}


def _attempt(session: Session, reader: Reader, asked: Question, name: str) -> tuple[str, list[str]]:
    """Run one reader; whatever it stumbles over is what is looked for here."""
    try:
        result = reader.read(session, asked, name)
    except (CollectionError, Unread) as error:
        return NOT_UNDERSTOOD, [str(error)]
    except Exception as error:  # an answer of another shape can break a reader anywhere
        return NOT_UNDERSTOOD, [f"{reader.name} failed on {name}: {type(error).__name__}: {error}"]
    return (NOTHING, []) if reader.is_empty(result) else (UNDERSTOOD, [])


def _judged(recording: Recording, status: str, said: Sequence[str], hosts: Mapping[str, str]) -> dict[str, Any]:
    lacking = [*said, *shapes.lacking(recording, hosts)]
    strange = list(shapes.strange(recording))
    if lacking:
        return {"status": NOT_UNDERSTOOD, "what": [*lacking, *strange]}
    return {"status": NEVER_SEEN if strange else status, "what": strange}


def everything() -> Scope:
    """The scope of a run that keeps nothing: all that the account may see."""
    return Scope(None, frozenset())


def lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table for a person: reader, object, status, and what was found below it."""
    wide = [max((len(str(row[key])) for row in rows), default=0) for key in ("reader", "object")]
    found = list[str]()
    for row in rows:
        found.append(f"{row['reader']:<{wide[0]}}  {row['object']:<{wide[1]}}  {row['status']}".rstrip())
        found += [f"    {text}" for text in row["what"]]
    return found


def error(rows: Sequence[Mapping[str, Any]], assumed: Sequence[Mapping[str, Any]], *, accept_new: bool) -> str:
    """What is not understood, and assumptions that are refuted, as one error; empty where the site is accepted."""
    bad = [NOT_UNDERSTOOD] if accept_new else [NOT_UNDERSTOOD, NEVER_SEEN]
    found = [row for row in rows if row["status"] in bad]
    texts = [f"{row['reader']} of {row['object']} is {row['status']}: {'; '.join(row['what'])}" for row in found]
    refuted = [one for one in assumed if one["status"] == REFUTED]
    texts += [f"an assumption is refuted: {one['text']} But {one['said']}" for one in refuted]
    return " | ".join(texts)
