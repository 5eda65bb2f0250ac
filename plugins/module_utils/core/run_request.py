"""The request of a user who runs a playbook: its hosts, limit, tags and variables must exist."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import translate

# A variable with this similarity to a known one is a typo. Names in inventories are long and often similar.
SIMILAR, SIMILAR_IN_INVENTORY = 0.8, 0.85
# Words that variables of other software also start with: for these, only typos are rejected.
COMMON_WORDS = frozenset(
    {"account", "alone", "cuda", "guest", "node", "observe", "packages", "proof", "record", "report", "repositories"}
    | {"stack", "vm"}
)
# Names with these prefixes are Ansible's or private. Comparing one name with all variables takes milliseconds.
NOT_COMPARED = ("_", "ansible_", "inventory_")
# Tags that Ansible defines. Every task has the tag of its playbook and none has "never": only two of them select work.
ALL_TAGS = frozenset({"all", "always", "never", "tagged", "untagged"})
WHOLE = frozenset({"all", "tagged"})
CLUSTERS, WORKERS, LOCALHOST = "clusters", "workers", "localhost"
# Options that allow harm. In an inventory, they would act in every run.
HARMFUL = frozenset(
    (
        *("accept_other_jobs", "allow_moves", "confirm", "force_unlock"),
        *("interrupt_training", "power_cycle", "power_off", "unreachable_is_idle"),
    )
)
# Ansible's name for words of -e that are not NAME=VALUE.
WORDS = "_raw_params"
# The line with which the collection finds workers that the inventory does not list.
WORKERS_SOURCE = "a file workers.yml with the line 'plugin: dml.vsphere.workers'"
CONTROLLER = frozenset({LOCALHOST, "127.0.0.1", "::1"})
# Extra variables of each job of AWX and of Automation Controller.
AWX = frozenset({"awx_job_id", "tower_job_id"})
TRUE, FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0", ""})
# A position in a group, such as [0] or [-1], or a range that includes its last position, such as [1:2] or [1:].
_SUBSCRIPT = re.compile(r"^(.+)\[(?:(-?\d+)|(\d+)[:-](\d*))\]$")


@dataclass(frozen=True)
class Known:
    """The known names: the variables of roles, plus each playbook's short options, other variables and tags."""

    roles: Mapping[str, Iterable[str]]
    playbooks: Mapping[str, Mapping[str, Iterable[str]]]
    site: Sequence[str] = ()

    def parts(self, playbook: str) -> list[str]:
        """Return the playbooks that a playbook imports, or the playbook itself."""
        return [*self.site, playbook] if playbook == "site" else [playbook]

    def options(self, playbook: str) -> set[str]:
        return {name for part in self.parts(playbook) for name in self.playbooks.get(part, {}).get("options", ())}

    def tags(self, playbook: str) -> set[str]:
        return {name for part in self.parts(playbook) for name in self.playbooks.get(part, {}).get("tags", ())}

    def passed_on(self, playbook: str) -> dict[str, str]:
        """Return the option of the playbook behind each option of a role that the playbook sets from it."""
        return {
            name: option
            for part in self.parts(playbook)
            for role in self.playbooks.get(part, {}).get("roles", ())
            for option in self.options(part)
            if (name := f"{role}_{option}") in self.roles[role]
        }

    @property
    def variables(self) -> set[str]:
        """Return all variables with a prefix: those of roles, and those of playbooks without a role."""
        of_roles = {name for names in self.roles.values() for name in names}
        return of_roles | {name for playbook in self.playbooks.values() for name in playbook.get("variables", ())}

    @property
    def all_options(self) -> set[str]:
        return {name for playbook in self.playbooks for name in self.options(playbook)}

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Return the prefixes of variables that only this collection uses."""
        own = {name.split("_", 1)[0] for playbook in self.playbooks.values() for name in playbook.get("variables", ())}
        return tuple(f"{word}_" for word in sorted((own | set(self.roles)) - COMMON_WORDS))


@dataclass(frozen=True)
class RunRequest:
    """The command line of a run, and the inventory by group."""

    playbooks: tuple[str, ...]
    extra: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    skipped_tags: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    start_at_task: str = ""
    # Whether the workers must exist: a playbook that another one imports may have none.
    needs_workers: bool = True

    @property
    def hosts(self) -> set[str]:
        return {host for members in self.groups.values() for host in members}


def unanswered(extra: Mapping[str, object], known: Iterable[str]) -> list[str]:
    """Return the variables for which AWX passes an empty text, because their question in a survey has no answer."""
    return [name for name in known if extra.get(name) == ""] if AWX & set(extra) else []


def problems(known: Known, request: RunRequest, playbook: str, pattern: str) -> list[str]:
    """Return a sentence for each name in the request that does not exist for a play of the playbook."""
    sentences = [
        *_bad_options(known, request),
        *_outranking_options(known, request, playbook),
        *_bad_tags(known, request),
        *_left_out_checks(request),
    ]
    if sentences or not is_selected(known, request, playbook):
        return sentences
    if pattern != CLUSTERS and not request.needs_workers:
        return []
    return (
        _bad_limit_of_controller(request, playbook) if pattern == LOCALHOST else _bad_hosts(request, playbook, pattern)
    )


def is_selected(known: Known, request: RunRequest, playbook: str) -> bool:
    """Return whether the tags of the run select work of a playbook that they do not also skip."""
    skipped = set(request.skipped_tags)
    if skipped & (WHOLE | {playbook}):
        return False
    return not request.tags or bool(set(request.tags) & (WHOLE | known.tags(playbook)) - skipped)


def worker_pattern(guests: object) -> str:
    """Return the host pattern in the variable ``guests``; true and false select the workers."""
    text = str(guests if guests is not None else "").strip()
    return WORKERS if text.lower() in TRUE | FALSE else text


def narrowing_options(desired: Mapping[str, object]) -> str:
    """Return the options with which a run leaves out workers, from ``limit`` and ``guests``; empty without any."""
    limit, pattern = desired.get("limit"), worker_pattern(desired.get("guests"))
    options = [f"--limit {limit}" if limit else "", f"guests={pattern}" if pattern != WORKERS else ""]
    return " and ".join(filter(None, options))


def missing_workers(request: RunRequest, pattern: str, *, is_dynamic: bool, is_described: bool) -> list[str]:
    """Return the sentence about requested guests that this run can neither find nor build.

    Without this check, the run would change all hosts before it fails. ``is_dynamic`` is whether a source of the
    inventory can find more hosts during the run, and ``is_described`` whether a cluster has workers to build.
    """
    if evaluate([pattern], request.groups) or (is_dynamic and is_described):
        return []
    has = (
        f"guests needs hosts that match {pattern}, but the inventory {', '.join(request.sources) or 'no file'} has none"
    )
    if not is_dynamic:
        return [f"{has} and no source that finds them; also give -i {WORKERS_SOURCE} (step 7 of docs/cluster.md)"]
    return [f"{has} and no cluster has worker_vms to build; describe them in the inventory (step 6 of docs/cluster.md)"]


def unknown_variables(known: Known, names: Iterable[str]) -> list[str]:
    """Return a sentence for each variable that looks like one of the collection but does not exist."""
    variables, prefixes = known.variables | known.all_options, known.prefixes
    return [
        f"the variable {name} does not exist{_meant(name, variables, SIMILAR_IN_INVENTORY)}"
        for name in sorted(set(names) - variables)
        if not name.startswith(NOT_COMPARED)
        and (name.startswith(prefixes) or get_close_matches(name, variables, 1, SIMILAR_IN_INVENTORY))
    ]


def harmful_variables(names: Iterable[str]) -> list[str]:
    """Return a sentence for each option in the inventory that allows harm."""
    return [
        f"the inventory sets {name}, which allows harm and would act in every run: give it as -e {name}=true in the run"
        for name in sorted(HARMFUL & set(names))
    ]


def _bad_options(known: Known, request: RunRequest) -> list[str]:
    """Return the sentences about extra variables that no playbook of the run reads."""
    ours = [playbook for playbook in request.playbooks if playbook in known.playbooks]
    readable = {name for playbook in ours for name in known.options(playbook)} if ours else known.all_options
    variables, sentences = known.variables, []
    if WORDS in request.extra:
        sentences.append("-e has a word without '=': write NAME=VALUE without blanks around '=', or JSON")
    for name in request.extra:
        if name in variables or name in readable or name.startswith(NOT_COMPARED):
            continue
        if name in known.all_options:
            readers = ", ".join(sorted(reader for reader in known.playbooks if name in known.options(reader)))
            sentences.append(f"-e {name}: {', '.join(ours)} does not read this option, only {readers}")
        elif name.startswith(known.prefixes) or get_close_matches(name, variables | known.all_options, 1, SIMILAR):
            sentences.append(f"-e {name}: this variable does not exist{_meant(name, variables | readable, SIMILAR)}")
    return sentences


def _outranking_options(known: Known, request: RunRequest, playbook: str) -> list[str]:
    """Return the sentences about options of roles that would outrank the options which the run checks."""
    parts = (playbook, *request.playbooks)
    passed_on = {name: option for part in parts for name, option in known.passed_on(part).items()}
    return [
        f"-e {name}: this would outrank {option}, which the playbook checks first; give -e {option} instead"
        for name in request.extra
        if (option := passed_on.get(name))
    ]


def _meant(name: str, known: Iterable[str], cutoff: float) -> str:
    close = get_close_matches(name, sorted(known), 1, cutoff)
    return f" (did you mean {close[0]}?)" if close else ""


def _bad_tags(known: Known, request: RunRequest) -> list[str]:
    """Return the sentences about tags that no playbook of the run has, or that select no work."""
    if any(playbook not in known.playbooks for playbook in request.playbooks):
        return []
    has = {tag for playbook in request.playbooks for tag in known.tags(playbook)}
    named, theirs = ", ".join(request.playbooks), f"its tags are {', '.join(sorted(has))}"
    given = [("--tags", tag) for tag in request.tags] + [("--skip-tags", tag) for tag in request.skipped_tags]
    if unknown := [
        f"{option} {tag}: {named} has no such tag; {theirs}" for option, tag in given if tag not in has | ALL_TAGS
    ]:
        return unknown
    parts = {part for playbook in request.playbooks for part in known.parts(playbook)} - (
        {"site"} if known.site else set()
    )
    if any(is_selected(known, request, part) for part in parts):
        return []
    return [f"{' '.join(f'{option} {tag}' for option, tag in given)} selects no work of {named}; {theirs}"]


def _left_out_checks(request: RunRequest) -> list[str]:
    """Return the sentence about an option that leaves out the checks before the first change."""
    option = "--skip-tags always" if "always" in request.skipped_tags else ""
    option = f"--start-at-task {request.start_at_task!r}" if request.start_at_task else option
    reason = "leaves out checks that protect running jobs; a whole run changes only what differs"
    return [f"{option} {reason}: run the playbook without this option"] if option else []


def _bad_limit_of_controller(request: RunRequest, playbook: str) -> list[str]:
    """Return the sentence about a limit that leaves out the controller."""
    limit = [part for text in request.limit for part in split(text)]
    if not limit or set(limit) & CONTROLLER or LOCALHOST in request.hosts & evaluate(limit, request.groups):
        return []
    return [f"--limit {','.join(limit)} leaves out localhost, on which the playbook {playbook} runs: omit --limit"]


def _bad_hosts(request: RunRequest, playbook: str, pattern: str) -> list[str]:
    """Return the sentence about an inventory or a limit that leaves a play without hosts."""
    matching = evaluate([pattern], request.groups)
    if not matching:
        sources = ", ".join(request.sources) or "no file"
        step = 2 if pattern == CLUSTERS else 7
        example = "" if pattern == CLUSTERS else f", such as {WORKERS_SOURCE}"
        remedy = f"name an inventory with -i that has them{example} (step {step} of docs/cluster.md)"
        return [
            f"the playbook {playbook} needs hosts that match {pattern}, but the inventory {sources} has none; {remedy}"
        ]
    limit = [part for text in request.limit for part in split(text)]
    if unknown := [part for part in limit if not _matches(_SUBSCRIPT.sub(r"\1", part.lstrip("!&")), request.groups)]:
        clusters = ", ".join(sorted(request.groups.get(CLUSTERS, ()))) or "none"
        reason = f"--limit {', '.join(unknown)}: the inventory has no such host or group; its clusters are {clusters}"
        return [f"{reason}. A limit does not select ESXi hosts: -e canary=HOST prepares one ESXi host first"]
    if limit and not matching & evaluate(limit, request.groups):
        names = ", ".join(sorted(matching))
        return [f"--limit {','.join(limit)} selects none of the hosts of the playbook {playbook} ({names})"]
    return []


def evaluate(parts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the hosts that a pattern selects, as Ansible does: the union, then each intersection and exclusion."""
    parts = [piece for part in parts for piece in split(part)]
    plain = [part for part in parts if part[:1] not in "!&"]
    selected = {host for part in plain or ["all"] for host in _matches(part, groups)}
    for part in parts:
        if part.startswith("&"):
            selected &= {*_matches(part[1:], groups)}
        elif part.startswith("!"):
            selected -= {*_matches(part[1:], groups)}
    return selected


