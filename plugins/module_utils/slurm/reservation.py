"""The reservation with which Slurm starts no job on the nodes of a maintenance window; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..durable.calls import Result
from ..errors import Failed
from ..training.runs.any_job import Ask
from .commands import run

# A window that no run ends does not keep its nodes forever.
MINUTES = 7 * 24 * 60
_ODD = re.compile("[^A-Za-z0-9_-]")


def name_of(window: str) -> str:
    """Return the name of the reservation of a window."""
    return f"dml-{_ODD.sub('-', window)}"


def take(ask: Ask, name: str, nodes: Sequence[str]) -> None:
    """Create the reservation unless an earlier controller did; running jobs continue on its nodes."""
    if f"ReservationName={name} " in str(_shown(ask, name).get("stdout") or ""):
        return
    given = (f"reservationname={name}", "starttime=now", f"duration={MINUTES}", "user=root", "flags=maint,ignore_jobs")
    created = _scontrol(ask, "create", "reservation", *given, f"nodes={','.join(nodes)}")
    if created.get("failed"):
        remedy = "give its administrator's rights to root on the login node, or set reservation to false in slurm"
        raise Failed(f"reservation {name} of {', '.join(nodes)}", "create it in Slurm", str(created["msg"]), remedy)


def release(ask: Ask, name: str) -> None:
    """Delete the reservation; one that is gone needs nothing."""
    deleted = _scontrol(ask, "delete", f"ReservationName={name}")
    if deleted.get("failed") and not _is_gone(ask, name):
        raise Failed(
            f"reservation {name}",
            "delete it in Slurm",
            str(deleted["msg"]),
            f"run scontrol delete ReservationName={name}",
        )


def _is_gone(ask: Ask, name: str) -> bool:
    """Return whether Slurm answers that it has no such reservation."""
    return f"Reservation {name} not found" in str(_shown(ask, name).get("msg") or "")


def _shown(ask: Ask, name: str) -> Result:
    return _scontrol(ask, "--oneliner", "show", "reservation", name)


def _scontrol(ask: Ask, *words: str) -> Result:
    return run(ask, "scontrol", *words)
