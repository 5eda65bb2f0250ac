# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The licences of vCenter and of a cluster's hosts: edition, features and end, never the keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from ..maintenance.lock.lock_rules import stamp
from ..vsphere.faults import translating_faults
from ..vsphere.session import Session

EVALUATION = "eval"


def assigned(session: Session, names: Mapping[str, str], now: datetime) -> list[dict[str, Any]]:
    """The licence of each host of the cluster and of vCenter."""
    with translating_faults(session.server, "read its licences"):
        manager = session.content.licenseManager.licenseAssignmentManager
        found = manager.QueryAssignedLicenses(None) if manager else []
    ours = {**names, session.content.about.instanceUuid: session.server}
    return [_described(ours[one.entityId], one.assignedLicense, now) for one in found or [] if one.entityId in ours]


def _described(name: str, licence: Any, now: datetime) -> dict[str, Any]:
    values = {one.key: one.value for one in licence.properties or [] if one.key != "feature"}
    features = [one.value for one in licence.properties or [] if one.key == "feature"]
    ends = _ends(values, now)
    return {
        "object": name,
        "name": licence.name,
        "edition": licence.editionKey,
        "evaluation": licence.editionKey == EVALUATION,
        "expires": stamp(ends) if ends else None,
        "expired": bool(ends and ends <= now),
        "features": sorted(str(getattr(one, "value", one)) for one in features),
    }


def _ends(values: Mapping[str, Any], now: datetime) -> datetime | None:
    if isinstance(values.get("expirationDate"), datetime):
        moment: datetime = values["expirationDate"]
        return moment
    for key, unit in (("expirationHours", 1), ("expirationMinutes", 1 / 60)):
        if key in values:
            return now + timedelta(hours=float(values[key]) * unit)
    return None
