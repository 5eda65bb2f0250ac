# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: an offline bundle in the depot of vLCM, which vCenter fetches from a URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..plan import Plan
from ..vsphere.rest import Rest

PATH = "/api/esx/settings/depots/offline"
_LISTED = {str: {"location?": str}}


class OfflineBundle:
    """One offline bundle by its URL."""

    def __init__(self, rest: Rest, url: str, seconds: int, report: Callable[[str, str], None]) -> None:
        self.rest, self.url, self.seconds, self.report = rest, url, seconds, report
        self.name, self.target = f"bundle {url}", "the depot of vCenter"

    def read(self) -> dict[str, Any]:
        """Return whether a bundle was imported from the URL."""
        listed = self.rest.get(PATH, tried="list the offline bundles in its depot", form=_LISTED)
        return {"imported": any(info.get("location") == self.url for info in listed.values())}

    def plan(self, current: Mapping[str, Any]) -> Plan:
        """Return the plan that imports the bundle."""
        return Plan(before=current, after={"imported": True})

    def apply(self, _plan: Plan) -> None:
        """Have vCenter fetch the bundle."""
        body = {"source_type": "PULL", "location": self.url, "description": "imported by dml.vsphere"}
        tried = f"import {self.url} into its depot"
        remedy = "check that vCenter can reach this URL, and that it is the offline bundle of a vendor"
        self.report(self.target, f"vCenter fetches {self.url}")
        self.rest.task(PATH, body, tried=tried, seconds=self.seconds, remedy=remedy)
