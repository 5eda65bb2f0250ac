# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for training jobs on Kubernetes."""

from __future__ import annotations

from collections.abc import Callable

from ansible.errors import AnsibleFilterError
from ansible_collections.dml.vsphere.plugins.module_utils.kubernetes import job_spec, manifests, preflight


def mpijob_manifests(job: dict[str, object]) -> list[dict[str, object]]:
    """Return the objects of a job: its Secret, its ConfigMap, its MPIJob. The stun determines its toleration."""
    try:
        tolerated = {"toleration_seconds": preflight.toleration(job["stun_seconds"])} if "stun_seconds" in job else {}
        given = {key: value for key, value in job.items() if key != "stun_seconds"}
        spec = job_spec.job_of({**tolerated, **given})
    except (job_spec.JobError, TypeError) as error:
        raise AnsibleFilterError(str(error)) from error
    secret = manifests.secret(spec)
    return [*([secret] if secret else []), *manifests.manifests(spec)]


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., object]]:
        return {"mpijob_manifests": mpijob_manifests}
