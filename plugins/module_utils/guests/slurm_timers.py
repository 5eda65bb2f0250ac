"""The settings of a running Slurm that end a job while a node is stunned, from ``scontrol show config``; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..core.findings import NOTE, STOP, WARN
from ..core.json_values import mapping

# The severity and text of each finding.
Rows = Iterator["tuple[str, str]"]
RULE = "slurm"
CONTROLLERS = ("slurmctld", "slurmdbd")
# The defaults of slurm.conf for values that scontrol shows as (null) or not at all, in seconds.
TTL = {"auth/munge": 300.0, "auth/slurm": 60.0}
CRED_EXPIRE, BATCH_START, RESUME, PMIX = 120.0, 10.0, 60.0, 300.0
KEEPALIVE = {"keepalivetime": 7200.0, "keepaliveinterval": 75.0, "keepaliveprobes": 9.0}
# The answers of 22.05 if the clock of a node, or its munge key, is not that of slurmctld.
UNAUTHENTICATED = ("Zero Bytes were transmitted or received", "authentication error", "Invalid authentication")
UNREACHABLE = "Unable to contact slurm controller"
CLOCK = "the clock of the node is minutes ahead or behind, or its munge key is another one"
SET_CLOCK = "correct the clock, as with timedatectl, compare /etc/munge/munge.key, and restart munge"
_NUMBER = re.compile(r"([0-9]{1,12})(?: sec)?")


def settings(text: str) -> dict[str, str]:
    """Return the settings in the output of ``scontrol show config`` by name; those without a value are left out."""
    pairs = (line.partition("=") for line in text.splitlines())
    found = {name.strip(): value.strip() for name, sign, value in pairs if sign}
    return {name: value for name, value in found.items() if value and not value.startswith("(null")}


def is_unauthenticated(answer: str) -> bool:
    """Return whether a command of Slurm failed because slurmctld takes no message of its node."""
    return any(text in answer for text in UNAUTHENTICATED)


def with_cause(answer: str) -> str:
    """Return the answer of a command of Slurm, with the cause and the remedy that Slurm does not tell."""
    if UNREACHABLE in answer:
        return f"{answer}; slurmctld does not answer: start slurmctld on its node, and run again"
    return f"{answer}; {CLOCK}: {SET_CLOCK}" if is_unauthenticated(answer) else answer


def rows(found: object, stun: float) -> Rows:
    """Yield the findings on a node that runs daemons of Slurm, as ``guest_program`` reports them.

    ``stun`` is the longest silence of the node in seconds.
    """
    facts = mapping(found)
    for name in (name for name in CONTROLLERS if name in strings(facts.get("daemons"))):
        yield WARN, f"it runs {name}: move it when no other worker moves, or put {name} on a machine that does not move"
    config = facts.get("config")
    if not isinstance(config, str):
        error = with_cause(str(facts.get("error") or "no answer"))
        yield WARN, f"it runs Slurm, but scontrol show config fails here ({error}): the timers of Slurm are not known"
        return
    yield from timers(settings(config), stun)
    yield from _changing(facts.get("changing"), settings(config), stun)


def timers(config: Mapping[str, str], stun: float) -> Rows:
    """Yield the settings of a cluster with which a stun ends a job, or leaves its node out of service."""
    down = _seconds(config.get("SlurmdTimeout"))
    if down is None:
        yield NOTE, f"Slurm's SlurmdTimeout is {config.get('SlurmdTimeout', 'not shown')}: its meaning is not known"
    elif 0 < down < 2 * stun:
        yield STOP, _short("SlurmdTimeout", down, 2 * stun, "Slurm then marks the node DOWN and ends its jobs")
    inactive = _seconds(config.get("InactiveLimit")) or 0.0
    if 0 < inactive < stun:
        yield STOP, _short("InactiveLimit", inactive, stun, "Slurm then ends jobs of srun and salloc")
    yield from _credentials(config, stun)
    yield from _keepalive(words_of(config.get("CommunicationParameters", "")), stun)
    pmix = _seconds(config.get("PMIxTimeout")) or PMIX
    if pmix < stun:
        yield WARN, _short("PMIxTimeout", pmix, stun, "ranks of srun --mpi=pmix that start or end then fail")
    unkillable = _seconds(config.get("UnkillableStepTimeout"))
    if unkillable is not None and unkillable < stun:
        yield WARN, _short("UnkillableStepTimeout", unkillable, stun, "a job that ends in a stun then drains the node")
    if "HealthCheckProgram" in config:
        yield WARN, f"Slurm runs {config['HealthCheckProgram']}: a check of the clock in it drains a stunned node"


def starts_to_avoid(config: Mapping[str, str], stun: float) -> list[str]:
    """Return the timers with which a job that starts or ends during a stun fails."""
    auth = words_of(config.get("AuthInfo", ""))
    known = {
        "cred_expire of AuthInfo": _seconds(auth.get("cred_expire")) or CRED_EXPIRE,
        "BatchStartTimeout": _seconds(config.get("BatchStartTimeout")) or BATCH_START,
        "ResumeTimeout": _seconds(config.get("ResumeTimeout")) or RESUME,
    }
    return [f"{name} {seconds:g} s" for name, seconds in known.items() if seconds < stun]


def words_of(text: str) -> dict[str, str]:
    """Return the values of a list such as ``ttl=300,cred_expire=120`` by name in lower case."""
    pairs = (part.partition("=") for part in text.replace(";", ",").split(","))
    return {name.strip().lower(): value.strip() for name, _sign, value in pairs if name.strip()}


def _credentials(config: Mapping[str, str], stun: float) -> Rows:
    kind = config.get("AuthType", "auth/munge")
    ttl = _seconds(words_of(config.get("AuthInfo", "")).get("ttl")) or TTL.get(kind, TTL["auth/slurm"])
    if ttl < stun:
        yield STOP, _short(f"ttl of AuthInfo ({kind})", ttl, stun, "Slurm then refuses messages sent before the stun")


def _keepalive(words: Mapping[str, str], stun: float) -> Rows:
    if not set(words) & set(KEEPALIVE):
        return
    idle, pause, probes = (_seconds(words.get(name)) or usual for name, usual in KEEPALIVE.items())
    seconds = idle + pause * probes
    if seconds < stun:
        name = "keepalive of CommunicationParameters (time + interval x probes)"
        yield STOP, _short(name, seconds, stun, "the connection of srun to its ranks then breaks")


def _changing(jobs: object, config: Mapping[str, str], stun: float) -> Rows:
    names = strings(jobs)
    short = starts_to_avoid(config, stun)
    if names and short:
        jobs_there, limits = ", ".join(names), ", ".join(short)
        text = f"Slurm starts or ends the job {jobs_there} on it, which fails in a stun of {stun:g} s ({limits})"
        yield STOP, f"{text}: wait until squeue --states=CF,CG is empty"


def _short(name: str, seconds: float, least: float, effect: str) -> str:
    return f"Slurm's {name} is {seconds:g} s, and a stun needs {least:g} s, because {effect}: raise it"


def strings(value: object) -> list[str]:
    """Return the texts of a list that a node reported; none for anything else."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _seconds(value: object) -> float | None:
    """Return the seconds of a value of Slurm; None without a number."""
    match = _NUMBER.fullmatch(str(value))
    return float(match[1]) if match else None
