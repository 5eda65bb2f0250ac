"""The types of the results of vmotion_plan and vmotion_info; pure."""

from __future__ import annotations

from typing import Mapping, Sequence, TypedDict

from ...continuity.judged_facts import Move, PowerEvent, WorkerPlace


class Stage(TypedDict):
    """A host that leaves service, and the moves that empty it before."""

    host: str
    moves: list[Move]


class Wave(TypedDict):
    """A number of moves that start together, and why another worker waits."""

    wave: int
    moves: int
    waits: str
    reason: str


class MovePlan(TypedDict, total=False):
    """The moves in their order, with the workers and the room that the plan counted with."""

    moves: list[Move]
    # With several moves at once, and for hosts that leave service.
    waves: list[Wave]
    stages: list[Stage]
    # The moves that bring workers back from the hosts of another cluster.
    returns: list[Move]
    not_applicable: Mapping[str, Sequence[str]]
    powered_off: Sequence[str]
    profile: str
    slots: Mapping[str, int]
    # The host of each virtual machine with an RDMA card.
    rdma: Mapping[str, str]
    clock_offset_s: float
    # The host of each worker. A program keeps it as ``places``, and the time of the plan as ``at``.
    places: Mapping[str, str]
    at: float


class ServerMoves(TypedDict):
    """The moves and power events on the server since a time, and the present place of each worker."""

    moves: list[Move]
    power: list[PowerEvent]
    clock_offset_s: float
    places: dict[str, WorkerPlace]
