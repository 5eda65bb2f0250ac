# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: read the job, let it finish, wait for its end, stop it; pure."""

from __future__ import annotations

from typing import Any, cast

from ....kubernetes.job_spec import V2BETA1
from ....kubernetes.manifests import owned
from ....training.transport.connections import checksums
from ..step import HERE, LAUNCHER, Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step, failed
from ..trial_state import Entry, Job, Settings, TrialState
from .transport_reading import reading

# The values that can change while the job runs.
CHANGING = ("state", "launcher", "why", "pods", "silences", "ended")
PLACE = ("namespace", "kubeconfig", "context")


def _read(state: TrialState, _controller: Controller) -> ModuleCall:
    return _reading_of(state, may_fail=False)


def _reading_of(state: TrialState, may_fail: bool) -> ModuleCall:
    """Return the call for either kind of job: both modules return the same keys."""
    kubernetes = state.settings.get("kubernetes") or {}
    if kubernetes:
        return ModuleCall("mpijob_info", dict(kubernetes), HERE, may_fail)
    # Only the records identify a job that another tool started.
    options = {"run_dir": state.settings["run_dir"], "records": state.settings["records"]}
    return ModuleCall("training_job_info", options, LAUNCHER, may_fail)


def _job_entry(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Keep all of the job at first, and later what can change; refuse to test a job that does not run."""
    job = result["job"]
    if state.job is None and job["state"] != "running":
        return failed("job", not_running(state.settings, job))
    if state.job is None and job.get("steps_by") == "none":
        return failed("job", _without_steps(state.settings))
    return [("job", {"job": job if state.job is None else {key: job.get(key) for key in CHANGING}})]


def _keep_job(state: TrialState, entry: Entry) -> None:
    state.job_now = cast(Job, dict(entry["job"]))
    state.job = state.job or state.job_now


def _job_messages(entry: Entry, state: TrialState) -> list[str]:
    """Return the sentence about a job that has just finished although hosts of its maintenance window remain."""
    was_running = (state.job_now or {}).get("state") == "running"
    if not (was_running and entry["job"]["state"] == "finished" and state.waiting_hosts):
        return []
    return [f"the job has finished: {', '.join(state.waiting_hosts)} are changed without a verdict on their moves"]


def not_running(settings: Settings, job: Job) -> str:
    """Return the error of a job that cannot be tested."""
    why = f": {job['why']}" if job.get("why") else ""
    return f"{_name(settings)} does not run, it is {job['state']}{why}; start it, then test."


def _without_steps(settings: Settings) -> str:
    remedy = "start it without this option, then test"
    return f"{_name(settings)} was started with training_steps_by=none, so no record shows that it goes on; {remedy}."


def _name(settings: Settings) -> str:
    kubernetes = settings.get("kubernetes") or {}
    if kubernetes:
        return f"MPIJob {kubernetes['name']}: it"
    return f"{settings['launcher']}: the job in {settings['run_dir']}"


JOB = Step(
    name="job",
    title="reads the state of the job",
    due=(
        Due(Phase.OPENING, lambda state: state.job is None),
        Due(Phase.JUDGEMENT, lambda state: "job" not in state.lately),
        Due(Phase.ENDING, lambda state: state.warm is not None, after=("free",)),
    ),
    action=_read,
    entries=_job_entry,
    kinds=(EntryKind("job", _keep_job, _job_messages),),
    is_repeated=True,
)


def _finish(state: TrialState, _controller: Controller) -> ModuleCall:
    options = {"path": f"{state.settings['records']}/finish", "state": "touch", "mode": "0644"}
    return ModuleCall("ansible.builtin.file", options, LAUNCHER)


FINISH = Step(
    name="finish",
    title="asks the job to end after its epoch",
    due=(Due(Phase.ENDING, lambda state: state.may_outlast and state.settings["ends_job"], after=("outlast",)),),
    action=_finish,
    kinds=(EntryKind("finish"),),
)


def _waits_for_end(state: TrialState) -> bool:
    return state.may_outlast and state.settings["finish_timeout"] > 0


def _await(state: TrialState, _controller: Controller) -> ModuleCall:
    call = _reading_of(state, may_fail=True)
    timeout = float(state.settings["finish_timeout"])
    return ModuleCall(call.module, call.options, call.where, True, until=_has_ended, seconds=timeout)


def _state_of(result: Result) -> str:
    return str((result.get("job") or {}).get("state", "unknown"))


def _has_ended(result: Result) -> bool:
    return _state_of(result) not in ("running", "unknown")


def _await_entry(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    return [("await", {"state": _state_of(result)})]


AWAIT = Step(
    name="await",
    title="waits for the end of the job",
    due=(Due(Phase.ENDING, _waits_for_end, after=("finish",)),),
    action=_await,
    entries=_await_entry,
    kinds=(EntryKind("await"),),
)


def _checksums_entry(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    return [("checksums", {"checksums": checksums(result["nodes"])})]


def _keep_checksums(state: TrialState, entry: Entry) -> None:
    state.checksums = dict(entry["checksums"])


CHECKSUMS = Step(
    name="checksums",
    title="reads the checksums of the parameters",
    due=(Due(Phase.ENDING, _waits_for_end, after=("await",)),),
    action=reading,
    entries=_checksums_entry,
    kinds=(EntryKind("checksums", _keep_checksums),),
)


def _stop(state: TrialState, _controller: Controller) -> ModuleCall:
    kubernetes = state.settings.get("kubernetes") or {}
    if not kubernetes:
        return ModuleCall("training_job", {"run_dir": state.settings["run_dir"], "state": "stopped"}, LAUNCHER)
    # mpijob_info assumes this namespace if none is given; kubernetes.core.k8s refuses to delete without one.
    place: dict[str, Any] = {"namespace": "default", **{key: kubernetes[key] for key in PLACE if key in kubernetes}}
    objects = owned(str(kubernetes["name"]), str(kubernetes.get("api", V2BETA1)))
    deletion = {"state": "absent", "delete_options": {"propagationPolicy": "Foreground"}, "wait": True}
    return ModuleCall("kubernetes.core.k8s", {"resource_definition": objects, **deletion, **place})


STOP = Step(
    name="stop",
    title="stops the job that was started for the test",
    due=(Due(Phase.ENDING, lambda state: state.settings["ends_job"], after=("judge",)),),
    action=_stop,
    kinds=(EntryKind("stop"),),
)
