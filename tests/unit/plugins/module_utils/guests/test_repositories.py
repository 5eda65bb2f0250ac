"""Incomplete repositories, and apt's messages about those that it cannot trust."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.guests.repositories import misfits, update_faults

KEYS = {"nvidia": {"url": "https://mirror/a.pub", "fingerprint": "AB" * 20}, "own": {"keyring": "/usr/share/a.gpg"}}
CUDA = {"name": "cuda", "url": "https://mirror/cuda/", "keys": ["nvidia"]}


@pytest.mark.parametrize(
    ("repositories", "keys", "sentences"),
    [
        ([CUDA, {**CUDA, "keys": ["own", "nvidia"]}], KEYS, []),
        ([], {"open": {}}, []),
        ([{**CUDA, "url": None}], KEYS, ["The repository cuda has no url: set it to the base address."]),
        ([{"name": "cuda", "keys": ["own"]}], KEYS, ["The repository cuda has no url: set it to the base address."]),
        (
            [{**CUDA, "keys": []}],
            KEYS,
            ["The repository cuda names no key: a repository without a signature is refused."],
        ),
        (
            [{**CUDA, "keys": ["lost"]}],
            KEYS,
            ["The repository cuda names the key lost, which is not in repositories_keys."],
        ),
        (
            [CUDA],
            {"nvidia": {"url": "https://mirror/a.pub"}},
            ["The key nvidia has neither url and fingerprint nor a keyring on the node."],
        ),
    ],
)
def test_incomplete_repositories_are_listed(
    repositories: list[dict[str, Any]], keys: dict[str, dict[str, Any]], sentences: list[str]
) -> None:
    assert misfits(repositories, keys) == sentences


# The format of apt 2.6; molecule/t4_packages runs apt.
UNSIGNED = (
    "Get:1 http://10.86.0.100:8000/unsigned  InRelease\n"
    "E: The repository 'http://10.86.0.100:8000/unsigned  Release' is not signed."
)
STALE = (
    "W: An error occurred during the signature verification. The repository is not updated and the previous index "
    "files will be used. GPG error: http://10.86.0.100:8000/cuda  InRelease: The following signatures couldn't be "
    "verified because the public key is not available: NO_PUBKEY B4B2E9F5\n"
    "W: Failed to fetch http://10.86.0.100:8000/cuda/InRelease  The following signatures couldn't be verified\n"
    "W: Some index files failed to download. They have been ignored, or old ones used instead."
)


def test_an_untrusted_archive_is_a_fault_despite_success() -> None:
    assert len(update_faults(STALE)) == 3
    assert update_faults(UNSIGNED) == [UNSIGNED.splitlines()[1]]
    assert len(update_faults(UNSIGNED + "\n" + UNSIGNED)) == 1


def test_harmless_output_is_not_a_fault() -> None:
    harmless = (
        "W: Target Packages (Packages) is configured multiple times in a.list:1 and b.list:1\nReading package lists..."
    )
    assert update_faults(harmless) == []
