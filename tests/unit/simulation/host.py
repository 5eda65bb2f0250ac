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
        return self.boots_left if self.level == profile.level else profile.boots

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
        # A profile with several boots has settings for each of them.
        self.is_applied = not self.boots_left
