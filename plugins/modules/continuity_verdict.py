#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the verdict on a job whose workers were moved."""

from __future__ import annotations

DOCUMENTATION = r"""
module: continuity_verdict
short_description: Judge whether a training job continued without interruption while its workers moved
version_added: 1.0.0
description:
  - Reads the step records that a watch collected and judges them together with the moves. The verdict is V(continuous),
    V(broken) with every breach, or V(inconclusive) with the missing evidence.
  - The module judges and writes files; the caller decides whether a test passes.
  - The folder of a vMotion test contains all data of its verdict. With O(test), the module judges a finished test
    again, optionally with other limits. It does not need vCenter and keeps the original verdict.
options:
  records: {description: The file of records. Required without O(test)., type: path}
  test:
    description:
      - The folder of a test of the role P(dml.vsphere.vmotion_test#role), or a folder that contains exactly one such
        folder, such as the one that the demo leaves. Records, moves, facts and the required facts are then those of
        the test, and O(limits) take precedence over the limits of the test.
      - Without O(folder), a new verdict is written next to the existing ones, as C(verdict-2.json), C(junit-2.xml),
        C(timeline-2.json) and C(timeline-2.html), and so on. No file is overwritten.
    type: path
  moves:
    description: The moves, each as the C(move) that M(dml.vsphere.vmotion) returned, with C(ranks) added.
    type: list
    elements: dict
    default: []
  ended:
    description: Whether the job still runs, has finished, or has died.
    type: str
    choices: [running, finished, died]
    default: running
  limits:
    description:
      - C(max_gap_s), C(phases), C(warmup_steps), C(resume_deadline_s) and C(min_throughput_ratio), as the page
        docs/continuity.md of the collection explains them.
    type: dict
    default: {}
  facts:
    description:
      - The observations in addition to the records, C(launcher), C(transport), C(vsphere), C(power),
        C(observed_until), and for C(cost) also C(hosts), C(checkpoint_s) and C(site).
    type: dict
    default: {}
  require:
    description: The facts that must have been observed.
    type: list
    elements: str
    choices: [launcher, transport, vsphere]
    default: [launcher, transport, vsphere]
  folder: {description: "An existing folder on this machine, for C(verdict.json) and C(junit.xml).", type: path}
  at:
    description:
      - The host of each worker before the first move. With it, the module also writes C(timeline.json) and the page
        C(timeline.html) to O(folder). They show throughput over time, moves, silences and the host of each worker.
    type: dict
  name: {description: Name of the test in C(junit.xml) and on the page., type: str, default: vmotion_test}
extends_documentation_fragment:
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.vmotion
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Judge the job
  dml.vsphere.continuity_verdict:
    records: /tmp/one/records.jsonl
    moves: "{{ moves }}"
    folder: /tmp/one
  register: judged
  failed_when: judged.verdict != 'continuous' or judged.moved != 'all'

- name: Judge a finished test with a limit of 60 seconds for a silence
  dml.vsphere.continuity_verdict:
    test: /var/lib/dml/vmotion_test/gpu-1a2b3c
    limits: {max_gap_s: 60}
  register: judged
"""

