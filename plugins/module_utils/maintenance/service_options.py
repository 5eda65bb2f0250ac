"""The options of hosts that leave or enter service; all deadlines are in seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import Abandoned
from .evacuation import DRS

# Reports progress: the host, and what happened.
ReportProgress = Callable[[str, str], None]
VSAN = {"ensure_accessibility": "ensureObjectAccessibility", "evacuate": "evacuateAllData", "no_action": "noAction"}


@dataclass(frozen=True)
class ServiceOptions:
    """How hosts are evacuated and rebooted, and the user who does it.

    ``boot_times`` are the boots that a reboot should end, by host; a host with another boot was already rebooted.
    ``run_lives`` returns whether the run that started the module still runs; ``rebooting`` are the object ids of hosts
    with a recent reboot task. ``require_free`` refuses a host whose cluster another run holds. ``take_over`` are hosts
    that another user put into maintenance mode and that this collection treats as its own from now on. For a
    ``rollout``, only hosts that a rollout took out of service are its own.
    """

    by: str
    maintenance_timeout: int = 3600
    reboot_timeout: int = 1800
    power_off: bool = False
    power_off_timeout: int = 300
    moved_by: str = DRS
    vsan: str = "ensure_accessibility"
    non_disruptive: bool = False
    services: tuple[str, ...] = ()
    boot_times: Mapping[str, str] = field(default_factory=dict)
    only_if_ours: bool = True
    each_alone: bool = False
    take_over: Collection[str] = ()
    rollout: bool = False
    report: ReportProgress = lambda _host, _what: None
    run_lives: Callable[[], bool] = lambda: True
    require_free: Callable[[Any, str], None] = lambda _host, _tried: None
    rebooting: set[str] = field(default_factory=set)

    def go_on(self, target: str, tried: str) -> None:
        """Stop before the next step if the run that started this module has ended: a later run may differ."""
        if not self.run_lives():
            raise Abandoned(target, tried, "the ansible run that requested it has ended", "run again")
