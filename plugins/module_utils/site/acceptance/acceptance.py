"""Run the readers on a site, and check the server's answers to each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from ...core.versions import numbers
from ...errors import CollectionError, NotFound
from ...runner import Params
from ...vsphere import inventory, properties
from ...vsphere.escaped_names import plain
from ...vsphere.properties import id_of
from ...vsphere.sdk import vim
from ...vsphere.session import Session
from ...vsphere.wire import observed
from ..recording.recorder import Recorder, Scope
from ..recording.recording import Recording
from . import shapes
from .assumptions import ASSUMPTIONS
from .reader import VCENTER, Reader, ReadRequest, UnreadableGroup, selected

UNDERSTOOD, NOT_UNDERSTOOD, NEVER_SEEN, NOTHING = "understood", "not understood", "never seen by us", "not there"
_KIND = ("config.product.version", "config.product.build", "summary.hardware.vendor", "summary.hardware.model")
KNOWN_VERSIONS = ((7, 0), (8, 0), (9, 0), (9, 1))
# The name that the role fabric gives the switch.
SWITCH = "rdma"
OPTIONS: dict[str, Any] = {
    "hosts": {"type": "list", "elements": "str"},
    "cluster": {"type": "str"},
    "vms": {"type": "list", "elements": "str", "default": []},
    "tag_category": {"type": "str", "default": ""},
    "switch": {"type": "str"},
    "days": {"type": "float", "default": 7.0},
}
PROVEN, REFUTED, OPEN = "proven", "refuted", "open"


def read_request(session: Session, params: Params) -> ReadRequest:
    """Return the objects in the options: hosts with their clusters, and virtual machines."""
    hosts = inventory.find_hosts(session, params, ("parent", *_KIND))
    hosts.refresh()
    machines = _machines(session, params["vms"])
    parents = {id_of(host["parent"]): host["parent"] for host in hosts.hosts}
    clusters = [ref for ref in parents.values() if isinstance(ref, vim.ClusterComputeResource)]
    names = properties.read_many(session, clusters, ("name",))
    return ReadRequest(
        hosts={host.name: host.ref for host in hosts.hosts},
        vms=machines,
        clusters={names[ref._moId]["name"]: ref for ref in clusters},
        tag_category=params["tag_category"],
        switch=_switch(session, params["switch"]),
        days=params["days"],
    )


def host_request(session: Session, params: Params) -> ReadRequest:
    """Return one connected host of each version and model."""
    hosts = inventory.find_hosts(session, params, _KIND)
    hosts.refresh()
    return ReadRequest(hosts={host.name: host.ref for host in _one_of_each_kind(hosts.hosts)}, vms={}, clusters={})


def _one_of_each_kind(hosts: Sequence[inventory.Host]) -> list[inventory.Host]:
    """Return one connected host of each version and model: other hosts give similar answers."""
    kinds = {tuple(str(host[path]) for path in _KIND): host for host in reversed(hosts) if host.reachable}
    return sorted(kinds.values(), key=lambda host: host.name)


def _machines(session: Session, names: Sequence[str]) -> dict[str, object]:
    if not names:
        return {}
    every = properties.find_all(session, vim.VirtualMachine, ("name",))
    count = Counter(values["name"] for _ref, values in every)
    for name in names:
        if count[name] != 1:
            cause = f"{count[name]} objects have that name" if count[name] else "there is none"
            raise NotFound(session.server, f"find one virtual machine named {name!r}", cause, "correct vms")
    return {values["name"]: ref for ref, values in every if values["name"] in names}


def _switch(session: Session, name: str | None) -> str:
    """Return the name of the RDMA switch. A switch that the user names must exist."""
    if not name:
        return SWITCH
    found = properties.find_all(session, vim.DistributedVirtualSwitch, ("name",))
    names = {plain(values["name"]) for _ref, values in found}
    if name not in names:
        cause = f"it has {', '.join(sorted(names)) or 'none'}"
        raise NotFound(session.server, f"find the distributed switch {name!r}", cause, "correct switch")
    return name


class Row(TypedDict):
    """The status of a reader on an object, and its problems."""

    reader: str
    object: str
    status: str
    what: list[str]


class CheckedAssumption(TypedDict):
    """An assumption with the result of its check."""

    name: str
    text: str
    status: str
    said: str


class AcceptanceRun:
    """The results of the readers on a site, one row for each reader and object, and the recorded answers."""

    def __init__(self, session: Session, request: ReadRequest, scope: Scope, readers: Iterable[Reader]) -> None:
        self.request = request
        self.recording = Recording(content=session.content)
        hosts = {id_of(ref): name for name, ref in request.hosts.items()}
        pairs = selected(readers, request)
        self.rows = [_version(session), *(self._row(session, reader, name, scope, hosts) for reader, name in pairs)]

    def _row(self, session: Session, reader: Reader, name: str, scope: Scope, hosts: Mapping[str, str]) -> Row:
        recording = Recording()
        with observed(session, Recorder(recording, scope)) as recorded_session:
            status, problems = _attempt(recorded_session, reader, self.request, name)
        self.recording.add(recording)
        status, problems = _judged(recording, status, problems, hosts)
        return {"reader": reader.name, "object": name, "status": status, "what": problems}


def _version(session: Session) -> Row:
    """Return a row about the version: whether the collection was tested with it, at least with a simulator."""
    version = session.content.about.apiVersion
    is_known = numbers(version)[:2] in KNOWN_VERSIONS
    problems = [] if is_known else [f"its API is {version}"]
    status = UNDERSTOOD if is_known else NEVER_SEEN
    return {"reader": "version", "object": VCENTER, "status": status, "what": problems}


def _attempt(session: Session, reader: Reader, request: ReadRequest, name: str) -> tuple[str, list[str]]:
    """Run one reader, and return its status and its error."""
    try:
        result = reader.read(session, request, name)
    except (CollectionError, UnreadableGroup) as error:
        return NOT_UNDERSTOOD, [str(error)]
    except Exception as error:  # an answer of another shape can break a reader anywhere
        return NOT_UNDERSTOOD, [f"{reader.name} failed on {name}: {type(error).__name__}: {error}"]
    return (NOTHING, []) if reader.is_empty(result) else (UNDERSTOOD, [])


def _judged(
    recording: Recording, status: str, problems: Sequence[str], hosts: Mapping[str, str]
) -> tuple[str, list[str]]:
    lacking = [*problems, *shapes.missing_fields(recording, hosts)]
    strange = list(shapes.unknown_words(recording))
    if lacking:
        return NOT_UNDERSTOOD, [*lacking, *strange]
    return NEVER_SEEN if strange else status, strange


def full_scope() -> Scope:
    """Return the scope of a run that stores nothing: all objects that the account can read."""
    return Scope(None, frozenset())


def result(run: AcceptanceRun, *, accept_new: bool = False) -> dict[str, Any]:
    """Return the rows, the assumptions, both as lines to show, and all answers that are not understood as one error."""
    judged = judged_assumptions(run.recording)
    texts = [*lines(run.rows), "", *assumption_lines(judged)]
    return {"readers": run.rows, "assumptions": judged, "lines": texts, "error": error(run.rows, judged, accept_new)}


def lines(rows: Sequence[Row]) -> list[str]:
    """Return the rows as lines of text: reader, object and status, with the problems in the lines below."""
    reader = max((len(row["reader"]) for row in rows), default=0)
    name = max((len(row["object"]) for row in rows), default=0)
    texts = list[str]()
    for row in rows:
        texts.append(f"{row['reader']:<{reader}}  {row['object']:<{name}}  {row['status']}".rstrip())
        texts += [f"    {text}" for text in row["what"]]
    return texts


def error(rows: Sequence[Row], assumed: Sequence[CheckedAssumption], accept_new: bool) -> str:
    """Return the rows that are not understood and the refuted assumptions as one error, or an empty text."""
    bad = [NOT_UNDERSTOOD] if accept_new else [NOT_UNDERSTOOD, NEVER_SEEN]
    failed = [row for row in rows if row["status"] in bad]
    texts = [f"{row['reader']} of {row['object']} is {row['status']}: {'; '.join(row['what'])}" for row in failed]
    refuted = [assumption for assumption in assumed if assumption["status"] == REFUTED]
    texts += [f"an assumption is refuted: {assumption['text']} But {assumption['said']}" for assumption in refuted]
    return " | ".join(texts)


def judged_assumptions(recording: Recording) -> list[CheckedAssumption]:
    """Return each assumption with the result of its check."""
    words = {True: PROVEN, False: REFUTED, None: OPEN}
    checked = [(assumption, *assumption.check(recording)) for assumption in ASSUMPTIONS]
    return [
        {"name": assumption.name, "text": assumption.text, "status": words[is_confirmed], "said": result}
        for assumption, is_confirmed, result in checked
    ]


def assumption_lines(checked: Sequence[CheckedAssumption]) -> list[str]:
    """Return the assumptions as lines of text, refuted ones first."""
    order = (REFUTED, PROVEN, OPEN)
    listed = sorted(checked, key=lambda assumption: order.index(assumption["status"]))
    return [f"{assumption['status']:<8} {assumption['text']} ({assumption['said']})" for assumption in listed]
