# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for training jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display
from ansible_collections.dml.vsphere.plugins.module_utils.errors import CollectionError
from ansible_collections.dml.vsphere.plugins.module_utils.training import launcher_words, manifest, pair_rounds, scaling
from ansible_collections.dml.vsphere.plugins.module_utils.training.transport import job_settings, node_transport

PYTHONS = (["python"], ["python3"])


def transport_settings(
    nodes: list[dict[str, Any]], name: str, nccl: str | None = None, framework: str = "", **more: Any
) -> dict[str, Any]:
    """Return the environment and the arguments of mpirun for a transport; a template may turn numbers into text."""
    seconds = {"stun_seconds": float(more["stun_seconds"])} if "stun_seconds" in more else {}
    try:
        job_settings.check_framework(framework, name, nccl or None)
        return dict(job_settings.settings(name, nodes, nccl or None, **{**more, **seconds}))
    except job_settings.TransportError as error:
        raise AnsibleFilterError(str(error)) from error


def training_words(
    command: str | list[str], python: str, torchrun: str, folder: str = "", steps: str = ""
) -> list[str]:
    """Return the command of one rank; the options of a launcher that place ranks are dropped with a warning."""
    try:
        words = launcher_words.rank_command(launcher_words.words_of(command), python, torchrun)
    except launcher_words.LauncherError as error:
        raise AnsibleFilterError(f"{error}.") from error
    if words.dropped:
        Display().warning(f"mpirun starts the ranks, one for each slot: dropped {', '.join(words.dropped)}")
    # In a folder that was copied to the nodes, as on the user's machine, "python" has the packages of the training.
    one = [python, *words.command[1:]] if folder and words.command[:1] in PYTHONS else list(words.command)
    return launcher_words.with_steps(one, steps) if steps else one


def network_card(facts: dict[str, Any], interface: str = "", address: str = "") -> dict[str, Any]:
    """Return a network adapter by its name or its address, or that of the default route."""
    return dict(node_transport.network_card(facts, interface or node_transport.interface(facts, address)))


def scaling_table(runs: list[dict[str, Any]], images_per_epoch: int | None = None) -> list[dict[str, Any]]:
    """Return the scaling table of runs."""
    try:
        return list(scaling.table(runs, images_per_epoch))
    except scaling.ScalingError as error:
        raise AnsibleFilterError(str(error)) from error


def training_manifest(text: str, name: str, own: str | None = None, follow: bool = False) -> dict[str, Any]:
    """Return the manifest of a run from its text; with ``own``, the text is only compared with the controller's."""
    try:
        if own is None:
            return dict(manifest.parsed(text, name))
        kept = manifest.parsed(own, name) if own else {}
        reported = manifest.reported(text, name, kept)
        return dict((manifest.followed if follow else manifest.continued)(kept, reported))
    except CollectionError as error:
        raise AnsibleFilterError(str(error)) from error


def training_differs(manifest_before: Any, manifest_today: Any, name: str = "") -> list[str]:
    """Return the keys that must be equal in a repeated run and differ; of texts of one run, all keys that differ."""
    if name:
        own = training_manifest(manifest_before, name)
        return list(manifest.contradicted(own, manifest.reported(manifest_today, name, own)))
    return list(manifest.differing(manifest_before, manifest_today, manifest.OF_A_REPEAT))


def training_split(command: str | list[str]) -> list[str]:
    """Return the words of a command that is a list or text."""
    try:
        return list(launcher_words.words_of(command))
    except launcher_words.LauncherError as error:
        raise AnsibleFilterError(f"{error}.") from error


def training_pairs(nodes: list[dict[str, Any]], transport: str, network: str = "") -> dict[str, Any]:
    """Return the rounds in which all pairs of nodes are measured, and the devices that the traffic is meant for."""
    return dict(pair_rounds.plan(nodes, transport, network))


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "network_card": network_card,
            "training_words": training_words,
            "training_manifest": training_manifest,
            "training_differs": training_differs,
            "training_pairs": training_pairs,
            "training_split": training_split,
            "training_known": node_transport.default_settings,
            "transport_settings": transport_settings,
            "scaling_table": scaling_table,
        }
