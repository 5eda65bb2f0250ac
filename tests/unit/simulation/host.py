"""A host of the simulated site, and the profile that it has or that a user requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MODULE = "nmlx5_core"


@dataclass(frozen=True)
class Profile:
    """A requested profile: its number, the boots that it needs, and whether hosts must leave service for it."""

    level: int = 0
    boots: int = 0
    leaves: bool = True

    @property
    def option(self) -> dict[str, Any]:
        """Return the profile as an option of esxi_profile."""
        options = {"level": self.level, "boots": self.boots, "leaves": self.leaves}
        return {"kernel_modules": [{"name": MODULE, "options": options}]}

    @classmethod
    def of(cls, option: Mapping[str, Any]) -> Profile:
        """Return the profile of an option."""
        return cls(**option["kernel_modules"][0]["options"])


@dataclass
class Host:
    """A host: the profile that it has, the boots until that is in force, and who took it out of service."""

    level: int = 0
    uuid: str = "built at first"
    boots_left: int = 0
    is_applied: bool = True
    is_out: bool = False
    # Whether it enters maintenance mode, for which DRS moves its virtual machines away.
    is_entering: bool = False
    by: str = ""
    is_up: bool = True
    is_lost: bool = False
    ending_boot: str = ""
    boots: int = 0
    image: int = 0
    # The questions that a driver leaves unanswered after each boot, and those that are left.
    slow_driver: int = 0
    waiting: int = 0
    # The time at which a remediation by vLCM ends; 0: none runs.
    remediated_at: float = 0.0

    @property
    def responds(self) -> bool:
        return self.is_up and not self.is_lost

    @property
    def boot_time(self) -> str:
        return f"boot {self.boots}"

    def has(self, profile: Profile) -> bool:
        """Return whether a profile is in force."""
        return self.level == profile.level and not self.boots_left

    def differs(self, profile: Profile) -> bool:
        """Return whether a write is left to do."""
        return self.level != profile.level or not self.is_applied

    def boots_for(self, profile: Profile) -> int:
        return (self.boots_left or int(self.waiting > 0)) if self.level == profile.level else profile.boots

    def needs(self, profile: Profile) -> list[str]:
        if self.boots_for(profile):
            return ["reboot"]
        return ["maintenance"] if self.differs(profile) and profile.leaves else []

    def apply(self, profile: Profile) -> None:
        if self.level != profile.level:
            self.level, self.boots_left = profile.level, profile.boots
        self.is_applied = True

    def boot(self) -> None:
        self.boots, self.is_up, self.boots_left = self.boots + 1, True, max(0, self.boots_left - 1)
        self.waiting = self.slow_driver
        # A profile with several boots has settings for each of them.
        self.is_applied = not self.boots_left


def image_report(name: str, applies: bool) -> dict[str, Any]:
    """Return the plan of the image of a cluster for one host, as esxi_image returns it."""
    needs = ["maintenance", "reboot"] if applies else []
    why = ["the image of its cluster is applied by vLCM (1 reboot)"] if applies else []
    return {"host": name, "changed": applies, "needs": needs, "reboots": int(applies), "why": why}


def host_facts(name: str, host: Host) -> dict[str, Any]:
    """Return a host as cluster_info returns it."""
    return {
        "host": name,
        "version": "8.0.3",
        "build": "1",
        "maintenance": host.is_out,
        "ours": host.by == "us",
        "connection": "connected" if host.responds else "notResponding",
        "device_classes": {},
    }


def host_entry(name: str, host: Host) -> dict[str, Any]:
    """Return a host as esxi_info returns it."""
    if not host.responds:
        return {"host": name, "uuid": host.uuid, "failed": True, "msg": f"{name}: vCenter shows it as notResponding"}
    modules = {MODULE: {"options": {"level": host.level, "boots": 1, "leaves": True}, "text": ""}}
    return {"host": name, "uuid": host.uuid, "vibs": {"running": []}, "kernel_modules": modules}
