"""Docker's report, its settings, with foreign settings kept, and changes that would stop containers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plugins.module_utils.guests.docker import SettingsError, misfits, own_settings, report, settings, stops

# The relevant fields in the report of Docker 18.09 (docker info --format '{{json .}}').
INFO = {
    "ServerVersion": "18.09.7",
    "Runtimes": {"nvidia": {"path": "nvidia-container-runtime"}, "runc": {"path": "runc"}},
    "DefaultRuntime": "runc",
    "RegistryConfig": {"Mirrors": ["https://mirror.example.org/"]},
    "ContainersRunning": 2,
    "LiveRestoreEnabled": False,
}
NVIDIA = {"runtimes": {"nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": []}}}
DESIRED = {"version": "18.09.7", "nvidia": "nvidia-container-runtime"}


def found(**changes: Any) -> dict[str, Any]:
    return {**report(json.dumps(INFO)), **changes}


def test_the_report_is_read() -> None:
    assert report(json.dumps(INFO)) == {
        "version": "18.09.7",
        "runtimes": {"nvidia": "nvidia-container-runtime", "runc": "runc"},
        "default_runtime": "runc",
        "mirrors": ["https://mirror.example.org/"],
        "running": 2,
        "live_restore": False,
    }


@pytest.mark.parametrize(
    "reported", ["", json.dumps({"ServerErrors": ["Cannot connect to the Docker daemon"]}), "Cannot connect", "{}"]
)
def test_an_unresponsive_daemon_has_no_version(reported: str) -> None:
    silent = report(reported)
    assert (silent["version"], silent["running"]) == ("", 0)
    assert misfits(silent, DESIRED) == ["The Docker daemon does not answer."]


@pytest.mark.parametrize(
    ("there", "desired", "after"),
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
def test_settings_are_merged_with_existing_ones(there: str, desired: Any, after: Any) -> None:
    merged = settings(there, desired)
    assert merged == after
    assert settings(json.dumps(merged), desired) == merged


@pytest.mark.parametrize(("there", "words"), [("{oops", "is not valid JSON"), ("[1]", "does not contain a mapping")])
def test_unreadable_settings_are_not_overwritten(there: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        settings(there, NVIDIA)


@pytest.mark.parametrize(
    ("reported", "desired", "sentences"),
    [
        (found(), {**DESIRED, "mirrors": ["https://mirror.example.org"], "nvidia_default": False}, []),
        (found(version="20.10.24+dfsg1"), {"version": "20.10.24"}, []),
        (found(), {"version": "18.09.9"}, ["Docker reports version 18.09.7, not 18.09.9."]),
        (
            found(runtimes={"runc": "runc"}),
            DESIRED,
            ["Docker's runtime nvidia is missing, not nvidia-container-runtime."],
        ),
        (found(), {**DESIRED, "nvidia_default": True}, ["Docker's default runtime is runc, not nvidia."]),
        (found(), {**DESIRED, "mirrors": ["http://a"]}, ["Docker does not use the mirror http://a."]),
    ],
)
def test_each_misfit_is_listed(reported: Any, desired: Any, sentences: list[str]) -> None:
    assert misfits(reported, desired) == sentences


def test_accepts_a_report_and_settings_as_data() -> None:
    assert report(INFO) == report(json.dumps(INFO))
    assert settings({"debug": True}, NVIDIA) == {"debug": True, **NVIDIA}


@pytest.mark.parametrize(
    ("changes", "version", "restarts", "words"),
    [
        ({}, "18.09.7", False, None),
        ({}, "18.09.7", True, "runs 2 containers, which a restart of Docker with other settings would stop."),
        ({"live_restore": True}, "18.09.7", True, None),
        ({}, "18.09.9", False, "runs 2 containers, which another version of Docker would stop."),
        ({"live_restore": True}, "18.09.9", False, "another version of Docker would stop."),
        ({"running": 0}, "18.09.9", True, None),
        ({"version": "18.09.7+dfsg1"}, "18.09.7", False, None),
        ({"version": ""}, "18.09.7", False, None),
    ],
)
def test_a_change_that_would_stop_containers_is_named(
    changes: Any, version: str, restarts: bool, words: str | None
) -> None:
    sentences = stops(found(**changes), version, restarts)
    assert len(sentences) == (1 if words else 0)
    assert all(words and words in one for one in sentences)


def test_compares_with_the_configuration_file_of_docker() -> None:
    desired = {"nvidia": "/usr/bin/n", "nvidia_default": True, "mirrors": ["http://m"], "settings": {"debug": True}}
    assert own_settings(desired) == {
        "debug": True,
        "runtimes": {"nvidia": {"path": "/usr/bin/n", "runtimeArgs": []}},
        "default-runtime": "nvidia",
        "registry-mirrors": ["http://m"],
    }
    assert own_settings({"nvidia": "", "nvidia_default": False, "mirrors": [], "settings": {}}) == {}
