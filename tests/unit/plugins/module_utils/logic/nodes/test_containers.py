# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What Docker says of itself, and its settings, which nobody else's must be lost from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plugins.module_utils.logic.nodes.containers import SettingsError, misfits, report, settings

# The fields that matter of what Docker 18.09 tells (docker info --format '{{json .}}').
INFO = {
    "ServerVersion": "18.09.7",
    "Runtimes": {
        "nvidia": {"path": "nvidia-container-runtime"},
        "runc": {"path": "runc"},
    },
    "DefaultRuntime": "runc",
    "RegistryConfig": {"Mirrors": ["https://mirror.example.org/"]},
    "ContainersRunning": 2,
    "LiveRestoreEnabled": False,
}
NVIDIA = {"runtimes": {"nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": []}}}
WANTED = {"version": "18.09.7", "runtimes": {"nvidia": "nvidia-container-runtime"}}


def found(**changes: Any) -> dict[str, Any]:
    return {**report(json.dumps(INFO)), **changes}


def test_docker_is_told_in_our_words() -> None:
    assert report(json.dumps(INFO)) == {
        "version": "18.09.7",
        "runtimes": {"nvidia": "nvidia-container-runtime", "runc": "runc"},
        "default_runtime": "runc",
        "mirrors": ["https://mirror.example.org/"],
        "running": 2,
        "live_restore": False,
    }


@pytest.mark.parametrize(
    "said", ["", json.dumps({"ServerErrors": ["Cannot connect to the Docker daemon"]}), "Cannot connect", "{}"]
)
def test_a_daemon_that_does_not_answer_has_no_version(said: str) -> None:
    silent = report(said)
    assert (silent["version"], silent["running"]) == ("", 0)
    assert misfits(silent, WANTED) == ["The daemon of Docker does not answer."]


@pytest.mark.parametrize(
    ("there", "wanted", "after"),
    [
        ("", NVIDIA, NVIDIA),
        ("\n", NVIDIA, NVIDIA),
        ('{"data-root": "/scratch"}', NVIDIA, {"data-root": "/scratch", **NVIDIA}),
        (
            '{"runtimes": {"kata": {"path": "kata"}, "nvidia": {"path": "/old", "runtimeArgs": ["--debug"]}}}',
            NVIDIA,
            {
                "runtimes": {
                    "kata": {"path": "kata"},
                    "nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": ["--debug"]},
                }
            },
        ),
        ('{"registry-mirrors": ["a", "b"]}', {"registry-mirrors": ["b", "c"]}, {"registry-mirrors": ["b", "c", "a"]}),
        ('{"debug": true}', {"debug": False}, {"debug": False}),
    ],
)
def test_settings_stand_beside_those_that_are_there(there: str, wanted: Any, after: Any) -> None:
    merged = settings(there, wanted)
    assert merged == after
    assert settings(json.dumps(merged), wanted) == merged


@pytest.mark.parametrize(("there", "words"), [("{oops", "is no JSON"), ("[1]", "holds no mapping")])
def test_settings_that_cannot_be_read_are_not_written_over(there: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        settings(there, NVIDIA)


@pytest.mark.parametrize(
    ("told", "wanted", "sentences"),
    [
        (found(), {**WANTED, "mirrors": ["https://mirror.example.org"], "default_runtime": "runc"}, []),
        (found(version="20.10.24+dfsg1"), {"version": "20.10.24"}, []),
        (found(), {"version": "18.09.9"}, ["Docker says that it is 18.09.7, not 18.09.9."]),
        (found(runtimes={"runc": "runc"}), WANTED, ["Docker's runtime nvidia is none, not nvidia-container-runtime."]),
        (found(), {**WANTED, "default_runtime": "nvidia"}, ["Docker's default runtime is runc, not nvidia."]),
        (found(), {**WANTED, "mirrors": ["http://a"]}, ["Docker does not ask the mirror http://a."]),
    ],
)
def test_what_is_not_as_wanted_is_named(told: Any, wanted: Any, sentences: list[str]) -> None:
    assert misfits(told, wanted) == sentences