RETURN = r"""
files:
  description: The files of the new verdict.
  returned: with O(test), without O(folder)
  type: list
  elements: str
lines:
  description: The verdict as lines of text, with its reasons and a line for each move.
  returned: success
  type: list
  elements: str
verdict: {description: "V(continuous), V(broken) or V(inconclusive).", returned: success, type: str}
moved:
  description:
    - Whether V(all), V(some) or V(none) of the moves took place; not V(all) if a test ended before all planned moves.
  returned: success
  type: str
not_made:
  description: The planned moves and host changes that a test did not make, in sentences.
  returned: for a test that ended before all of them
  type: list
  elements: str
breaches:
  description: The breaches that broke the job, each with C(kind), C(rank), C(step), C(at) and C(detail).
  returned: success
  type: list
  elements: dict
unproven: {description: "The missing evidence, as sentences.", returned: success, type: list, elements: str}
earlier:
  description:
    - The earlier windows of a long observation in which something happened, each with the time C(until), its
      C(verdict), its C(moves) with their measurements in C(rows), the C(power) events, and the C(files) of its verdict.
  returned: for an observation whose records were removed in parts
  type: list
  elements: dict
windows:
  description: The number of windows of the observation, which are judged one after the other.
  returned: for an observation whose records were removed in parts
  type: int
notes:
  description: Further observations, such as moves that other users started.
  returned: success
  type: list
  elements: str
other_runs:
  description: The other runs that used the nodes of the job since the test began, as sentences.
  returned: for a test
  type: list
  elements: str
longest_gap_s: {description: "The longest silence of the training, in seconds.", returned: success, type: float}
cost:
  description:
    - The cost since the first move, or since the first host left service. C(goodput) is the fraction of the undisturbed
      rate that the job kept, C(stalled_s) the time without a step in silences longer than C(stall_from_s), C(wasted_s)
      that time multiplied by the ranks, in C(wasted_unit), and C(slow_s) the time below nine tenths of the undisturbed
      rate.
    - C(hosts) has C(out_at), C(back_at), C(moves), C(longest_stall_s) and the images that the job C(lost) in its stalls
      and made less because it was C(slower) for each host, and C(restart) the work that a restart from the last
      checkpoint would have repeated.
    - V(null) if there was neither a move nor a host out of service, or if there are no steps from before.
  returned: success
  type: dict
moves:
  description: The C(gap_s), C(throughput) before, during and after with its C(unit), and C(steps) of each move.
  returned: success
  type: list
  elements: dict
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.continuity import verdict
from ..module_utils.continuity.judged_facts import Verdict
from ..module_utils.continuity.step_records import Track
from ..module_utils.errors import Refused
from ..module_utils.pages import verdict_files
from ..module_utils.trials.evidence import move_lines, verdict_input
from ..module_utils.trials.folder import trial_folder
from ..module_utils.trials.folder.verdicts import NewVerdict, write_text
from ..module_utils.watch.growing_file import GrowingFile
from ..module_utils.watch.records_file import before

FACTS = ("launcher", "transport", "vsphere")
ARGUMENTS = {
    "records": {"type": "path"},
    "test": {"type": "path"},
    "moves": {"type": "list", "elements": "dict", "default": []},
    "ended": {"type": "str", "choices": list(verdict.ENDINGS), "default": "running"},
    "limits": {"type": "dict", "default": {}},
    "facts": {"type": "dict", "default": {}},
    "require": {"type": "list", "elements": "str", "choices": list(FACTS), "default": list(FACTS)},
    "folder": {"type": "path"},
    "at": {"type": "dict"},
    "name": {"type": "str", "default": "vmotion_test"},
}
GIVEN = ("moves", "limits", "ended", "facts", "require")


def of_test(params: runner.Params) -> runner.Result:
    """Return the options, completed from the facts of the test."""
    test = trial_folder.one_test(Path(params["test"]))
    facts = trial_folder.read_facts(test)
    if not facts.warm:
        reason = "it ended before the job was warm"
        raise Refused(str(test), "judge the test in it", reason, "name the folder of another test")
    at = facts.at if facts.is_over or not params["folder"] else None
    own = {"test": test, "records": test / "records.jsonl", "at": at, "name": verdict_input.title(facts)}
    more = {"changes": facts.host_changes, "known": facts, "site": facts.settings.get("site") or ""}
    try:
        case = verdict_input.verdict_input(facts, params["limits"])
    except trial_folder.DAMAGES as error:
        raise trial_folder.damaged(test, error) from error
    return {**params, **case, **own, **more}


def judge(params: runner.Params, records: Iterable[dict[str, object]]) -> tuple[Verdict, Sequence[Track]]:
    """Return the verdict on the records, and the records by rank, compressed."""
    given = {key: params[key] for key in GIVEN}
    require = given.pop("require")
    try:
        case = verdict.read_case(records, given.pop("moves"), given.pop("limits"), **given)
        return verdict.judged(case, require), case.tracks
    except ValueError as error:
        raise Refused(str(params["records"]), "judge its records", str(error), "correct the named value") from error


def write(module: AnsibleModule, params: runner.Params, parts: list[Callable[[], dict[str, str]]]) -> runner.Result:
    """Make and write the files of the verdict part by part, and keep the files of an earlier verdict."""
    if params["folder"]:
        for part in parts:
            for name, text in part().items():
                write_text(Path(params["folder"]) / name, text)
    elif params["test"]:
        names = verdict_files.VERDICT + (verdict_files.TIMELINE if len(parts) > 1 else ())
        subject = NewVerdict(params["test"], names, parts)
        return {**runner.converge_one(module, subject), "files": [str(path) for path in subject.paths]}
    return {"changed": False}


class _Records:
    """The records of a job: first those that the watch kept from earlier, if any, then the current ones."""

    def __init__(self, path: Path) -> None:
        self._files = [GrowingFile(each) for each in (before(path), path)]

    def __enter__(self) -> _Records:
        return self

    def __exit__(self, *_exception: object) -> None:
        for file in self._files:
            file.__exit__()

    @property
    def noise(self) -> int:
        """Return the number of lines that are not JSON objects."""
        return sum(file.noise for file in self._files)

    def new_records(self) -> Iterator[dict[str, Any]]:
        return chain.from_iterable(file.new_records() for file in self._files)


def parts_of(params: runner.Params, tracks: Sequence[Track], result: Verdict) -> list[Callable[[], dict[str, str]]]:
    """Return the verdict, then its timeline: an error in the page must not prevent the verdict."""
    name, moves, at = params["name"], params["moves"], params["at"]
    about = {"name": name, "site": params.get("site", "")}

    def timeline() -> dict[str, str]:
        return verdict_files.timeline_texts(about, tracks, moves, result, at, params.get("changes", ()))

    return [lambda: verdict_files.verdict_texts(name, moves, result), *([] if at is None else [timeline])]


def body(module: AnsibleModule) -> runner.Result:
    params = of_test(module.params) if module.params["test"] else module.params
    with _Records(Path(params["records"])) as growing:
        result, tracks = judge(params, growing.new_records())
    if growing.noise:
        result["unproven"].append(f"records: {growing.noise} lines are not JSON objects and were left out")
    if "known" in params:
        known = params["known"]
        result = verdict_input.with_left(verdict_input.with_earlier(result, known), known)
        result["other_runs"] = known.other_runs
    written = write(module, params, parts_of(params, tracks, result))
    return {**written, **result, "lines": move_lines.verdict(result, params["moves"])}


def main() -> None:
    one = [("records", "test")]
    module = AnsibleModule(
        argument_spec=ARGUMENTS, required_one_of=one, mutually_exclusive=one, supports_check_mode=True
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
