"""The settings of a real Slurm with which a stun ends a job are findings with the number, the limit and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.module_utils.guests import slurm_timers

CONFIG = (Path(__file__).parents[4] / "fixtures/slurm/config-22.05.8.txt").read_text()
DEFAULT = slurm_timers.settings(CONFIG)


def judge(stun: float = 100.0, **other: str) -> list[tuple[str, str]]:
    return list(slurm_timers.timers({**DEFAULT, **other}, stun))


def test_defaults_of_debian_withstand_a_stun_but_for_one() -> None:
    assert DEFAULT["SLURM_VERSION"] == "22.05.8" and "AuthInfo" not in DEFAULT
    assert judge(60.0) == []
    ((severity, text),) = judge(100.0)
    assert severity == "warn" and text.startswith(
        "Slurm's UnkillableStepTimeout is 60 s, and a stun needs 100 s, because"
    )


@pytest.mark.parametrize(
    ("stun", "other", "severity", "words"),
    [
        (60.0, {"SlurmdTimeout": "119 sec"}, "stop", "SlurmdTimeout is 119 s, and a stun needs 120 s"),
        (60.0, {"SlurmdTimeout": "120 sec"}, "", ""),
        (60.0, {"SlurmdTimeout": "0 sec"}, "", ""),
        (60.0, {"SlurmdTimeout": "5-00:00:00"}, "note", "SlurmdTimeout is 5-00:00:00: its meaning"),
        (60.0, {"InactiveLimit": "30 sec"}, "stop", "InactiveLimit is 30 s"),
        (60.0, {"AuthInfo": "socket=/run/m,ttl=30"}, "stop", "ttl of AuthInfo (auth/munge) is 30 s"),
        (60.0, {"AuthInfo": "ttl=60"}, "", ""),
        (60.5, {"AuthType": "auth/slurm", "UnkillableStepTimeout": "90 sec"}, "stop", "(auth/slurm) is 60 s"),
        (
            60.0,
            {"CommunicationParameters": "keepalivetime=20,keepaliveinterval=5,keepaliveprobes=3"},
            "stop",
            "is 35 s",
        ),
        (60.0, {"CommunicationParameters": "EnableIPv6,KeepAliveTime=20,keepaliveinterval=5"}, "", ""),
        (60.0, {"CommunicationParameters": "block_null_hash"}, "", ""),
        (60.0, {"PMIxTimeout": "50"}, "warn", "PMIxTimeout is 50 s"),
        (60.0, {"UnkillableStepTimeout": "59 sec"}, "warn", "UnkillableStepTimeout is 59 s"),
        (60.0, {"HealthCheckProgram": "/usr/sbin/nhc"}, "warn", "/usr/sbin/nhc: a check of the clock"),
    ],
)
def test_setting_too_short_for_the_stun_is_named(stun: float, other: dict[str, str], severity: str, words: str) -> None:
    found = judge(stun, **other)
    assert [one[0] for one in found] == ([severity] if severity else [])
    assert all(words in text for _severity, text in found), found


def test_node_with_a_starting_job_is_not_moved() -> None:
    node = {"daemons": ["slurmd"], "config": CONFIG, "changing": ["4711"]}
    ((severity, text),) = slurm_timers.rows(node, 20.0)
    assert severity == "stop" and "ends the job 4711 on it" in text and "(BatchStartTimeout 10 s)" in text
    assert list(slurm_timers.rows(node, 10.0)) == []
    assert list(slurm_timers.rows({**node, "changing": []}, 20.0)) == []


def test_controller_on_a_worker_and_unread_settings_warn() -> None:
    found = list(slurm_timers.rows({"daemons": ["slurmctld", "slurmd", "slurmdbd"], "config": None}, 60.0))
    assert [severity for severity, _text in found] == ["warn"] * 3
    assert "runs slurmctld" in found[0][1] and "runs slurmdbd" in found[1][1]
    assert found[2][1] == (
        "it runs Slurm, but scontrol show config fails here (no answer): the timers of Slurm are not known"
    )


def test_clock_that_munge_refuses_is_named_with_its_remedy() -> None:
    """The answer of 22.05.8 on a node whose clock is 10 minutes ahead or behind."""
    answer = "slurm_load_ctl_conf error: Zero Bytes were transmitted or received"

    ((severity, text),) = slurm_timers.rows({"daemons": ["slurmd"], "config": None, "error": answer}, 60.0)

    assert severity == "warn" and f"({answer}; the clock of the node is minutes ahead or behind, or" in text
    assert slurm_timers.with_cause("Invalid job id specified") == "Invalid job id specified"