def in_order(pattern: str, request: RunRequest) -> list[str]:
    """Return the hosts of a pattern within the limit of a run, in the order of the inventory."""
    selected = evaluate([pattern], request.groups)
    selected &= evaluate(request.limit, request.groups) if request.limit else selected
    return [host for host in dict.fromkeys(itertools.chain(*request.groups.values())) if host in selected]


def limit_parts(limit: str, read: Callable[[str], str]) -> tuple[str, ...]:
    """Return the parts of a limit; each line of an @file is a part."""
    lines = (read(part[1:]).split("\n") if part.startswith("@") else [part] for part in split(limit))
    return tuple(part for part in map(str.strip, itertools.chain(*lines)) if part)


def split(part: str) -> list[str]:
    return [piece for piece in re.split(r"[,:](?![^\[]*\])", part) if piece]


def _matches(part: str, groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the hosts that match one part of a pattern, in the order of Ansible, to which a subscript refers."""
    hosts = dict.fromkeys(itertools.chain(*groups.values()))
    if part in CONTROLLER or part in hosts:
        return [part]
    subscript = None if part.startswith("~") else _SUBSCRIPT.match(part)
    fits = re.compile(part[1:] if part.startswith("~") else translate(subscript[1] if subscript else part)).match
    found = [host for name, members in groups.items() if fits(name) for host in members]
    found += filter(fits, hosts)
    return _at(found, subscript) if subscript else found


def _at(hosts: list[str], subscript: re.Match[str]) -> list[str]:
    _pattern, single, first, last = subscript.groups()
    start = int(single or first)
    end = start if single else int(last or -1)
    return hosts[start : end + 1 or None]
