"""The shapes of answers that the readers require and no type table defines: rows of esxcli, answers of the REST API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...errors import CollectionError
from ...vsphere.esxcli import Row, parse
from ...vsphere.sdk import VmomiSupport
from ...vsphere.typed import fields
from ..recording.recording import EsxcliCommand, Recording, RestRequest


@dataclass(frozen=True)
class AnswerShape:
    """The fields of an answer that a reader needs, and the other ones that recordings or documents contain."""

    needed: tuple[str, ...]
    known: tuple[str, ...] = ()


_TRAFFIC = ("Packets received", "Packets sent", "Bytes received", "Bytes sent")
_CAST = tuple(
    f"{cast} {what} {way}"
    for cast in ("Multicast", "Broadcast", "Unicast")
    for what in ("packets", "bytes")
    for way in ("received", "sent")
)
_RECEIVE = tuple(f"Receive {what} errors" for what in ("length", "over", "CRC", "frame", "FIFO", "missed"))
_TRANSMIT = tuple(f"Transmit {what} errors" for what in ("aborted", "carrier", "FIFO", "heartbeat", "window"))
_TOTALS = ("Receive packets dropped", "Transmit packets dropped", "Total receive errors", "Total transmit errors")
# Only letters are compared, in lower case: in the API, the names of the fields are the printed words without blanks.
COMMANDS: dict[str, AnswerShape] = {
    "software vib list": AnswerShape(
        ("Name", "Version", "Vendor", "Acceptance Level"), ("ID", "Install Date", "Platforms", "Status")
    ),
    "rdma device stats get": AnswerShape(
        _TRAFFIC,
        (
            *(*_CAST, "Error packets received", "Error packets sent", "Error length packets received"),
            *("Queue pairs allocated", "Name", "Device"),
        ),
    ),
    "network nic stats get": AnswerShape(
        _TRAFFIC, ("NIC name", "NIC statistics for", *_CAST, *_RECEIVE, *_TRANSMIT, *_TOTALS)
    ),
    "network nic dcb status get": AnswerShape(
        ("PFC Enabled", "PFC Configuration"),
        (
            *("Nic", "Mode", "Enabled", "Capabilities", "Willing", "PG Configuration", "IEEE ETS Configuration"),
            *("DCB Apps", "ETS Configuration", "Priority Group"),
        ),
    ),
}
# Requests to the REST API by their path, with the required fields of the answer.
REQUESTS: dict[str, tuple[str, ...]] = {
    r"/api/esx/settings/clusters/[^/]+/enablement/software": ("enabled",),
    r"/api/esx/settings/clusters/[^/]+/software": ("base_image",),
    r"/api/esx/settings/clusters/[^/]+/software/compliance": ("status",),
    r"/api/esx/settings/clusters/[^/]+/policies/apply/effective": ("pre_remediation_power_action", "disable_hac"),
    r"/api/cis/tagging/(category|tag)/[^/?]+": ("name",),
}
_COMPLIANCE = ("compliant", "non_compliant", "incompatible", "unavailable")
# Fields of type text, with the enumeration of their values in the API reference.
_ENUMERATED = {
    ("vim.host.GraphicsInfo", "graphicsType"): "vim.host.GraphicsInfo.GraphicsType",
    ("vim.host.GraphicsInfo", "vgpuMode"): "vim.host.GraphicsInfo.VgpuMode",
    ("vim.host.GraphicsConfig", "hostDefaultGraphicsType"): "vim.host.GraphicsConfig.GraphicsType",
    (
        "vim.host.GraphicsConfig",
        "sharedPassthruAssignmentPolicy",
    ): "vim.host.GraphicsConfig.SharedPassthruAssignmentPolicy",
    ("vim.host.RdmaDevice.ConnectionInfo", "state"): "vim.host.RdmaDevice.ConnectionState",
}


def missing_fields(recording: Recording, hosts: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each answer that lacks a required field; ``hosts`` are names by id."""
    for command in recording.commands:
        shape, host = COMMANDS.get(command.command), hosts.get(command.host, command.host)
        for row in _rows(command) if shape else ():
            keys = {letters(key) for key in row}
            missing = [field for field in shape.needed if letters(field) not in keys] if shape else []
            if missing:
                yield f"esxcli {command.command} on {host} lacks {_listed(missing)}; it has {_listed(sorted(row))}"
                break
    for request, answer in _answers(recording.requests):
        missing = [field for field in _needed(request) if field not in answer]
        if missing:
            yield f"{request.verb} {request.path} lacks {_listed(missing)}; it has {_listed(sorted(answer))}"
    yield from _unset(recording)


def _unset(recording: Recording) -> Iterator[str]:
    """Yield the required fields of the type tables that an answer lacks, if this differs from an empty field."""
    yielded = set[str]()
    for recorded in recording.objects.values():
        for path, value in recorded.values.items():
            for field in fields(value):
                name = f"{field.kind}.{field.name}"
                if not field.optional and field.value is None and name not in yielded:
                    yielded.add(name)
                    yield f"property {path} of {recorded.kind} lacks {name}"


def unknown_words(recording: Recording) -> Iterator[str]:
    """Yield a sentence for each field or word of an answer that no recording or document of this collection has."""
    yielded = set[str]()
    for text in (
        *_strange_fields(recording.commands),
        *_strange_words(recording),
        *_strange_states(recording.requests),
    ):
        if text not in yielded:
            yielded.add(text)
            yield text


def _strange_fields(commands: Iterable[EsxcliCommand]) -> Iterator[str]:
    for command in commands:
        shape = COMMANDS.get(command.command)
        if shape is None:
            yield f"esxcli {command.command}"
            continue
        known = {letters(field) for field in (*shape.needed, *shape.known)}
        new = sorted({key for row in _rows(command) for key in row if letters(key) not in known})
        if new:
            yield f"esxcli {command.command} has {_listed(new)}"


def _strange_words(recording: Recording) -> Iterator[str]:
    for recorded in recording.objects.values():
        for field in (field for value in recorded.values.values() for field in fields(value)):
            named = _ENUMERATED.get((field.kind, field.name))
            if named and field.value is not None and str(field.value) not in _words(named):
                yield f"{field.kind}.{field.name} is {field.value!r}"


def _strange_states(requests: Iterable[RestRequest]) -> Iterator[str]:
    for request, answer in _answers(requests):
        if request.path.endswith("/compliance") and str(answer.get("status")).lower() not in _COMPLIANCE:
            yield f"the compliance of a cluster's image is {answer.get('status')!r}"


def _words(name: str) -> tuple[str, ...]:
    return tuple(VmomiSupport.GetVmodlType(name).values)


def letters(text: str) -> str:
    """Return the letters of a field's name in lower case, for comparisons."""
    return re.sub(r"[^a-z]", "", text.lower())


def _rows(command: EsxcliCommand) -> list[Row]:
    try:
        answer = parse(command.response)
    except (SyntaxError, CollectionError):
        return []
    return [answer] if isinstance(answer, Row) else answer if isinstance(answer, list) else []


def _answers(requests: Iterable[RestRequest]) -> Iterator[tuple[RestRequest, dict[str, object]]]:
    for request in requests:
        try:
            answer = json.loads(request.text)
        except ValueError:
            continue
        if isinstance(answer, dict) and request.status < 400:
            yield request, answer


def _needed(request: RestRequest) -> tuple[str, ...]:
    return next((needed for path, needed in REQUESTS.items() if re.fullmatch(path, request.path)), ())


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"
